"""Move rows of the KV cache, in every layer's buffers at once."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_spec.accept.arguments import require_copy_arguments

TILE = 1024  # bytes copied at once


@triton.jit(do_not_specialize=["rows", "row_capacity"])
def copy_rows_kernel(data_ptrs, row_strides, locations, others, scratch, rows, row_capacity,
                     GATHER: tl.constexpr, TILE: tl.constexpr):  # fmt: skip
    """One program: a row of a buffer, from its location into the scratch memory or back."""
    row = tl.program_id(0).to(tl.int64)
    buffer = tl.program_id(1).to(tl.int64)
    size = tl.load(row_strides + buffer)
    location = tl.load(locations + row).to(tl.int64)
    if (location < 0) | (tl.load(others + row) < 0):
        size = size * 0
    place = tl.load(data_ptrs + buffer).to(tl.pointer_type(tl.uint8)) + location * size
    kept = scratch + (buffer * rows + row) * row_capacity
    lanes = tl.arange(0, TILE)
    for first in range(0, size, TILE):
        inside = first + lanes < size
        if GATHER:
            tl.store(kept + first + lanes, tl.load(place + first + lanes, mask=inside), mask=inside)
        else:
            tl.store(place + first + lanes, tl.load(kept + first + lanes, mask=inside), mask=inside)


def copy_all_layer_kv_cache(
    data_ptrs: torch.Tensor, row_strides: torch.Tensor, tgt_loc: torch.Tensor, src_loc: torch.Tensor
) -> None:
    """In every buffer: rows ``tgt_loc`` = what rows ``src_loc`` held before the call, so rows may overlap at will.

    data_ptrs uint64 [buffers]: addresses of the buffers of all layers, keys and values; row_strides int64 [buffers]:
    bytes from one row to the next in each, all of which are copied. tgt_loc, src_loc [M] int32 or int64: rows that lie
    in every buffer (there is no size to check them by); a pair with a negative one is skipped. Where tgt_loc repeats a
    row, which one stays is open. Everything on the device of the buffers.
    Raises ValueError or TypeError for other shapes, dtypes, devices or strides.
    """
    require_copy_arguments(data_ptrs, row_strides, tgt_loc, src_loc)
    buffers, rows = data_ptrs.shape[0], tgt_loc.shape[0]
    if buffers == 0 or rows == 0:
        return
    # All rows are read before any is written, however they overlap: two launches, so that no kernel depends on M.
    capacity = triton.cdiv(int(row_strides.max()), TILE) * TILE
    scratch = torch.empty(buffers * rows * capacity, dtype=torch.uint8, device=data_ptrs.device)
    addresses, grid = data_ptrs.view(torch.int64), (rows, buffers)
    copy_rows_kernel[grid](addresses, row_strides, src_loc, tgt_loc, scratch, rows, capacity, GATHER=True, TILE=TILE)
    copy_rows_kernel[grid](addresses, row_strides, tgt_loc, src_loc, scratch, rows, capacity, GATHER=False, TILE=TILE)
