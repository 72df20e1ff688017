"""Random trees as a draft model makes them, and build_tree_kernel_efficient with buffers that show every write."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch

from triton_spec.tree.mask import TreeMaskMode, word_dtype

SPARE = 5  # elements of a full mask after the last that is needed
MODES = list(TreeMaskMode)


@dataclass
class Grown:
    """One request: what the op is told, and each node's parent (node number), known from how the tree was grown."""

    parent_list: list[int]
    selected: list[int]
    parents: list[int]


def grow(generator: random.Random, topk: int, depth: int, nodes: int) -> Grown:
    """A tree of ``nodes`` nodes: topk candidates below the root, then topk below each of topk survivors a step."""
    parent_of: dict[int, int | None] = dict.fromkeys(range(topk))  # None: the root
    survivors, parent_list, base = list(range(topk)), [-1, *range(topk)], topk
    for step in range(1, depth):
        for branch, survivor in enumerate(survivors):
            parent_of |= {base + branch * topk + child: survivor for child in range(topk)}
        survivors = generator.sample(range(base, base + topk * topk), topk)
        base += topk * topk
        if step < depth - 1:
            parent_list += survivors
    chosen: list[int] = []
    while len(chosen) < nodes - 1:
        open_entries = [e for e, p in parent_of.items() if e not in chosen and (p is None or p in chosen)]
        chosen.append(generator.choice(open_entries))
    selected = sorted(chosen)
    number = {entry: place + 1 for place, entry in enumerate(selected)}
    parents = [-1, *(0 if parent_of[e] is None else number[parent_of[e]] for e in selected)]
    return Grown(parent_list if depth > 1 else [], selected, parents)


@dataclass
class Trees:
    """What the op wrote: for each request its positions, links, and mask rows as text, "1010"."""

    positions: list[list[int]]
    retrieve_index: list[list[int]]
    next_token: list[list[int]]
    next_sibling: list[list[int]]
    rows: list[list[str]]


def expected_trees(parents: list[list[int]], seq_lens: list[int]) -> Trees:
    """The trees of requests whose nodes have these parents, -1 for the root."""
    trees = Trees([], [], [], [], [])
    for request, (of, seq_len) in enumerate(zip(parents, seq_lens, strict=True)):
        nodes = range(len(of))
        sees = {0: {0}}
        for node in nodes[1:]:
            sees[node] = sees[of[node]] | {node}  # a parent has a smaller number
        trees.positions.append([seq_len + len(sees[node]) - 1 for node in nodes])
        trees.retrieve_index.append([request * len(of) + node for node in nodes])
        trees.next_token.append([min((k for k in nodes if of[k] == node), default=-1) for node in nodes])
        trees.next_sibling.append(
            [min((k for k in nodes if k > node and of[k] == of[node] >= 0), default=-1) for node in nodes]
        )
        trees.rows.append(["".join(str(int(k in sees[node])) for k in nodes) for node in nodes])
    return trees


def build(
    op: Callable,
    parent_lists: list[list[int]],
    selected: list[list[int]],
    seq_lens: list[int],
    topk: int,
    depth: int,
    mode: TreeMaskMode,
    index: torch.dtype = torch.int64,
) -> Trees:
    """Call the op, and read back what it wrote; assert that it wrote nothing else."""
    batch, nodes = len(seq_lens), len(selected[0]) + 1
    mask = _mask_buffer(mode, seq_lens, nodes)
    positions = torch.empty(batch * nodes, dtype=index)
    links = [torch.full((batch, nodes), -1, dtype=index) for _ in range(3)]
    parent_list = torch.tensor(parent_lists, dtype=index).view(batch, -1)
    chosen = torch.tensor(selected, dtype=index).view(batch, nodes - 1)
    lengths = torch.tensor(seq_lens, dtype=index)
    op(parent_list, chosen, lengths, mask, positions, *links, topk, depth, nodes, mode)
    rows = _read_mask(mask, mode, seq_lens, nodes)
    return Trees(positions.view(batch, nodes).tolist(), *(link.tolist() for link in links), rows)


def _mask_buffer(mode: TreeMaskMode, seq_lens: list[int], nodes: int) -> torch.Tensor:
    if mode == TreeMaskMode.QLEN_ONLY_BITPACKING:
        return torch.zeros(len(seq_lens) * nodes, dtype=word_dtype(nodes))
    if mode == TreeMaskMode.QLEN_ONLY:
        return torch.ones(len(seq_lens) * nodes * nodes, dtype=torch.bool)
    return _outside(nodes * sum(seq_lens) + len(seq_lens) * nodes**2 + SPARE)


def _outside(elements: int) -> torch.Tensor:
    """A pattern, so that any write outside of the trees' cells shows."""
    return torch.arange(elements) % 3 != 1


def _read_mask(mask: torch.Tensor, mode: TreeMaskMode, seq_lens: list[int], nodes: int) -> list[list[str]]:
    if mode == TreeMaskMode.QLEN_ONLY_BITPACKING:
        words = mask.view(-1, nodes).tolist()
        return [[format(word, f"0{nodes}b")[::-1] for word in row] for row in words]
    if mode == TreeMaskMode.QLEN_ONLY:
        return [[_text(row) for row in block] for block in mask.view(-1, nodes, nodes)]
    untouched, read, offset = _outside(mask.numel()), [], 0
    for seq_len in seq_lens:
        size = nodes * (seq_len + nodes)
        block, pattern = (flat[offset : offset + size].view(nodes, -1) for flat in (mask, untouched))
        assert torch.equal(block[:, :seq_len], pattern[:, :seq_len]), "a prefix column was written"
        read.append([_text(row) for row in block[:, seq_len:]])
        offset += size
    assert torch.equal(mask[offset:], untouched[offset:]), "the spare elements were written"
    return read


def _text(row: torch.Tensor) -> str:
    return "".join(str(int(cell)) for cell in row)
