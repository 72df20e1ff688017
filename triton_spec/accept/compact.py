"""The slots of accepted nodes, without the gaps between requests."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_spec.accept.arguments import require_compact_arguments

BLOCK = 128  # entries counted at once


@triton.jit(do_not_specialize=["width", "total"])
def fill_accept_out_cache_loc_kernel(accept_index, out_cache_loc, accept_out_cache_loc, width, total,
                                     BLOCK: tl.constexpr):  # fmt: skip
    """One program: a request. Its slots follow those of the requests before it."""
    start = tl.program_id(0).to(tl.int64) * width
    lanes = tl.arange(0, BLOCK)
    before = tl.zeros((BLOCK,), tl.int64)
    for first in range(0, start, BLOCK):
        entries = tl.load(accept_index + first + lanes, mask=first + lanes < start, other=-1)
        before += tl.where((entries >= 0) & (entries < total), 1, 0)
    target = accept_out_cache_loc + tl.sum(before, 0)
    for column in range(width):
        entry = tl.load(accept_index + start + column).to(tl.int64)
        known = (entry >= 0) & (entry < total)
        slot = tl.load(out_cache_loc + entry, mask=known, other=0)
        tl.store(target, slot.to(accept_out_cache_loc.dtype.element_ty), mask=known)
        target += tl.where(known, 1, 0)


def fill_accept_out_cache_loc(
    accept_index: torch.Tensor, out_cache_loc: torch.Tensor, accept_out_cache_loc: torch.Tensor
) -> None:
    """The slots of all accepted nodes of the batch, one after another, at the front of ``accept_out_cache_loc``.

    accept_index [b, W]: flat numbers of the accepted nodes, -1 elsewhere; out_cache_loc [b * n]: the slots of all
    nodes; accept_out_cache_loc [b * W]: written in place, its tail keeps the caller's fill (0). All int32 or int64,
    contiguous. A number outside 0..b*n-1 counts as -1.
    Raises ValueError or TypeError for other shapes, dtypes, devices or strides.
    """
    require_compact_arguments(accept_index, out_cache_loc, accept_out_cache_loc)
    batch, width = accept_index.shape
    if batch and width:
        fill_accept_out_cache_loc_kernel[(batch,)](
            accept_index, out_cache_loc, accept_out_cache_loc, width, out_cache_loc.shape[0], BLOCK=BLOCK)  # fmt: skip
