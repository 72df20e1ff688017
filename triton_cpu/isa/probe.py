"""Machine code that asks the processor: the CPUID instruction, and a multiplication on AMX tiles."""

from __future__ import annotations

import ctypes
import functools

from triton_cpu.llvm.optimize import compile_to_object
from triton_cpu.runtime.load import link

_CPUID_IR = """
define void @cpuid(i32 %leaf, i32 %subleaf, ptr %out) {
  %r = call { i32, i32, i32, i32 } asm sideeffect "cpuid",
    "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"(i32 %leaf, i32 %subleaf)
  store { i32, i32, i32, i32 } %r, ptr %out, align 4
  ret void
}
"""

_TILE_IR = """
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilezero(i8)
declare void @llvm.x86.tileloadd64(i8, ptr, i64)
declare void @llvm.x86.tdpbf16ps(i8, i8, i8)
declare void @llvm.x86.tilestored64(i8, ptr, i64)
declare void @llvm.x86.tilerelease()
define void @multiply(ptr %config, ptr %ones, ptr %product) {
  call void @llvm.x86.ldtilecfg(ptr %config)
  call void @llvm.x86.tilezero(i8 0)
  call void @llvm.x86.tileloadd64(i8 1, ptr %ones, i64 64)
  call void @llvm.x86.tileloadd64(i8 2, ptr %ones, i64 64)
  call void @llvm.x86.tdpbf16ps(i8 0, i8 1, i8 2)
  call void @llvm.x86.tilestored64(i8 0, ptr %product, i64 64)
  call void @llvm.x86.tilerelease()
  ret void
}
"""
_ROWS, _ROW_BYTES = 16, 64
_BF16_ONE = 0x3F80


def cpuid(leaf: int, subleaf: int) -> tuple[int, int, int, int]:
    """Registers eax, ebx, ecx, edx after the CPUID instruction."""
    library = _cpuid_library()
    registers = (ctypes.c_uint32 * 4)()
    call = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(library["cpuid"])
    call(leaf, subleaf, ctypes.addressof(registers))
    return registers[0], registers[1], registers[2], registers[3]


def multiply_tile() -> bool:
    """Multiply two 16 x 32 tiles of bf16 ones; true when all 256 sums are 32.

    Traps where tiles are not permitted: the caller has made sure that they are.
    """
    library = link("tile probe", compile_to_object(_TILE_IR, "+amx-tile,+amx-bf16"), ("multiply",), {})
    config = (ctypes.c_uint8 * 64)()
    config[0] = 1  # palette
    for tile in range(3):
        config[16 + 2 * tile] = _ROW_BYTES  # columns in bytes, 16 bits each
        config[48 + tile] = _ROWS
    ones = (ctypes.c_uint16 * (_ROWS * _ROW_BYTES // 2))(*[_BF16_ONE] * (_ROWS * _ROW_BYTES // 2))
    product = (ctypes.c_float * (_ROWS * _ROW_BYTES // 4))()
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(library["multiply"])
    call(ctypes.addressof(config), ctypes.addressof(ones), ctypes.addressof(product))
    return all(value == 32.0 for value in product)


@functools.cache
def _cpuid_library():  # type: ignore[no-untyped-def]  # llvmlite's handle, which has no type
    return link("cpuid", compile_to_object(_CPUID_IR, ""), ("cpuid",), {})
