"""What the attention ops mean, in plain PyTorch: one softmax per row over the keys that the row sees."""

from __future__ import annotations

import torch

from triton_spec.attention.arguments import require_attention_arguments, require_extend_arguments
from triton_spec.checks import require_shape


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
    """Attention of the new tokens q [T, Hq, D] of each request, causal or by the rows of ``tree_mask`` [b * n * n].

    Shapes, dtypes and meaning are those of ``attention.extend.extend_attention``.
    """
    require_attention_arguments(q, k_cache, v_cache, req_to_token, req_pool_indices, seq_lens)
    require_extend_arguments(q, seq_lens, extend_seq_lens, extend_start_loc, max_extend_len, tree_mask)
    out = torch.zeros_like(q, memory_format=torch.contiguous_format)
    for request in range(seq_lens.shape[0]):
        length, new, start = int(seq_lens[request]), int(extend_seq_lens[request]), int(extend_start_loc[request])
        slots = req_to_token[req_pool_indices[request].long()].long()
        prefix = length - new
        for i in range(new):
            if tree_mask is None:
                seen = slots[: max(prefix + i + 1, 0)]
            else:
                nodes = tree_mask.view(-1, max_extend_len, max_extend_len)[request, i].nonzero()[:, 0]
                seen = slots[:0]
                if prefix >= 0 and len(nodes):
                    seen = torch.cat((slots[:prefix], slots[prefix + nodes]))
            if len(seen):
                out[start + i] = _attend(q[start + i], k_cache[seen], v_cache[seen], sm_scale)
    return out


def decode_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    req_to_token: torch.Tensor,
    req_pool_indices: torch.Tensor,
    seq_lens: torch.Tensor,
    sm_scale: float,
) -> torch.Tensor:
    """``extend_attention`` with one new token per request, row r of q [b, Hq, D]."""
    require_attention_arguments(q, k_cache, v_cache, req_to_token, req_pool_indices, seq_lens)
    require_shape("q", q, (seq_lens.shape[0], None, None))
    one_each = torch.ones_like(seq_lens)
    starts = torch.arange(q.shape[0], device=q.device)
    return extend_attention(
        q, k_cache, v_cache, req_to_token, req_pool_indices, seq_lens, one_each, starts, 1, sm_scale
    )


def _attend(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, sm_scale: float) -> torch.Tensor:
    """One row: query [Hq, D] over keys and values [S, Hk, D]."""
    group = query.shape[0] // keys.shape[1]
    keys, values = (part.float().repeat_interleave(group, 1) for part in (keys, values))
    weights = torch.einsum("hd,shd->hs", query.float() * sm_scale, keys).softmax(-1)
    return torch.einsum("hs,shd->hd", weights, values).to(query.dtype)
