"""Rotary position embedding of queries and keys, in place."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_spec.language.exact import EXACT
from triton_spec.layers.arguments import require_rotary_arguments


@triton.jit
def _rotate(head, cosine, sine, lanes, inside, HALF: tl.constexpr):
    first = tl.load(head + lanes, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(head + HALF + lanes, mask=inside, other=0.0).to(tl.float32)
    tl.store(head + lanes, (first * cosine - second * sine).to(head.dtype.element_ty), mask=inside)
    tl.store(head + HALF + lanes, (second * cosine + first * sine).to(head.dtype.element_ty), mask=inside)


@triton.jit
def rotary_kernel(q, k, cos, sin, positions, table_length, stride_qm, stride_qh, stride_km, stride_kh,
                  HQ: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    position = tl.load(positions + row).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    inside = lanes < HALF
    known = lanes < tl.where((position >= 0) & (position < table_length), HALF, 0)
    cosine = tl.load(cos + position * HALF + lanes, mask=known, other=float("nan"))
    sine = tl.load(sin + position * HALF + lanes, mask=known, other=float("nan"))
    if head < HQ:
        _rotate(q + row * stride_qm + head * stride_qh, cosine, sine, lanes, inside, HALF)
    else:
        _rotate(k + row * stride_km + (head - HQ) * stride_kh, cosine, sine, lanes, inside, HALF)


def rotary(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, positions: torch.Tensor) -> None:
    """Rotate q and k in place by the angles of their rows' positions, in f32 with one rounding.

    q [M, Hq, D] and k [M, Hk, D] of one dtype (bf16, f16 or f32), D even, tokens and heads at any stride; element i
    pairs with element i + D/2 (the Llama layout). cos and sin [P, D/2] f32, contiguous; positions [M] int32 or int64.
    A position outside 0..P-1 makes its row NaN: nothing outside the tables is read.
    Raises ValueError or TypeError for other shapes, dtypes, devices or strides.
    """
    require_rotary_arguments(q, k, cos, sin, positions)
    rows, query_heads, head_dim = q.shape
    heads = query_heads + k.shape[1]
    if rows == 0 or heads == 0 or head_dim == 0:
        return
    rotary_kernel[(rows, heads)](q, k, cos, sin, positions, cos.shape[0], q.stride(0), q.stride(1), k.stride(0),
                                 k.stride(1), HQ=query_heads, HALF=head_dim // 2,
                                 BLOCK=triton.next_power_of_2(head_dim // 2), **EXACT)  # fmt: skip
