"""Linear layer: the same kernel, and the same bits of a row, whatever the number of rows."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_spec.language.exact import EXACT
from triton_spec.language.tiles import load_tile
from triton_spec.layers.arguments import require_linear_arguments

COLUMN_TILE = 32  # weight rows per program: narrow, so that the smallest layers still feed every thread


@triton.jit(do_not_specialize=["M"])
def linear_kernel(x, weight, bias, y, M, N, K, stride_x, stride_w,
                  BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                  EVEN_M: tl.constexpr, EVEN_N: tl.constexpr, EVEN_K: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    columns = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    x_tile = x + rows[:, None] * stride_x + ks[None, :]
    weight_tile = weight + columns[:, None] * stride_w + ks[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = load_tile(x_tile + k, rows < M, ks < K - k, EVEN_M, EVEN_K)
        b = load_tile(weight_tile + k, columns < N, ks < K - k, EVEN_N, EVEN_K)
        acc = tl.dot(a, tl.trans(b), acc, input_precision="ieee")
    if bias is not None:
        if EVEN_N:
            acc += tl.load(bias + columns).to(tl.float32)[None, :]
        else:
            acc += tl.load(bias + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    out = acc.to(y.dtype.element_ty)
    y_tile = y + rows[:, None] * N + columns[None, :]
    if EVEN_M and EVEN_N:
        tl.store(y_tile, out)
    else:
        tl.store(y_tile, out, mask=(rows < M)[:, None] & (columns < N)[None, :])


def row_tile(rows: int) -> int:
    """Rows per program: the next power of two up to 16, then 32 or 64. It does not change any bit."""
    return next(tile for tile in (1, 2, 4, 8, 16, 32, 64) if tile >= min(rows, 64))


def depth_tile(depth: int) -> int:
    """Elements of K per step: the widest power of two in 32..256 that divides K, else one that is masked at the end."""
    for tile in (256, 128, 64, 32):
        if depth % tile == 0:
            return tile
    return min(256, max(16, triton.next_power_of_2(depth)))


def linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    """``x @ weight.T + bias``, summed in f32 and rounded once.

    x [M, K] and weight [N, K] of one dtype (bf16, f16 or f32), rows at any stride; bias [N] or None; the result
    [M, N] has ``out_dtype``, or x's dtype. The bits of a row do not depend on M or on the row's place.
    Raises ValueError or TypeError for other shapes, dtypes, devices or strides.
    """
    require_linear_arguments(x, weight, bias, out_dtype)
    (rows, depth), columns = x.shape, weight.shape[0]
    y = torch.empty((rows, columns), dtype=out_dtype or x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    bm, bn, bk = row_tile(rows), COLUMN_TILE, depth_tile(depth)
    grid = (triton.cdiv(rows, bm), triton.cdiv(columns, bn))
    linear_kernel[grid](x, weight, bias, y, rows, columns, depth, x.stride(0), weight.stride(0),
                        BM=bm, BN=bn, BK=bk, EVEN_M=rows % bm == 0, EVEN_N=columns % bn == 0,
                        EVEN_K=depth % bk == 0, **EXACT)  # fmt: skip
    return y
