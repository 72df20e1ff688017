"""Slots of the KV cache between a flat list and the rows of the request table."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_spec.draft.arguments import require_slot_arguments

BLOCK = 128  # positions copied at once


@triton.jit(do_not_specialize=["requests", "width", "total"])
def slots_kernel(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, requests, width, total,
                 stride, TO_TABLE: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """One program: a request. Its slots begin in out_cache_loc where those of the requests before it end."""
    request = tl.program_id(0).to(tl.int64)
    first = request * 0
    for other in range(request):
        first += tl.maximum(tl.load(end_offset + other).to(tl.int64) - tl.load(start_offset + other).to(tl.int64), 0)
    start = tl.load(start_offset + request).to(tl.int64)
    length = tl.load(end_offset + request).to(tl.int64) - start
    index = tl.load(req_pool_indices + request).to(tl.int64)
    if (index < 0) | (index >= requests):
        length = length * 0
    table = req_to_token + index * stride + start
    slots = out_cache_loc + first
    lanes = tl.arange(0, BLOCK)
    for done in range(0, length, BLOCK):
        place = done + lanes
        position = start + place
        known = (place < length) & (position >= 0) & (position < width) & (first + place < total)
        if TO_TABLE:
            slot = tl.load(slots + place, mask=known, other=0)
            tl.store(table + place, slot.to(req_to_token.dtype.element_ty), mask=known)
        else:
            slot = tl.load(table + place, mask=known, other=0)
            tl.store(slots + place, slot.to(out_cache_loc.dtype.element_ty), mask=known)


def assign_req_to_token_pool(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start_offset: torch.Tensor,
    end_offset: torch.Tensor,
    out_cache_loc: torch.Tensor,
) -> None:
    """Write the slots of new positions into the request table, the inverse of ``assign_extend_cache_locs``.

    req_pool_indices [b]: the requests' rows of req_to_token [requests, width] (rows at any stride); start_offset,
    end_offset [b]: positions [start, end) of each get slots, none where end <= start; out_cache_loc [T]: their slots,
    request after request. All int32 or int64. Rows and positions outside the table, and slots beyond T, are skipped.
    Raises ValueError or TypeError for other shapes, dtypes, devices or strides.
    """
    require_slot_arguments(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc)
    _launch(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, True)


def assign_extend_cache_locs(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start_offset: torch.Tensor,
    end_offset: torch.Tensor,
    out_cache_loc: torch.Tensor,
) -> None:
    """Read the slots of positions [start, end) of each request from the request table into ``out_cache_loc`` [T].

    Arguments and errors are those of ``assign_req_to_token_pool``. What has no place in the table, and what lies beyond
    the last request's slots, keeps the caller's fill.
    """
    require_slot_arguments(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc)
    _launch(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, False)


def _launch(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start_offset: torch.Tensor,
    end_offset: torch.Tensor,
    out_cache_loc: torch.Tensor,
    to_table: bool,
) -> None:
    batch, (requests, width) = req_pool_indices.shape[0], req_to_token.shape
    if batch:
        slots_kernel[(batch,)](
            req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, requests, width,
            out_cache_loc.shape[0], req_to_token.stride(0), TO_TABLE=to_table, BLOCK=BLOCK)  # fmt: skip
