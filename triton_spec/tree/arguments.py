"""Argument checks of the tree ops, shared by their references and their launchers.

Each raises ``ValueError`` or ``TypeError`` naming the argument that does not fit.
"""

from __future__ import annotations

import torch

from triton_spec.checks import require_contiguous, require_dtype, require_indices, require_same_device
from triton_spec.tree.mask import TreeMaskMode, word_dtype

MOST_NODES = 1024


def require_build_tree_arguments(
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
    """Raise ValueError or TypeError unless the arguments describe trees that the draft can make, and fit each other."""
    for name, value in (("topk", topk), ("depth", depth)):
        if value < 1:
            raise ValueError(f"{name} is {value}, expected at least 1")
    _require_nodes(draft_token_num)
    candidates = topk + (depth - 1) * topk * topk
    if draft_token_num - 1 > candidates:
        raise ValueError(
            f"draft_token_num is {draft_token_num}: topk {topk} and depth {depth} make {candidates} candidates, "
            f"so at most {candidates + 1} nodes with the root"
        )
    require_indices("verified_seq_len", verified_seq_len, (None,))
    batch = verified_seq_len.shape[0]
    require_indices("parent_list", parent_list, (batch, None if depth == 1 else topk * (depth - 1) + 1))
    require_indices("selected_index", selected_index, (batch, draft_token_num - 1))
    _require_links(positions, retrieve_index, retrieve_next_token, retrieve_next_sibling, batch, draft_token_num)
    _require_tree_mask(tree_mask, verified_seq_len, draft_token_num, tree_mask_mode)
    require_same_device(
        parent_list=parent_list,
        selected_index=selected_index,
        verified_seq_len=verified_seq_len,
        tree_mask=tree_mask,
        positions=positions,
        retrieve_index=retrieve_index,
        retrieve_next_token=retrieve_next_token,
        retrieve_next_sibling=retrieve_next_sibling,
    )


def require_reconstruct_arguments(
    tree_mask: torch.Tensor,
    verified_seq_len: torch.Tensor,
    positions: torch.Tensor,
    retrieve_index: torch.Tensor,
    retrieve_next_token: torch.Tensor,
    retrieve_next_sibling: torch.Tensor,
    batch_size: int,
    draft_token_num: int,
) -> None:
    """Raise ValueError or TypeError unless tree_mask is bool with b * n * n elements, and the rest fits it."""
    _require_nodes(draft_token_num)
    require_indices("verified_seq_len", verified_seq_len, (batch_size,))
    _require_links(positions, retrieve_index, retrieve_next_token, retrieve_next_sibling, batch_size, draft_token_num)
    require_dtype("tree_mask", tree_mask, torch.bool)
    require_contiguous("tree_mask", tree_mask)
    if tree_mask.numel() != batch_size * draft_token_num**2:
        raise ValueError(
            f"tree_mask has {tree_mask.numel()} elements, expected {batch_size * draft_token_num**2}: "
            f"{batch_size} requests of {draft_token_num} x {draft_token_num} nodes"
        )
    require_same_device(
        tree_mask=tree_mask,
        verified_seq_len=verified_seq_len,
        positions=positions,
        retrieve_index=retrieve_index,
        retrieve_next_token=retrieve_next_token,
        retrieve_next_sibling=retrieve_next_sibling,
    )


def _require_nodes(nodes: int) -> None:
    if not 1 <= nodes <= MOST_NODES:
        raise ValueError(f"draft_token_num is {nodes}, expected 1 to {MOST_NODES} nodes, the root included")


def _require_links(
    positions: torch.Tensor,
    retrieve_index: torch.Tensor,
    retrieve_next_token: torch.Tensor,
    retrieve_next_sibling: torch.Tensor,
    batch: int,
    nodes: int,
) -> None:
    """positions [b * n]; retrieve_index, retrieve_next_token and retrieve_next_sibling [b, n]."""
    require_indices("positions", positions, (batch * nodes,))
    require_indices("retrieve_index", retrieve_index, (batch, nodes))
    require_indices("retrieve_next_token", retrieve_next_token, (batch, nodes))
    require_indices("retrieve_next_sibling", retrieve_next_sibling, (batch, nodes))


def _require_tree_mask(tree_mask: torch.Tensor, seq_lens: torch.Tensor, nodes: int, mode: int) -> None:
    """Dtype and size that the mode asks for; a full mask may be larger than it has to be."""
    require_contiguous("tree_mask", tree_mask)
    batch = seq_lens.shape[0]
    if mode == TreeMaskMode.QLEN_ONLY_BITPACKING:
        require_dtype("tree_mask", tree_mask, word_dtype(nodes))
        _require_elements(tree_mask, batch * nodes, f"{batch} requests of {nodes} words")
    elif mode == TreeMaskMode.QLEN_ONLY:
        require_dtype("tree_mask", tree_mask, torch.bool)
        _require_elements(tree_mask, batch * nodes * nodes, f"{batch} requests of {nodes} x {nodes} nodes")
    elif mode == TreeMaskMode.FULL_MASK:
        require_dtype("tree_mask", tree_mask, torch.bool)
        if batch and int(seq_lens.min()) < 0:
            raise ValueError(f"verified_seq_len has {int(seq_lens.min())}, expected no negative length")
        needed = nodes * int(seq_lens.sum()) + batch * nodes * nodes
        if tree_mask.numel() < needed:
            raise ValueError(
                f"tree_mask has {tree_mask.numel()} elements, expected at least {needed}: "
                f"{nodes} rows of seq_len + {nodes} columns for each of {batch} requests"
            )
    else:
        raise ValueError(f"tree_mask_mode is {mode}, expected one of {', '.join(map(repr, TreeMaskMode))}")


def _require_elements(tree_mask: torch.Tensor, elements: int, reason: str) -> None:
    if tree_mask.numel() != elements:
        raise ValueError(f"tree_mask has {tree_mask.numel()} elements, expected {elements}: {reason}")
