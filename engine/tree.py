"""Draft trees of a batch to the tensors that the model and the verification read."""

from collections.abc import Sequence

import torch

from dispatch.plan import Plan
from engine.draft.base import DraftTree
from engine.records import Tree


def build_tree(
    plan: Plan, roots: Sequence[int], drafts: Sequence[DraftTree], seq_lens: torch.Tensor, nodes: int
) -> Tree:
    """The trees of b requests, each filled up to `nodes` nodes with children of its root that match no token.

    roots: the last token of each request; drafts: what is guessed below them, at most nodes - 1 tokens each;
    seq_lens: [b] int64 committed tokens, the position of the root.
    """
    batch = len(roots)
    tokens = [[root, *draft.tokens] for root, draft in zip(roots, drafts, strict=True)]
    candidates = torch.tensor([row + [-1] * (nodes - len(row)) for row in tokens])
    mask = torch.frombuffer(bytearray().join(_mask(draft, nodes) for draft in drafts), dtype=torch.bool)
    positions = torch.empty(batch * nodes, dtype=torch.int64)
    links = [torch.empty((batch, nodes), dtype=torch.int64) for _ in range(3)]
    plan.reconstruct_indices_from_tree_mask(mask, seq_lens, positions, *links, batch, nodes)
    return Tree(
        nodes=nodes,
        candidates=candidates,
        token_ids=candidates.clamp(min=0).flatten(),
        positions=positions,
        mask=mask if nodes > 1 else None,
        retrieve_index=links[0],
        next_token=links[1],
        next_sibling=links[2],
    )


def _mask(draft: DraftTree, nodes: int) -> bytearray:
    """Row i marks the ancestors of node i and itself; nodes without a draft hang below the root."""
    rows = bytearray(nodes * nodes)
    rows[0] = 1
    for node in range(1, nodes):
        parent = draft.parents[node - 1] if node <= len(draft.parents) else 0
        rows[node * nodes : (node + 1) * nodes] = rows[parent * nodes : (parent + 1) * nodes]
        rows[node * nodes + node] = 1
    return rows
