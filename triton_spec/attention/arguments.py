"""Argument checks that extend and decode attention share."""

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


def require_attention_arguments(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    req_to_token: torch.Tensor,
    req_pool_indices: torch.Tensor,
    seq_lens: torch.Tensor,
) -> None:
    """Raise ValueError or TypeError unless the arguments fit each other, naming the one that does not."""
    require_dtype("q", q, FLOAT_DTYPES)
    require_shape("q", q, (None, None, None))
    heads, head_dim = q.shape[1:]
    require_shape("k_cache", k_cache, (None, None, head_dim))
    require_shape("v_cache", v_cache, k_cache.shape)
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        require_dtype(name, cache, q.dtype)
        require_last_dim_contiguous(name, cache)
    require_last_dim_contiguous("q", q)
    kv_heads = k_cache.shape[1]
    if kv_heads == 0 or heads % kv_heads:
        raise ValueError(f"q has {heads} heads and k_cache {kv_heads}: expected a multiple")
    require_dtype("req_to_token", req_to_token, INDEX_DTYPES)
    require_shape("req_to_token", req_to_token, (None, None))
    require_last_dim_contiguous("req_to_token", req_to_token)
    for name, index in (("req_pool_indices", req_pool_indices), ("seq_lens", seq_lens)):
        require_dtype(name, index, INDEX_DTYPES)
        require_shape(name, index, seq_lens.shape[:1])
        require_contiguous(name, index)
    require_same_device(
        q=q,
        k_cache=k_cache,
        v_cache=v_cache,
        req_to_token=req_to_token,
        req_pool_indices=req_pool_indices,
        seq_lens=seq_lens,
    )
