"""What the stages of one decode round hand to each other, for b requests with n tree nodes each."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Tree:
    """The trees of one round.

    nodes: n. candidates: [b, n] int64, -1 at nodes that only fill a tree up and match nothing.
    token_ids, positions: [b * n] int64, what the model runs on. mask: bool [b * n * n], node i sees node k of its own
    request; None where n is 1. retrieve_index, next_token, next_sibling: [b, n] int64 links, as
    `reconstruct_indices_from_tree_mask` defines them.
    """

    nodes: int
    candidates: torch.Tensor
    token_ids: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor | None
    retrieve_index: torch.Tensor
    next_token: torch.Tensor
    next_sibling: torch.Tensor


@dataclass(frozen=True)
class Verified:
    """What the target model says about the trees.

    predicts: [b * n] int32, the target's token after each accepted node. accept_index: [b, n] int32, the accepted
    nodes (flat, root first, then -1). accept_lens: [b] int32, accepted nodes, which is also the number of new tokens.
    """

    predicts: torch.Tensor
    accept_index: torch.Tensor
    accept_lens: torch.Tensor


@dataclass(frozen=True)
class Accepted:
    """The new tokens of each request (accepted drafts, then the bonus token), and the bonus token: the next root."""

    runs: list[list[int]]
    roots: list[int]
