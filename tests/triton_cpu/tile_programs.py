"""Programs on one tile, in LLVM IR, and their operands: what the tests of the emulated tile unit run."""

import numpy as np
import torch

DECLARATIONS = """
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tilezero(i8 immarg)
declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)
declare void @llvm.x86.tilestored64(i8, ptr, i64)
declare void @llvm.x86.tdpbf16ps(i8, i8, i8) #0
declare void @llvm.x86.tdpfp16ps(i8, i8, i8)
declare void @llvm.x86.tdpbssd(i8, i8, i8)
declare void @llvm.x86.tdpbsud(i8, i8, i8)
declare void @llvm.x86.tdpbusd(i8, i8, i8)
declare void @llvm.x86.tdpbuud(i8, i8, i8)
attributes #0 = { nounwind }
"""


def product_ir(name="tdpbf16ps", body=None):
    """void run(ptr config, ptr c, ptr a, ptr b): c += a b on one tile each."""
    body = (
        body
        or f"""
  call void @llvm.x86.ldtilecfg(ptr %config)
  call void @llvm.x86.tileloadd64(i8 0, ptr %c, i64 64)
  tail call void @llvm.x86.tileloadd64(i8 1, ptr %a, i64 64)
  call void @llvm.x86.tileloadd64(i8 2, ptr %b, i64 64)
  call void @llvm.x86.{name}(i8 0, i8 1, i8 2)
  call void @llvm.x86.tilestored64(i8 0, ptr %c, i64 64)
  call void @llvm.x86.tilerelease()"""
    )
    return f"{DECLARATIONS}\ndefine void @run(ptr %config, ptr %c, ptr %a, ptr %b) {{{body}\n  ret void\n}}\n"


def config(c=(16, 64), a=(16, 64), b=(16, 64), **bytes_at):
    made = np.zeros(64, np.uint8)
    made[0] = 1
    for tile, (rows, row_bytes) in enumerate((c, a, b)):
        made[16 + 2 * tile], made[48 + tile] = row_bytes, rows
    for place, value in bytes_at.items():
        made[int(place.removeprefix("at"))] = value
    return made


def bf16_bits(values):
    return torch.from_numpy(values).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)


def in_pairs(b, group=2):
    """[K, N] as the tile's [K / group, N * group]."""
    k, n = b.shape
    return np.ascontiguousarray(b.reshape(k // group, group, n).transpose(0, 2, 1).reshape(k // group, n * group))
