"""The gated activation of Llama-family feed-forward layers."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_spec.language.exact import EXACT
from triton_spec.layers.arguments import require_silu_and_mul_arguments

BLOCK = 256  # elements per program


@triton.jit
def silu_and_mul_kernel(x, y, width, stride_x, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    gate = tl.load(x + row * stride_x + columns, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + row * stride_x + width + columns, mask=inside, other=0.0).to(tl.float32)
    silu = (gate / (1.0 + tl.exp(-gate))).to(y.dtype.element_ty).to(tl.float32)
    tl.store(y + row * width + columns, (silu * up).to(y.dtype.element_ty), mask=inside)


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """``silu(x[:, :I]) * x[:, I:]``: silu in f32, rounded to x's dtype, then the product in that dtype.

    x [M, 2I] bf16, f16 or f32, rows at any stride; the result [M, I] has x's dtype.
    Raises ValueError or TypeError for other shapes, dtypes or strides.
    """
    require_silu_and_mul_arguments(x)
    rows, width = x.shape[0], x.shape[1] // 2
    y = torch.empty((rows, width), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    silu_and_mul_kernel[(rows, triton.cdiv(width, BLOCK))](x, y, width, x.stride(0), BLOCK=BLOCK, **EXACT)
    return y
