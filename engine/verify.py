"""Compare draft trees with what the target model predicts."""

import torch

from dispatch.plan import Plan
from engine.errors import ModelError
from engine.records import Tree, Verified


def verify_greedy(plan: Plan, tree: Tree, logits: torch.Tensor) -> Verified:
    """Walk each tree from its root as long as a child equals the target's most likely token.

    logits: [b * n, vocab]. Raises ModelError if the logits of an accepted node hold NaN.
    """
    batch, nodes = tree.candidates.shape
    best, target = logits.max(dim=-1)
    predicts = torch.zeros(batch * nodes, dtype=torch.int32)
    accept_index = torch.full((batch, nodes), -1, dtype=torch.int32)
    accept_token_num = torch.zeros(batch, dtype=torch.int32)
    links = (tree.retrieve_index, tree.next_token, tree.next_sibling)
    plan.verify_tree_greedy(
        predicts, accept_index, accept_token_num, tree.candidates, *links, target.view(batch, nodes)
    )
    require_numbers(best[accept_index[accept_index >= 0].long()])
    return Verified(predicts, accept_index, accept_token_num + 1)


def require_numbers(best: torch.Tensor) -> None:
    """Raise ModelError if a largest logit is NaN: the maximum of a row is NaN if any of its elements is."""
    if best.isnan().any():
        raise ModelError("the model computes NaN logits; its weights are damaged or overflow in this dtype")
