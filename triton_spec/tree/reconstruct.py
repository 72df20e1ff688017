"""Positions and links of draft trees that are given by their mask."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_spec.tree.arguments import require_reconstruct_arguments
from triton_spec.tree.links import insert_child


@triton.jit
def reconstruct_kernel(tree_mask, verified_seq_len, positions,
                       retrieve_index, retrieve_next_token, retrieve_next_sibling,
                       NODES: tl.constexpr, LANES: tl.constexpr):  # fmt: skip
    """One program: a request. Lane i of a vector belongs to node i."""
    request = tl.program_id(0).to(tl.int64)
    row = request * NODES
    lanes = tl.arange(0, LANES)
    inside = lanes < NODES
    length = tl.load(verified_seq_len + request).to(tl.int64)
    next_token = tl.full((LANES,), -1, tl.int32)
    next_sibling = tl.full((LANES,), -1, tl.int32)
    for back in range(1, NODES + 1):
        node = NODES - back
        sees = tl.load(tree_mask + (row + node) * NODES + lanes, mask=lanes < node, other=0) != 0
        tl.store(positions + row + node, (length + tl.sum(sees.to(tl.int32), 0)).to(positions.dtype.element_ty))
        parent = tl.max(tl.where(sees, lanes, -1), 0)
        next_token, next_sibling = insert_child(next_token, next_sibling, lanes, node, parent)
    tl.store(retrieve_index + row + lanes, (row + lanes).to(retrieve_index.dtype.element_ty), mask=inside)
    tl.store(retrieve_next_token + row + lanes, next_token.to(retrieve_next_token.dtype.element_ty), mask=inside)
    tl.store(retrieve_next_sibling + row + lanes, next_sibling.to(retrieve_next_sibling.dtype.element_ty), mask=inside)


def reconstruct_indices_from_tree_mask(
    tree_mask: torch.Tensor,
    verified_seq_len: torch.Tensor,
    positions: torch.Tensor,
    retrieve_index: torch.Tensor,
    retrieve_next_token: torch.Tensor,
    retrieve_next_sibling: torch.Tensor,
    batch_size: int,
    draft_token_num: int,
) -> None:
    """Positions and links of the draft trees of b requests with n nodes each, written in place.

    tree_mask: bool, b * n * n elements: node i sees node k of its own request. verified_seq_len [b]: the root's
    position. Among the nodes below i that i sees, the largest is its parent, and their number is its depth; without
    any it has no links to it. positions [b * n]: the root's position plus depth. retrieve_index [b, n]: r * n + i;
    retrieve_next_token, retrieve_next_sibling [b, n]: the smallest child, and the next child of the same parent, or -1.
    Every element of the outputs is written. All indices int32 or int64, contiguous.
    Raises ValueError or TypeError for arguments that do not fit.
    """
    require_reconstruct_arguments(
        tree_mask, verified_seq_len, positions, retrieve_index, retrieve_next_token, retrieve_next_sibling,
        batch_size, draft_token_num)  # fmt: skip
    if batch_size == 0:
        return
    reconstruct_kernel[(batch_size,)](
        tree_mask.view(torch.uint8), verified_seq_len, positions, retrieve_index, retrieve_next_token,
        retrieve_next_sibling, NODES=draft_token_num, LANES=triton.next_power_of_2(draft_token_num))  # fmt: skip
