"""Argument checks of the accept ops, shared by their references and their launchers.

Each raises ``ValueError`` or ``TypeError`` naming the argument that does not fit.
"""

from __future__ import annotations

import torch

from triton_spec.checks import require_contiguous, require_dtype, require_indices, require_same_device, require_shape


def require_bonus_arguments(
    accept_tokens: torch.Tensor, accept_lens: torch.Tensor, bonus_tokens: torch.Tensor, stride: int
) -> None:
    """Indices accept_tokens [b * stride], accept_lens and bonus_tokens [b]."""
    require_indices("accept_lens", accept_lens, (None,))
    batch = accept_lens.shape[0]
    if stride < 1:
        raise ValueError(f"stride is {stride}, expected the width of accept_index, at least 1")
    require_indices("accept_tokens", accept_tokens, (batch * stride,))
    require_indices("bonus_tokens", bonus_tokens, (batch,))
    require_same_device(accept_tokens=accept_tokens, accept_lens=accept_lens, bonus_tokens=bonus_tokens)


def require_compact_arguments(
    accept_index: torch.Tensor, out_cache_loc: torch.Tensor, accept_out_cache_loc: torch.Tensor
) -> None:
    """Indices accept_index [b, W], out_cache_loc [b * n], accept_out_cache_loc [b * W]."""
    require_indices("accept_index", accept_index, (None, None))
    require_indices("out_cache_loc", out_cache_loc, (None,))
    require_indices("accept_out_cache_loc", accept_out_cache_loc, (accept_index.numel(),))
    require_same_device(
        accept_index=accept_index, out_cache_loc=out_cache_loc, accept_out_cache_loc=accept_out_cache_loc
    )


def require_copy_arguments(
    data_ptrs: torch.Tensor, row_strides: torch.Tensor, tgt_loc: torch.Tensor, src_loc: torch.Tensor
) -> None:
    """data_ptrs uint64 [buffers], row_strides int64 [buffers], tgt_loc and src_loc indices [M]."""
    require_dtype("data_ptrs", data_ptrs, torch.uint64)
    require_shape("data_ptrs", data_ptrs, (None,))
    require_contiguous("data_ptrs", data_ptrs)
    require_dtype("row_strides", row_strides, torch.int64)
    require_shape("row_strides", row_strides, data_ptrs.shape)
    require_contiguous("row_strides", row_strides)
    require_indices("tgt_loc", tgt_loc, (None,))
    require_indices("src_loc", src_loc, tgt_loc.shape)
    require_same_device(data_ptrs=data_ptrs, row_strides=row_strides, tgt_loc=tgt_loc, src_loc=src_loc)
    if row_strides.numel() and int(row_strides.min()) < 0:
        raise ValueError(f"row_strides has {int(row_strides.min())}, expected bytes from a row to the next")
