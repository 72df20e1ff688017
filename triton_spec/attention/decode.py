"""Attention of one new token per request: plain decoding."""

from __future__ import annotations

import torch

from triton_spec.attention.arguments import require_attention_arguments
from triton_spec.attention.kernel import launch_attention
from triton_spec.checks import require_shape


def decode_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    req_to_token: torch.Tensor,
    req_pool_indices: torch.Tensor,
    seq_lens: torch.Tensor,
    sm_scale: float,
) -> torch.Tensor:
    """``extend_attention`` with one new token per request, bit for bit: row r of q [b, Hq, D] sees all of request r.

    ``seq_lens`` [b] includes the new token, whose key and value are in the cache already; a request of length 0 gives
    zeros. The other arguments, the result and the errors are those of ``extend_attention``.
    """
    require_attention_arguments(q, k_cache, v_cache, req_to_token, req_pool_indices, seq_lens)
    require_shape("q", q, (seq_lens.shape[0], None, None))
    return launch_attention(
        q, k_cache, v_cache, req_to_token, req_pool_indices, seq_lens, None, None, 1, sm_scale, None
    )
