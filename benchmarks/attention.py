"""Attention over keys and values that lie in slots of a pool, as the operation of triton_spec is called."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F

from benchmarks.case import Case
from benchmarks.timer import Run
from triton_spec.attention.decode import decode_attention
from triton_spec.attention.extend import extend_attention

KV_HEADS, GROUP = 8, 4


def cases(tiny: bool = False) -> Iterator[Case]:
    """All of the family; `tiny`: over few keys."""
    length = 64 if tiny else 1024
    for new in (16, 1):
        for head_dim in (64, 128):
            yield Case(
                f"attention/bf16/q{new}/kv{length}/d{head_dim}", "gather + SDPA",
                partial(one_request, new, length, head_dim), 2e-2, bars=(2.0, 2.0),
            )  # fmt: skip


def one_request(new: int, length: int, head_dim: int) -> tuple[Run, Run]:
    """One request: `new` tokens, the last ones of `length`, causal; the operation, and PyTorch with its gather."""
    q = torch.randn(new, KV_HEADS * GROUP, head_dim).bfloat16()
    keys, values = torch.randn(2, 4 * length, KV_HEADS, head_dim).bfloat16().unbind()
    slots = torch.randperm(4 * length)[:length]
    table = slots.to(torch.int32)[None]
    request, lengths = torch.zeros(1, dtype=torch.int32), torch.tensor([length], dtype=torch.int32)
    news, scale = torch.tensor([new], dtype=torch.int32), head_dim**-0.5
    seen = torch.ones(new, length, dtype=torch.bool).tril(length - new).repeat_interleave(GROUP, 0)

    def ours() -> torch.Tensor:
        if new == 1:
            return decode_attention(q, keys, values, table, request, lengths, scale)
        return extend_attention(q, keys, values, table, request, lengths, news, request, new, scale)

    def baseline() -> torch.Tensor:
        """The heads of a group as rows of one, and index_select: faster than enable_gqa and keys[slots]."""
        k, v = (cache.index_select(0, slots).transpose(0, 1) for cache in (keys, values))
        rows = q.view(new, KV_HEADS, GROUP, head_dim).transpose(0, 1).reshape(KV_HEADS, new * GROUP, head_dim)
        mask = None if new == 1 else seen
        out = F.scaled_dot_product_attention(rows[None], k[None], v[None], mask, scale=scale)[0]
        return out.view(KV_HEADS, new, GROUP, head_dim).transpose(0, 1).reshape(q.shape)

    return ours, baseline
