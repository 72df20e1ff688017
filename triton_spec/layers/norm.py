"""RMS norm, alone or after adding to the residual stream."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_spec.language.exact import EXACT
from triton_spec.layers.arguments import require_rms_norm_arguments


@triton.jit
def rms_norm_kernel(x, weight, residual, y, H, eps, stride_x, stride_residual, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < H
    value = tl.load(x + row * stride_x + columns, mask=inside, other=0.0).to(tl.float32)
    if residual is not None:
        place = residual + row * stride_residual + columns
        stream = (value + tl.load(place, mask=inside, other=0.0).to(tl.float32)).to(residual.dtype.element_ty)
        tl.store(place, stream, mask=inside)
        value = stream.to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / H + eps)
    normed = (value * scale).to(y.dtype.element_ty).to(tl.float32)
    gain = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * H + columns, (normed * gain).to(y.dtype.element_ty), mask=inside)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float, residual: torch.Tensor | None = None) -> torch.Tensor:
    """``x / sqrt(mean(x^2) + eps)`` in f32, rounded to x's dtype, then times ``weight`` in that dtype.

    x [M, H] and weight [H] of one dtype (bf16, f16 or f32). With residual [M, H]: ``residual += x`` in place, rounded
    to its dtype, and the norm of that sum is returned. Rows at any stride. The order of roundings is that of the Llama
    family in transformers. Raises ValueError or TypeError for other shapes, dtypes, devices or strides.
    """
    require_rms_norm_arguments(x, weight, residual)
    rows, hidden = x.shape
    y = torch.empty((rows, hidden), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    stride_residual = 0 if residual is None else residual.stride(0)
    rms_norm_kernel[(rows,)](x, weight, residual, y, hidden, eps, x.stride(0), stride_residual,
                             BLOCK=triton.next_power_of_2(hidden), **EXACT)  # fmt: skip
    return y
