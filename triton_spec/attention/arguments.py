"""Argument checks of the attention ops, shared by their references and their launchers."""

from __future__ import annotations

import torch

from triton_spec.checks import (
    FLOAT_DTYPES,
    INDEX_DTYPES,
    require_contiguous,
    require_dtype,
    require_indices,
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
    require_indices("seq_lens", seq_lens, (None,))
    require_indices("req_pool_indices", req_pool_indices, seq_lens.shape)
    require_same_device(
        q=q,
        k_cache=k_cache,
        v_cache=v_cache,
        req_to_token=req_to_token,
        req_pool_indices=req_pool_indices,
        seq_lens=seq_lens,
    )


def require_extend_arguments(
    q: torch.Tensor,
    seq_lens: torch.Tensor,
    extend_seq_lens: torch.Tensor,
    extend_start_loc: torch.Tensor,
    max_extend_len: int,
    tree_mask: torch.Tensor | None,
) -> None:
    """Raise ValueError or TypeError unless the description of the new tokens fits q and the requests."""
    require_indices("extend_seq_lens", extend_seq_lens, seq_lens.shape)
    require_indices("extend_start_loc", extend_start_loc, seq_lens.shape)
    require_same_device(q=q, extend_seq_lens=extend_seq_lens, extend_start_loc=extend_start_loc, tree_mask=tree_mask)
    if q.shape[0] and not seq_lens.shape[0]:
        raise ValueError(f"q has {q.shape[0]} rows and there are no requests for them")
    if q.shape[0] and max_extend_len < 1:
        raise ValueError(f"max_extend_len is {max_extend_len} for {q.shape[0]} rows of q, expected at least 1")
    if tree_mask is not None:
        require_dtype("tree_mask", tree_mask, torch.bool)
        require_contiguous("tree_mask", tree_mask)
        requests = seq_lens.shape[0]
        elements = requests * max_extend_len * max_extend_len
        if tree_mask.numel() != elements or q.shape[0] != requests * max_extend_len:
            raise ValueError(
                f"tree_mask has {tree_mask.numel()} elements and q {q.shape[0]} rows: {requests} requests of "
                f"max_extend_len = {max_extend_len} nodes need {elements} and {requests * max_extend_len}"
            )
