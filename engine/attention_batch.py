"""What attention must know about the requests of one forward pass."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class AttentionBatch:
    """The requests of a forward pass over T new tokens: b requests with at least one new token each, concatenated.

    req_to_token: [requests, context] int32, the KV slot of each position of each row of the pool.
    req_pool_indices: [b] row of each request in `req_to_token`.
    seq_lens: [b] tokens including the new ones.
    extend_seq_lens, extend_start_loc: [b] number of new tokens and place of the first of them among the T rows.
    max_extend_len: the largest of `extend_seq_lens`, known without reading the tensor.
    tree_mask: None for causal attention among the new tokens; else bool [b * n * n], request-major: new token i sees
        the whole prefix and the new tokens k with mask[i, k]; every request then has n = max_extend_len new tokens.
    """

    req_to_token: torch.Tensor
    req_pool_indices: torch.Tensor
    seq_lens: torch.Tensor
    extend_seq_lens: torch.Tensor
    extend_start_loc: torch.Tensor
    max_extend_len: int
    tree_mask: torch.Tensor | None = None
