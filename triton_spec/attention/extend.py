"""Attention of the new tokens of each request: prefill, and verification of a token tree."""

from __future__ import annotations

import torch

from triton_spec.attention.arguments import require_attention_arguments, require_extend_arguments
from triton_spec.attention.kernel import launch_attention


def extend_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    req_to_token: torch.Tensor,
    req_pool_indices: torch.Tensor,
    seq_lens: torch.Tensor,
    extend_seq_lens: torch.Tensor,
    extend_start_loc: torch.Tensor,
    max_extend_len: int,
    sm_scale: float,
    tree_mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attention of new tokens whose keys and values are in the cache already; the result has q's shape and dtype.

    q [T, Hq, D]; k_cache and v_cache [slots, Hk, D] of q's dtype (bf16, f16 or f32), Hq a multiple of Hk, query head i
    uses KV head i // (Hq / Hk); position p of request r is in slot ``req_to_token[req_pool_indices[r], p]``.
    ``seq_lens`` [b] includes the new tokens, the last ``extend_seq_lens[r] <= max_extend_len`` positions of request r,
    whose queries are the rows from ``extend_start_loc[r]`` on; every row of q belongs to one request. Scores are
    multiplied by ``sm_scale``. Index tensors are int32 or int64.

    Without tree_mask a token sees every position up to its own. With tree_mask, bool [b * n * n] where n is
    max_extend_len and every request has n new tokens, node i (in slot ``prefix + i`` of the table) sees the prefix and
    the nodes k with ``mask[i, k]``: its path, ancestors before descendants. A row of the mask without any node is
    padding and gives zeros, as does any row that sees no key, and every node of a request shorter than n.

    The bits of a row depend on its query and on the keys and values that it sees in path order: not on the other
    nodes, requests, slots, or on how the tokens are cut into calls. (Causal rows of one call must be finite for that:
    a NaN value at a later position of the same request can reach an earlier row. With a tree mask it cannot.)
    Raises ValueError or TypeError for other shapes, dtypes, devices or strides.
    """
    require_attention_arguments(q, k_cache, v_cache, req_to_token, req_pool_indices, seq_lens)
    require_extend_arguments(q, seq_lens, extend_seq_lens, extend_start_loc, max_extend_len, tree_mask)
    return launch_attention(
        q, k_cache, v_cache, req_to_token, req_pool_indices, seq_lens, extend_seq_lens, extend_start_loc,
        max_extend_len, sm_scale, tree_mask)  # fmt: skip
