"""Argument checks of the slot ops, shared by their references and their launchers."""

from __future__ import annotations

import torch

from triton_spec.checks import (
    INDEX_DTYPES,
    require_dtype,
    require_indices,
    require_last_dim_contiguous,
    require_same_device,
    require_shape,
)


def require_slot_arguments(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start_offset: torch.Tensor,
    end_offset: torch.Tensor,
    out_cache_loc: torch.Tensor,
) -> None:
    """Indices req_to_token [requests, width], out_cache_loc [T], and the others [b]."""
    require_dtype("req_to_token", req_to_token, INDEX_DTYPES)
    require_shape("req_to_token", req_to_token, (None, None))
    require_last_dim_contiguous("req_to_token", req_to_token)
    require_indices("req_pool_indices", req_pool_indices, (None,))
    require_indices("start_offset", start_offset, req_pool_indices.shape)
    require_indices("end_offset", end_offset, req_pool_indices.shape)
    require_indices("out_cache_loc", out_cache_loc, (None,))
    require_same_device(
        req_pool_indices=req_pool_indices,
        req_to_token=req_to_token,
        start_offset=start_offset,
        end_offset=end_offset,
        out_cache_loc=out_cache_loc,
    )
