"""Draft trees from the selected entries of the draft's score list."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_spec.tree.arguments import require_build_tree_arguments
from triton_spec.tree.links import insert_child
from triton_spec.tree.mask import TreeMaskMode


@triton.jit(do_not_specialize=["parent_width"])
def build_tree_kernel(
    parent_list, selected_index, verified_seq_len, tree_mask, positions,
    retrieve_index, retrieve_next_token, retrieve_next_sibling, parent_width,
    TOPK: tl.constexpr, DEPTH: tl.constexpr, NODES: tl.constexpr, LANES: tl.constexpr,
    FULL: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """One program: a request. Lane i of a vector belongs to node i."""
    request = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, LANES)
    inside = lanes < NODES
    drafted = inside & (lanes > 0)
    selected_row = selected_index + request * (NODES - 1) - 1  # node i was entry i - 1
    selected = tl.load(selected_row + lanes, mask=drafted, other=-1).to(tl.int64)

    parents = tl.full((LANES,), -1, tl.int32)
    next_token = tl.full((LANES,), -1, tl.int32)
    next_sibling = tl.full((LANES,), -1, tl.int32)
    for back in range(1, NODES):
        node = NODES - back
        entry = tl.load(selected_row + node).to(tl.int64)
        slot = entry // TOPK
        known = (slot > 0) & (slot < parent_width)
        wanted = tl.load(parent_list + request * parent_width + slot, mask=known, other=-1).to(tl.int64)
        found = tl.min(tl.where((selected == wanted) & drafted & (wanted >= 0), lanes, LANES), 0)
        parent = tl.where((entry >= 0) & (entry < TOPK), 0, tl.where(found == LANES, -1, found))
        parents = tl.where(lanes == node, parent, parents)
        next_token, next_sibling = insert_child(next_token, next_sibling, lanes, node, parent)

    row = request * NODES
    tl.store(retrieve_index + row + lanes, (row + lanes).to(retrieve_index.dtype.element_ty), mask=inside)
    tl.store(retrieve_next_token + row + lanes, next_token.to(retrieve_next_token.dtype.element_ty), mask=inside)
    tl.store(retrieve_next_sibling + row + lanes, next_sibling.to(retrieve_next_sibling.dtype.element_ty), mask=inside)

    length = tl.load(verified_seq_len + request).to(tl.int64)
    width = length * 0 + NODES
    block = tree_mask + row * NODES
    if FULL:
        before = length * 0
        for other in range(request):
            before += tl.load(verified_seq_len + other).to(tl.int64)
        width = length + NODES
        block = tree_mask + row * NODES + before * NODES + length
    for node in range(NODES):
        seen = (lanes == 0) | (lanes == node)
        at = node
        steps = 0
        for _ in range(DEPTH):  # a loop of parents is walked no further
            seen = seen | (lanes == tl.maximum(at, 0))
            steps += tl.where(at > 0, 1, 0)
            at = tl.max(tl.where((lanes == at) & (at > 0), parents, -1), 0)
        tl.store(positions + row + node, (length + steps).to(positions.dtype.element_ty))
        if PACKED:
            word = tl.sum(tl.where(seen & inside, tl.full((LANES,), 1, tl.int64) << lanes.to(tl.int64), 0), 0)
            tl.store(tree_mask + row + node, word.to(tree_mask.dtype.element_ty))
        else:
            tl.store(block + node * width + lanes, seen.to(tl.uint8), mask=inside)


def build_tree_kernel_efficient(
    parent_list: torch.Tensor,
    selected_index: torch.Tensor,
    verified_seq_len: torch.Tensor,
    tree_mask: torch.Tensor,
    positions: torch.Tensor,
    retrieve_index: torch.Tensor,
    retrieve_next_token: torch.Tensor,
    retrieve_next_sibling: torch.Tensor,
    topk: int,
    depth: int,
    draft_token_num: int,
    tree_mask_mode: int,
) -> None:
    """Positions, links and mask of the draft trees of b requests, written in place.

    K = topk, S = depth, n = draft_token_num nodes with the root, node 0. The draft's score list has K entries in its
    first step and K * K in each further one; entry t hangs below survivor t // K, survivor 0 being the root.

    parent_list [b, K(S-1)+1]: the entry of each survivor, ignored for S = 1 (may be [b, 0]); selected_index [b, n-1]:
    the entries that are nodes 1..n-1; verified_seq_len [b]: the root's position.
    tree_mask: see ``TreeMaskMode``; only cells (node, node) are written, all of them. positions [b * n]: position of
    the root plus depth. retrieve_index [b, n]: r * n + i; retrieve_next_token, retrieve_next_sibling [b, n]: the
    lowest-numbered child, and the next child of the same parent, or -1. All indices int32 or int64, contiguous.

    A node whose parent is not among its own request's nodes has no links to it: it and what hangs below it see the
    root and their ancestors up to the gap. Walks up the tree end after S nodes, also where parents form a loop.
    Raises ValueError or TypeError for arguments that do not fit, and for more nodes than the draft has candidates.
    """
    require_build_tree_arguments(
        parent_list, selected_index, verified_seq_len, tree_mask, positions, retrieve_index, retrieve_next_token,
        retrieve_next_sibling, topk, depth, draft_token_num, tree_mask_mode)  # fmt: skip
    batch = verified_seq_len.shape[0]
    if batch == 0:
        return
    packed = tree_mask_mode == TreeMaskMode.QLEN_ONLY_BITPACKING
    build_tree_kernel[(batch,)](
        parent_list, selected_index, verified_seq_len, tree_mask if packed else tree_mask.view(torch.uint8), positions,
        retrieve_index, retrieve_next_token, retrieve_next_sibling, 0 if depth == 1 else parent_list.shape[1],
        TOPK=topk, DEPTH=depth, NODES=draft_token_num, LANES=triton.next_power_of_2(draft_token_num),
        FULL=tree_mask_mode == TreeMaskMode.FULL_MASK, PACKED=packed)  # fmt: skip
