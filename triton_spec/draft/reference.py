"""What the slot ops mean, in plain PyTorch. The docstrings of the launchers beside this file say the rest."""

from __future__ import annotations

import torch

from triton_spec.draft.arguments import require_slot_arguments


def assign_req_to_token_pool(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start_offset: torch.Tensor,
    end_offset: torch.Tensor,
    out_cache_loc: torch.Tensor,
) -> None:
    """``req_to_token[req, start:end]`` of each request = its slots, which follow one another in ``out_cache_loc``."""
    require_slot_arguments(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc)
    places, rows, positions = _places(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc)
    req_to_token[rows, positions] = out_cache_loc[places].to(req_to_token.dtype)


def assign_extend_cache_locs(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start_offset: torch.Tensor,
    end_offset: torch.Tensor,
    out_cache_loc: torch.Tensor,
) -> None:
    """``out_cache_loc`` = the slots ``req_to_token[req, start:end]`` of the requests, one after another."""
    require_slot_arguments(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc)
    places, rows, positions = _places(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc)
    out_cache_loc[places] = req_to_token[rows, positions].to(out_cache_loc.dtype)


def _places(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start_offset: torch.Tensor,
    end_offset: torch.Tensor,
    out_cache_loc: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Places in out_cache_loc, with the row and the position of req_to_token that belong to each; those that exist."""
    lengths = (end_offset.long() - start_offset.long()).clamp(min=0)
    rows = req_pool_indices.long().repeat_interleave(lengths)
    places = torch.arange(len(rows), device=rows.device)
    positions = places + (start_offset.long() - lengths.cumsum(0) + lengths).repeat_interleave(lengths)
    known = (rows >= 0) & (rows < req_to_token.shape[0]) & (places < len(out_cache_loc))
    known &= (positions >= 0) & (positions < req_to_token.shape[1])
    return places[known], rows[known], positions[known]
