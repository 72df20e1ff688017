"""What the accept ops mean, in plain PyTorch. The docstrings of the launchers beside this file say the rest."""

from __future__ import annotations

import ctypes

import torch

from triton_spec.accept.arguments import require_bonus_arguments, require_compact_arguments, require_copy_arguments


def fill_bonus_tokens(
    accept_tokens: torch.Tensor, accept_lens: torch.Tensor, bonus_tokens: torch.Tensor, stride: int
) -> None:
    """``bonus_tokens[r]`` = token ``accept_lens[r] - 1`` of row r of ``accept_tokens`` [b, stride]."""
    require_bonus_arguments(accept_tokens, accept_lens, bonus_tokens, stride)
    known = (accept_lens >= 1) & (accept_lens <= stride)
    rows = known.nonzero().flatten()
    bonus_tokens[rows] = accept_tokens.view(-1, stride)[rows, accept_lens[rows].long() - 1].to(bonus_tokens.dtype)


def fill_accept_out_cache_loc(
    accept_index: torch.Tensor, out_cache_loc: torch.Tensor, accept_out_cache_loc: torch.Tensor
) -> None:
    """``accept_out_cache_loc`` = ``out_cache_loc`` at the entries of ``accept_index`` that are not -1, in order."""
    require_compact_arguments(accept_index, out_cache_loc, accept_out_cache_loc)
    accepted = accept_index[(accept_index >= 0) & (accept_index < len(out_cache_loc))].long()
    accept_out_cache_loc[: len(accepted)] = out_cache_loc[accepted].to(accept_out_cache_loc.dtype)


def copy_all_layer_kv_cache(
    data_ptrs: torch.Tensor, row_strides: torch.Tensor, tgt_loc: torch.Tensor, src_loc: torch.Tensor
) -> None:
    """In every buffer: rows ``tgt_loc`` = what rows ``src_loc`` held before the call. Buffers in CPU memory only."""
    require_copy_arguments(data_ptrs, row_strides, tgt_loc, src_loc)
    if data_ptrs.device.type != "cpu":
        raise ValueError(f"data_ptrs is on {data_ptrs.device}: the reference reads addresses of CPU memory only")
    known = (tgt_loc >= 0) & (src_loc >= 0)
    target, source = tgt_loc[known].long(), src_loc[known].long()
    if not len(target):
        return
    rows = 1 + int(torch.maximum(target, source).max())
    for address, row_bytes in zip(data_ptrs.tolist(), row_strides.tolist(), strict=True):
        if row_bytes:
            memory = (ctypes.c_uint8 * (rows * row_bytes)).from_address(address)
            buffer = torch.frombuffer(memory, dtype=torch.uint8).view(rows, row_bytes)
            buffer[target] = buffer[source]
