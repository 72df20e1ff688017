"""The attention kernel: new tokens over keys and values kept in slots of a pool, causal or as a token tree.

A row's keys are summed in blocks of KEY_BLOCK consecutive positions that start at 0, KEY_BLOCK, 2 * KEY_BLOCK, ..., in
that order. A tree node stands at the position of its depth and its keys are those of its own path, so every row does
the arithmetic that decoding one token at that position does, and gets the same bits.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_spec.language.exact import EXACT
from triton_spec.language.softmax import softmax_step
from triton_spec.language.tiles import load_tile

KEY_BLOCK = 32  # key positions per block: part of the numerics, see the module's docstring
ROW_TILE = 16  # (query, head) rows per program at most: no part of the numerics
LOG2_E = 1.4426950408889634


@triton.jit
def _scores(queries, keys, slots, present, stride, scale, D: tl.constexpr, WHOLE: tl.constexpr):
    """Scores [R, B] of queries [R, lanes] against the keys in slots [B]; where not ``present``, of a zero key."""
    lanes = tl.arange(0, queries.shape[1])
    tile = load_tile(keys + slots[:, None] * stride + lanes[None, :], present, lanes < D, WHOLE, queries.shape[1] == D)
    return tl.dot(queries, tl.trans(tile), input_precision="ieee") * scale


@triton.jit
def _add_values(acc, decay, weights, values, slots, present, stride, D: tl.constexpr, WHOLE: tl.constexpr):
    """``acc * decay`` plus the values in slots [B] by their weights [R, B]."""
    lanes = tl.arange(0, acc.shape[1])
    tile = load_tile(values + slots[:, None] * stride + lanes[None, :], present, lanes < D, WHOLE, acc.shape[1] == D)
    return tl.dot(weights.to(tile.dtype), tile, acc * decay[:, None], input_precision="ieee")


@triton.jit
def _path_nodes(mask_row, places, nodes):
    """The nodes set in ``mask_row`` [nodes], numbered in ascending order: the node at each of ``places`` [B], or 0."""
    found = tl.zeros_like(places)
    count = 0
    for node in range(nodes):
        seen = tl.load(mask_row + node).to(tl.int32)
        found = tl.where((places == count) & (seen != 0), node, found)
        count += seen
    return found


@triton.jit(do_not_specialize=["nodes"])
def attention_kernel(
    q, k_cache, v_cache, out, req_to_token, req_pool_indices, seq_lens, extend_seq_lens, extend_start_loc, tree_mask,
    nodes, scale, stride_qt, stride_qh, stride_ks, stride_kh, stride_vs, stride_vh, stride_table,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, LANES: tl.constexpr,
    ROWS: tl.constexpr, HEADS: tl.constexpr, NODES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program: a request, HEADS query heads of one KV head, ROWS // HEADS neighbouring queries.

    Without extend_seq_lens every request has one query, its last position. scale is in the log2 domain.
    """
    QUERIES: tl.constexpr = ROWS // HEADS
    HEAD_TILES: tl.constexpr = (GROUP + HEADS - 1) // HEADS
    request = tl.program_id(2).to(tl.int64)
    first = tl.program_id(0) * QUERIES
    length = tl.load(seq_lens + request).to(tl.int32)
    start = request
    new = 1
    if extend_seq_lens is not None:
        new = tl.load(extend_seq_lens + request).to(tl.int32)
        start = tl.load(extend_start_loc + request).to(tl.int64)
    if first < new:
        prefix = length - new
        kv_head = (tl.program_id(1) // HEAD_TILES).to(tl.int64)
        row = tl.arange(0, ROWS)
        query = first + row // HEADS
        group_head = (tl.program_id(1) % HEAD_TILES) * HEADS + row % HEADS
        used = (row < QUERIES * HEADS) & (query < new) & (group_head < GROUP)
        lanes = tl.arange(0, LANES)
        token = start + query
        head = kv_head * GROUP + group_head
        q_tile = q + (token * stride_qt + head * stride_qh)[:, None] + lanes[None, :]
        queries = load_tile(q_tile, used, lanes < D, False, LANES == D)
        keys = k_cache + kv_head * stride_kh
        values = v_cache + kv_head * stride_vh
        table = req_to_token + tl.load(req_pool_indices + request).to(tl.int64) * stride_table
        place = tl.arange(0, BLOCK)
        highest = tl.full((ROWS,), float("-inf"), tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        acc = tl.zeros((ROWS, LANES), tl.float32)

        seen_by_all = prefix
        if tree_mask is None:
            seen_by_all += first
        shared = tl.maximum(seen_by_all, 0) // BLOCK * BLOCK
        for block in range(0, shared, BLOCK):
            slots = tl.load(table + block + place).to(tl.int64)
            scores = _scores(queries, keys, slots, place, stride_ks, scale, D, True)
            weights, decay, highest, total = softmax_step(scores, highest, total)
            acc = _add_values(acc, decay, weights, values, slots, place, stride_vs, D, True)

        if tree_mask is None:
            end = tl.minimum(prefix + first + QUERIES, length)
            for block in range(shared, end, BLOCK):
                position = block + place
                present = position < end
                slots = tl.load(table + position, mask=present, other=0).to(tl.int64)
                scores = _scores(queries, keys, slots, present, stride_ks, scale, D, False)
                scores = tl.where(position[None, :] <= (prefix + query)[:, None], scores, float("-inf"))
                weights, decay, highest, total = softmax_step(scores, highest, total)
                acc = _add_values(acc, decay, weights, values, slots, present, stride_vs, D, False)
        else:
            for node in range(first, tl.minimum(first + QUERIES, new)):
                mask_row = tree_mask + (request * nodes + node) * nodes
                every = tl.arange(0, NODES)
                path = tl.sum(tl.load(mask_row + every, mask=every < nodes, other=0).to(tl.int32), 0)
                path = tl.where(prefix < 0, 0, path)
                own = query == node
                end = prefix + path
                for block in range(shared, end, BLOCK):
                    position = block + place
                    present = position < end
                    on_path = prefix + _path_nodes(mask_row, position - prefix, nodes)
                    index = tl.where(position < prefix, position, on_path)
                    slots = tl.load(table + index, mask=present, other=0).to(tl.int64)
                    scores = _scores(queries, keys, slots, present, stride_ks, scale, D, False)
                    scores = tl.where(present[None, :], scores, float("-inf"))
                    weights, decay, new_highest, new_total = softmax_step(scores, highest, total)
                    new_acc = _add_values(acc, decay, weights, values, slots, present, stride_vs, D, False)
                    highest = tl.where(own, new_highest, highest)
                    total = tl.where(own, new_total, total)
                    acc = tl.where(own[:, None], new_acc, acc)
                padding = tl.where(path == 0, node, -1)
                total = tl.where(query == padding, 0.0, total)

        blind = total == 0.0
        result = tl.where(blind[:, None], 0.0, acc / tl.where(blind, 1.0, total)[:, None])
        out_tile = out + ((token * KV_HEADS * GROUP + head) * D)[:, None] + lanes[None, :]
        tl.store(out_tile, result.to(out.dtype.element_ty), mask=used[:, None] & (lanes < D)[None, :])


def launch_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    req_to_token: torch.Tensor,
    req_pool_indices: torch.Tensor,
    seq_lens: torch.Tensor,
    extend_seq_lens: torch.Tensor | None,
    extend_start_loc: torch.Tensor | None,
    max_extend_len: int,
    sm_scale: float,
    tree_mask: torch.Tensor | None,
) -> torch.Tensor:
    """Choose the tile and launch; the arguments have been checked."""
    tokens, heads, head_dim = q.shape
    requests, kv_heads = seq_lens.shape[0], k_cache.shape[1]
    out = torch.empty((tokens, heads, head_dim), dtype=q.dtype, device=q.device)
    if out.numel() == 0 or requests == 0:
        return out
    group = heads // kv_heads
    heads_per_tile = min(group, ROW_TILE)
    rows = min(ROW_TILE, triton.next_power_of_2(max_extend_len * heads_per_tile))
    head_tiles = triton.cdiv(group, heads_per_tile)
    grid = (triton.cdiv(max_extend_len, rows // heads_per_tile), kv_heads * head_tiles, requests)
    attention_kernel[grid](
        q, k_cache, v_cache, out, req_to_token, req_pool_indices, seq_lens, extend_seq_lens, extend_start_loc,
        None if tree_mask is None else tree_mask.view(torch.uint8), max_extend_len, sm_scale * LOG2_E,
        q.stride(0), q.stride(1), k_cache.stride(0), k_cache.stride(1), v_cache.stride(0), v_cache.stride(1),
        req_to_token.stride(0), KV_HEADS=kv_heads, GROUP=group, D=head_dim, LANES=triton.next_power_of_2(head_dim),
        ROWS=rows, HEADS=heads_per_tile, NODES=1 if tree_mask is None else triton.next_power_of_2(max_extend_len),
        BLOCK=KEY_BLOCK, **EXACT)  # fmt: skip
    return out
