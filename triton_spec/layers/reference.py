"""What the layer ops mean, in plain PyTorch. The docstrings of the launchers beside this file say the rest."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from triton_spec.layers.arguments import (
    require_linear_arguments,
    require_rms_norm_arguments,
    require_rotary_arguments,
    require_silu_and_mul_arguments,
    require_store_kv_cache_arguments,
)


def linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    """``x [M, K] @ weight [N, K].T + bias [N]`` in f32, rounded once to ``out_dtype`` (x's dtype if None)."""
    require_linear_arguments(x, weight, bias, out_dtype)
    y = F.linear(x.float(), weight.float(), None if bias is None else bias.float())
    return y.to(out_dtype or x.dtype)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float, residual: torch.Tensor | None = None) -> torch.Tensor:
    """RMS norm of x [M, H], or of ``residual += x`` [M, H], in f32; rounded to x's dtype before weight [H] applies."""
    require_rms_norm_arguments(x, weight, residual)
    stream = x.float()
    if residual is not None:
        residual.copy_(stream + residual.float())
        stream = residual.float()
    normed = stream * torch.rsqrt(stream.square().mean(-1, keepdim=True) + eps)
    return weight * normed.to(x.dtype)


def rotary(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, positions: torch.Tensor) -> None:
    """Rotate the pairs (i, i + D/2) of q [M, Hq, D] and k [M, Hk, D] in place by the angles of ``positions`` [M].

    cos and sin [P, D/2]; a position outside 0..P-1 makes its row NaN.
    """
    require_rotary_arguments(q, k, cos, sin, positions)
    known = (positions >= 0) & (positions < cos.shape[0])
    angles = torch.full((2, positions.shape[0], 1, cos.shape[1]), float("nan"), device=q.device)
    angles[:, known, 0] = torch.stack((cos, sin))[:, positions[known].long()]
    cosine, sine = angles
    for heads in (q, k):
        first, second = heads.float().chunk(2, -1)
        heads.copy_(torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1))


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """``silu(gate) * up`` for x [M, 2I] = (gate, up); silu is rounded to x's dtype before the product."""
    require_silu_and_mul_arguments(x)
    gate, up = x.chunk(2, -1)
    return F.silu(gate.float()).to(x.dtype) * up


def store_kv_cache(
    k: torch.Tensor, v: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, loc: torch.Tensor
) -> None:
    """``k_cache[loc] = k; v_cache[loc] = v``; rows whose slot lies outside the cache are not written."""
    require_store_kv_cache_arguments(k, v, k_cache, v_cache, loc)
    known = (loc >= 0) & (loc < k_cache.shape[0])
    slots = loc[known].long()
    k_cache[slots] = k[known]
    v_cache[slots] = v[known]
