"""Argument checks of the layer ops, shared by their references and their launchers.

Each raises ``ValueError`` or ``TypeError`` naming the argument that does not fit.
"""

from __future__ import annotations

import torch

from triton_spec.checks import (
    FLOAT_DTYPES,
    INDEX_DTYPES,
    require_contiguous,
    require_dtype,
    require_last_dim_contiguous,
    require_same_device,
    require_shape,
)


def require_linear_arguments(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, out_dtype: torch.dtype | None
) -> None:
    """x [M, K] and weight [N, K] of one float dtype, bias [N] of any float dtype."""
    require_dtype("x", x, FLOAT_DTYPES)
    require_shape("x", x, (None, None))
    require_dtype("weight", weight, x.dtype)
    require_shape("weight", weight, (None, x.shape[1]))
    require_last_dim_contiguous("x", x)
    require_last_dim_contiguous("weight", weight)
    if bias is not None:
        require_dtype("bias", bias, FLOAT_DTYPES)
        require_shape("bias", bias, weight.shape[:1])
        require_last_dim_contiguous("bias", bias)
    require_same_device(x=x, weight=weight, bias=bias)
    if out_dtype not in (None, *FLOAT_DTYPES):
        raise TypeError(f"out_dtype is {out_dtype}, expected {' or '.join(map(str, FLOAT_DTYPES))}")


def require_rms_norm_arguments(x: torch.Tensor, weight: torch.Tensor, residual: torch.Tensor | None) -> None:
    """x [M, H] and weight [H] of one float dtype, residual [M, H] of any float dtype."""
    require_dtype("x", x, FLOAT_DTYPES)
    require_shape("x", x, (None, None))
    require_dtype("weight", weight, x.dtype)
    require_shape("weight", weight, x.shape[1:])
    require_last_dim_contiguous("x", x)
    require_last_dim_contiguous("weight", weight)
    if residual is not None:
        require_dtype("residual", residual, FLOAT_DTYPES)
        require_shape("residual", residual, x.shape)
        require_last_dim_contiguous("residual", residual)
    require_same_device(x=x, weight=weight, residual=residual)


def require_rotary_arguments(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, positions: torch.Tensor
) -> None:
    """q [M, Hq, D] and k [M, Hk, D] of one float dtype, D even; cos and sin [P, D/2] f32; positions [M]."""
    require_dtype("q", q, FLOAT_DTYPES)
    require_shape("q", q, (None, None, None))
    rows, _, head_dim = q.shape
    require_dtype("k", k, q.dtype)
    require_shape("k", k, (rows, None, head_dim))
    if head_dim % 2:
        raise ValueError(f"q has head size {head_dim}, expected an even one")
    require_last_dim_contiguous("q", q)
    require_last_dim_contiguous("k", k)
    require_shape("cos", cos, (None, head_dim // 2))
    require_shape("sin", sin, cos.shape)
    for name, table in (("cos", cos), ("sin", sin)):
        require_dtype(name, table, torch.float32)
        require_contiguous(name, table)
    require_dtype("positions", positions, INDEX_DTYPES)
    require_shape("positions", positions, (rows,))
    require_contiguous("positions", positions)
    require_same_device(q=q, k=k, cos=cos, sin=sin, positions=positions)


def require_silu_and_mul_arguments(x: torch.Tensor) -> None:
    """x [M, 2I], a float dtype."""
    require_dtype("x", x, FLOAT_DTYPES)
    require_shape("x", x, (None, None))
    if x.shape[1] % 2:
        raise ValueError(f"x has {x.shape[1]} columns, expected an even number: a gate and an up half")
    require_last_dim_contiguous("x", x)


def require_store_kv_cache_arguments(
    k: torch.Tensor, v: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, loc: torch.Tensor
) -> None:
    """k [M, Hk, D], v [M, Hk, Dv], k_cache [slots, Hk, D], v_cache [slots, Hk, Dv] of one float dtype; loc [M]."""
    require_dtype("k", k, FLOAT_DTYPES)
    require_shape("k", k, (None, None, None))
    rows, heads, key_dim = k.shape
    require_shape("v", v, (rows, heads, None))
    require_shape("k_cache", k_cache, (None, heads, key_dim))
    require_shape("v_cache", v_cache, (k_cache.shape[0], heads, v.shape[2]))
    for name, tensor in (("k", k), ("v", v), ("k_cache", k_cache), ("v_cache", v_cache)):
        require_dtype(name, tensor, k.dtype)
        require_last_dim_contiguous(name, tensor)
    require_dtype("loc", loc, INDEX_DTYPES)
    require_shape("loc", loc, (rows,))
    require_contiguous("loc", loc)
    require_same_device(k=k, v=v, k_cache=k_cache, v_cache=v_cache, loc=loc)
