"""Keep what was verified: the new tokens, and their KV at the front of each request's window."""

import torch

from dispatch.plan import Plan
from engine.kv.pool import KVPool
from engine.records import Accepted, Verified


def accept(plan: Plan, verified: Verified, window: torch.Tensor, pool: KVPool) -> Accepted:
    """Read the new tokens, and move the KV of accepted nodes to the first slots of each window.

    window: [b * n] int64, the slots of the tree's nodes. Afterwards the first accept_lens[r] slots of request r hold
    the KV of its accepted path, in order.
    """
    batch, nodes = verified.accept_index.shape
    tokens = verified.predicts[verified.accept_index.clamp(min=0)]
    bonus = torch.empty(batch, dtype=torch.int32)
    plan.fill_bonus_tokens(tokens.flatten(), verified.accept_lens, bonus, nodes)
    move_to_front(plan, verified, window, pool)
    lengths = verified.accept_lens.tolist()
    return Accepted([row[:length] for row, length in zip(tokens.tolist(), lengths, strict=True)], bonus.tolist())


def move_to_front(plan: Plan, verified: Verified, window: torch.Tensor, pool: KVPool) -> None:
    """Copy the KV of accepted nodes to the first slots of each window [b * n], unless all of them are there."""
    batch, nodes = verified.accept_index.shape
    front = torch.arange(nodes) < verified.accept_lens[:, None]
    in_place = torch.arange(batch * nodes, dtype=torch.int32).view(batch, nodes)[front]
    if torch.equal(verified.accept_index[front], in_place):
        return
    source = torch.zeros_like(window)
    plan.fill_accept_out_cache_loc(verified.accept_index, window, source)
    target = window.view(batch, nodes)[front]
    plan.copy_all_layer_kv_cache(pool.data_ptrs, pool.row_bytes, target, source[: len(target)])
