"""Products: a plain blocked kernel, the tutorial's, and the linear layer, against oneDNN, which PyTorch calls."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from benchmarks.case import Case
from benchmarks.timer import Run
from examples.tutorials.matmul import BLOCKS, matmul_kernel
from triton_spec.layers.linear import linear

TILE = 64  # rows and columns of a program
DEPTH = 64  # elements of K per step
LAYOUTS = ("KN", "NK")  # of the second operand in memory
BF16_TOLERANCE = 1e-2  # one rounding of the result is 4e-3 of it


@triton.jit
def plain_kernel(a, b, c, N, K, b_k, b_n, TILE: tl.constexpr, DEPTH: tl.constexpr, SUMS: tl.constexpr):
    """c [M, N] = a [M, K] @ b, row-major but for b; every size is a multiple of its tile."""
    m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, DEPTH)
    a_at = a + m[:, None] * K + k[None, :]
    b_at = b + k[:, None] * b_k + n[None, :] * b_n
    sums = tl.zeros((TILE, TILE), SUMS)
    for _ in range(0, K, DEPTH):
        sums = tl.dot(tl.load(a_at), tl.load(b_at), sums, out_dtype=SUMS)
        a_at += DEPTH
        b_at += DEPTH * b_k
    tl.store(c + m[:, None] * N + n[None, :], sums.to(c.dtype.element_ty))


def cases(tiny: bool = False) -> Iterator[Case]:
    """All of the family; `tiny`: on the smallest operands."""
    sizes = (TILE,) if tiny else (512, 1024)
    products = [
        *(
            (f"bf16/{size}/{layout}", partial(_plain, size, torch.bfloat16, layout))
            for size in sizes
            for layout in LAYOUTS
        ),
        *((f"bf16/{size}/tutorial", partial(_tutorial, size, torch.bfloat16)) for size in sizes),
    ]
    for name, make in products:
        yield Case(f"matmul/{name}", "torch.mm(out=)", make, BF16_TOLERANCE, bars=(0.9, 1.2))
    half = partial(_tutorial, sizes[0], torch.float16)  # PyTorch takes seconds for the larger one
    yield Case(f"matmul/f16/{sizes[0]}/tutorial", "torch.mm(out=)", half, BF16_TOLERANCE)
    for size in sizes:
        integers = partial(_plain, size, torch.int8, "NK")
        yield Case(f"matmul/int8/{size}/NK", "torch._int_mm(out=)", integers, 0.0, bars=(1.2, 1.2))
    rows, columns, depth = (16, 64, 64) if tiny else (16, 4096, 4096)
    layer = partial(_linear, rows, columns, depth)
    yield Case(f"linear/bf16/{rows}x{columns}x{depth}", "F.linear", layer, BF16_TOLERANCE, bars=(1.15, 1.15))


def _operands(size: int, dtype: torch.dtype, layout: str) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = torch.randn(2, size, size).unbind()
    if dtype is torch.int8:
        a, b = (40 * a).round().clamp(-128, 127), (40 * b).round().clamp(-128, 127)
    return a.to(dtype), (b.T if layout == "NK" else b).to(dtype)


def _plain(size: int, dtype: torch.dtype, layout: str) -> tuple[Run, Run]:
    a, b = _operands(size, dtype, layout)
    integers = dtype is torch.int8
    out, expected = torch.empty(2, size, size, dtype=torch.int32 if integers else dtype).unbind()
    grid, sums = (size // TILE, size // TILE), tl.int32 if integers else tl.float32
    multiply = torch._int_mm if integers else torch.mm

    def ours() -> torch.Tensor:
        plain_kernel[grid](a, b, out, size, size, *b.stride(), TILE=TILE, DEPTH=DEPTH, SUMS=sums)
        return out

    return ours, lambda: multiply(a, b, out=expected)


def _tutorial(size: int, dtype: torch.dtype) -> tuple[Run, Run]:
    a, b = _operands(size, dtype, "KN")
    out, expected = torch.empty(2, size, size, dtype=dtype).unbind()
    grid = (triton.cdiv(size, BLOCKS["BM"]) * triton.cdiv(size, BLOCKS["BN"]),)

    def ours() -> torch.Tensor:
        sizes = (size,) * 3
        matmul_kernel[grid](
            a, b, out, *sizes, *a.stride(), *b.stride(), *out.stride(), ACTIVATION=None, **BLOCKS
        )  # fmt: skip
        return out

    return ours, lambda: torch.mm(a, b, out=expected)


def _linear(rows: int, columns: int, depth: int) -> tuple[Run, Run]:
    x, weight = torch.randn(rows, depth).bfloat16(), torch.randn(columns, depth).bfloat16()
    return lambda: linear(x, weight), lambda: F.linear(x, weight)
