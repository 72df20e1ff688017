"""Inputs of the attention tests: requests whose keys and values lie scattered in a pool, and random token trees."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch


@dataclass
class Pool:
    """KV of some requests. Every slot that no request uses is NaN, and unused table entries point at such a slot."""

    k_cache: torch.Tensor  # [slots, Hk, D]
    v_cache: torch.Tensor  # [slots, Hk, D]
    req_to_token: torch.Tensor  # [requests + 2, context] int32 or int64
    req_pool_indices: torch.Tensor  # [requests]
    seq_lens: torch.Tensor  # [requests]

    def arguments(self) -> tuple[torch.Tensor, ...]:
        """The arguments between q and the description of the new tokens."""
        return self.k_cache, self.v_cache, self.req_to_token, self.req_pool_indices, self.seq_lens


def scatter(
    keys: list[torch.Tensor], values: list[torch.Tensor], seed: int = 0, index: torch.dtype = torch.int32, pad: int = 0
) -> Pool:
    """A pool with keys[r] and values[r] [length, Hk, D] as the sequence of request r, in random slots.

    ``pad`` elements of 1e30 follow each head's row in memory.
    """
    generator = torch.Generator().manual_seed(seed)
    lengths = [len(part) for part in keys]
    heads, head_dim = keys[0].shape[1:]
    slots = sum(lengths) + 5
    order = torch.randperm(slots - 1, generator=generator) + 1  # slot 0 belongs to nobody
    caches = []
    for parts in (keys, values):
        storage = torch.full((slots, heads, head_dim + pad), 1e30 if pad else 0.0, dtype=keys[0].dtype)
        storage[..., :head_dim] = float("nan")
        cache = storage[..., :head_dim]
        if sum(lengths):
            cache[order[: sum(lengths)]] = torch.cat(parts)
        caches.append(cache)
    rows = torch.randperm(len(lengths) + 2, generator=generator)[: len(lengths)]
    table = torch.zeros(len(lengths) + 2, max(lengths, default=0) + 3, dtype=index)
    start = 0
    for row, length in zip(rows.tolist(), lengths, strict=True):
        table[row, :length] = order[start : start + length].to(index)
        start += length
    return Pool(*caches, table, rows.to(torch.int64), torch.tensor(lengths, dtype=torch.int64))


def random_pool(lengths: list[int], heads: int, head_dim: int, dtype: torch.dtype, seed: int = 0, **kwargs) -> Pool:
    """``scatter`` of normally distributed keys and values."""
    generator = torch.Generator().manual_seed(seed + 1)
    shape = heads, head_dim
    keys, values = (
        [torch.randn(length, *shape, generator=generator).to(dtype) for length in lengths] for _ in range(2)
    )
    return scatter(keys, values, seed, **kwargs)


def random_queries(tokens: int, heads: int, head_dim: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """Normally distributed queries [tokens, heads, head_dim]."""
    return torch.randn(tokens, heads, head_dim, generator=torch.Generator().manual_seed(seed + 2)).to(dtype)


def random_tree(nodes: int, seed: int) -> torch.Tensor:
    """The mask [nodes, nodes] of a random tree: node i hangs below some node before it and sees its path."""
    choose = random.Random(seed)
    mask = torch.eye(nodes, dtype=torch.bool)
    for node in range(1, nodes):
        mask[node] |= mask[choose.randrange(node)]
    return mask


def extend_arguments(pool: Pool, new: list[int]) -> tuple[torch.Tensor, torch.Tensor, int]:
    """extend_seq_lens, extend_start_loc and max_extend_len for requests whose last ``new[r]`` tokens are new."""
    lengths = torch.tensor(new, dtype=torch.int64)
    return lengths, lengths.cumsum(0) - lengths, max(new, default=0)
