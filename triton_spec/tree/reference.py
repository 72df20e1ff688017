"""What the tree ops mean, in plain PyTorch. The docstrings of the launchers beside this file say the rest."""

from __future__ import annotations

from itertools import pairwise

import torch

from triton_spec.tree.arguments import require_build_tree_arguments, require_reconstruct_arguments
from triton_spec.tree.mask import TreeMaskMode


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
    """Trees from the selected entries of the draft's score list: positions, links and mask, written in place."""
    require_build_tree_arguments(
        parent_list, selected_index, verified_seq_len, tree_mask, positions, retrieve_index, retrieve_next_token,
        retrieve_next_sibling, topk, depth, draft_token_num, tree_mask_mode)  # fmt: skip
    nodes, full_offset = draft_token_num, 0
    for request, seq_len in enumerate(verified_seq_len.tolist()):
        survivors = [] if depth == 1 else parent_list[request].tolist()
        parents = _parents(survivors, selected_index[request].tolist(), topk)
        paths = [_path(parents, node, depth) for node in range(nodes)]
        _write_links(request, parents, retrieve_index, retrieve_next_token, retrieve_next_sibling)
        new_positions = [seq_len + len(path) for path in paths]
        positions[request * nodes : (request + 1) * nodes] = torch.tensor(new_positions)
        cells = torch.zeros(nodes, nodes, dtype=torch.bool)
        for node, path in enumerate(paths):
            cells[node, [0, *path]] = True
        if tree_mask_mode == TreeMaskMode.FULL_MASK:
            rows = tree_mask.view(-1)[full_offset:][: nodes * (seq_len + nodes)].view(nodes, seq_len + nodes)
            rows[:, seq_len:] = cells
            full_offset += rows.numel()
        elif tree_mask_mode == TreeMaskMode.QLEN_ONLY:
            tree_mask.view(-1, nodes, nodes)[request] = cells
        else:
            words = (cells.long() << torch.arange(nodes)).sum(1)
            tree_mask.view(-1, nodes)[request] = words.to(tree_mask.dtype)


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
    """Positions and links of trees from their mask: a node's parent is the largest node below it that it sees."""
    require_reconstruct_arguments(
        tree_mask, verified_seq_len, positions, retrieve_index, retrieve_next_token, retrieve_next_sibling,
        batch_size, draft_token_num)  # fmt: skip
    nodes = draft_token_num
    ancestors = tree_mask.view(batch_size, nodes, nodes).tril(-1)
    positions.copy_((verified_seq_len[:, None] + ancestors.sum(2)).flatten())
    numbers = torch.arange(nodes, device=tree_mask.device)
    parents = torch.where(ancestors, numbers, -1).amax(2).tolist()
    for request in range(batch_size):
        _write_links(request, parents[request], retrieve_index, retrieve_next_token, retrieve_next_sibling)


def _parents(survivors: list[int], selected: list[int], topk: int) -> list[int]:
    """The parent's number of each node, -1 where there is none: of the root and of nodes whose parent is missing."""
    parents = [-1]
    for entry in selected:
        slot = entry // topk
        if slot == 0:
            parents.append(0)
        elif 0 < slot < len(survivors) and survivors[slot] >= 0 and survivors[slot] in selected:
            parents.append(1 + selected.index(survivors[slot]))
        else:
            parents.append(-1)
    return parents


def _path(parents: list[int], node: int, depth: int) -> list[int]:
    """The node and its ancestors without the root, at most ``depth`` of them: a loop is walked no further."""
    path = []
    while node > 0 and len(path) < depth:
        path.append(node)
        node = parents[node]
    return path


def _write_links(
    request: int,
    parents: list[int],
    retrieve_index: torch.Tensor,
    retrieve_next_token: torch.Tensor,
    retrieve_next_sibling: torch.Tensor,
) -> None:
    """First child and next sibling of each node, in ascending order; -1 where there is none."""
    nodes = len(parents)
    retrieve_index[request] = torch.arange(request * nodes, (request + 1) * nodes)
    retrieve_next_token[request] = -1
    retrieve_next_sibling[request] = -1
    for parent in range(nodes):
        children = [node for node in range(nodes) if parents[node] == parent]
        if children:
            retrieve_next_token[request, parent] = children[0]
        for child, sibling in pairwise(children):
            retrieve_next_sibling[request, child] = sibling
