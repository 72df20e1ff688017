"""Extend and decode attention against the reference, and the shapes on which such kernels are known to fail."""

from __future__ import annotations

import mmap

import pytest
import torch
import torch.nn.functional as F

from tests.compare import assert_close, assert_equal
from tests.triton_spec.attention.pool import extend_arguments, random_pool, random_queries, random_tree, scatter
from triton_spec.attention import reference

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
GROUPS = [pytest.param(14, 2, id="gqa14-2"), pytest.param(12, 2, id="gqa12-2"), pytest.param(9, 3, id="gqa9-3"),
          pytest.param(1, 1, id="gqa1-1"), pytest.param(48, 2, id="gqa48-2")]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("heads", "kv_heads"), GROUPS)
@pytest.mark.parametrize("mode", ["decode", "causal", "tree"])
def test_agrees_with_reference(extend, decode, dtype, heads, kv_heads, mode):
    new = [1, 1, 1] if mode == "decode" else [7, 7, 7] if mode == "tree" else [7, 1, 12]
    pool = random_pool([40 + new[0], new[1], 64 + new[2]], kv_heads, 32, DTYPES[dtype])
    q = random_queries(sum(new), heads, 32, DTYPES[dtype])
    if mode == "decode":
        actual = decode(q, *pool.arguments(), 32**-0.5)
        expected = reference.decode_attention(q, *pool.arguments(), 32**-0.5)
    else:
        mask = torch.stack([random_tree(7, seed) for seed in range(3)]).flatten() if mode == "tree" else None
        arguments = q, *pool.arguments(), *extend_arguments(pool, new), 32**-0.5, mask
        actual, expected = extend(*arguments), reference.extend_attention(*arguments)
    assert actual.dtype == DTYPES[dtype]
    assert_close(actual, expected, f"attention {dtype}")


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("head_dim", [13, 64, 80, 96, 112, 128, 192])
def test_head_sizes_with_garbage_behind_each_head(extend, decode, dtype, head_dim):
    pool = random_pool([21], 2, head_dim, DTYPES[dtype], pad=256 - head_dim)
    storage = torch.full((5, 4, 256), 1e30, dtype=DTYPES[dtype])
    storage[..., :head_dim] = random_queries(5, 4, head_dim, DTYPES[dtype])
    q = storage[..., :head_dim]
    mask = random_tree(5, seed=3).flatten()
    for tree_mask in (None, mask):
        arguments = q, *pool.arguments(), *extend_arguments(pool, [5]), head_dim**-0.5, tree_mask
        assert_close(extend(*arguments), reference.extend_attention(*arguments), f"attention {dtype}")
    arguments = q[4:], *pool.arguments(), head_dim**-0.5
    assert_close(decode(*arguments), reference.decode_attention(*arguments), f"attention {dtype}")


@pytest.mark.parametrize(("heads", "kv_heads"), [(14, 2), (28, 4), (12, 2), (40, 8), (48, 2), (3, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("form", ["interpreted", "compiled"], indirect=True)
def test_query_head_uses_its_group_s_kv_head(extend, decode, heads, kv_heads, dtype):
    length, head_dim = 6, 16
    constants = (torch.arange(kv_heads) + 1.0).to(DTYPES[dtype])
    keys = torch.randn(1, kv_heads, head_dim).to(DTYPES[dtype]).expand(length, -1, -1)
    values = constants[None, :, None].expand(length, kv_heads, head_dim)
    pool = scatter([keys], [values])
    q = random_queries(length, heads, head_dim, DTYPES[dtype])
    expected = (torch.arange(heads) // (heads // kv_heads) + 1).to(DTYPES[dtype])[None, :, None]
    new = extend_arguments(pool, [length])
    assert_equal(decode(q[:1], *pool.arguments(), 0.25), expected.expand(1, -1, head_dim))
    assert_equal(extend(q, *pool.arguments(), *new, 0.25), expected.expand(length, -1, head_dim))
    mask = random_tree(length, seed=0).flatten()
    assert_equal(extend(q, *pool.arguments(), *new, 0.25, mask), expected.expand(length, -1, head_dim))


@pytest.mark.parametrize("prefix", [0, 37])
@pytest.mark.parametrize("new", [1, 63, 64, 65, 511, 513, 1025, 4097])
def test_causal_prefill_lengths(extend, form, prefix, new):
    if form != "compiled" and new > 65:
        pytest.skip("minutes long outside compiled code")
    pool = random_pool([prefix + new], 1, 16, torch.float32, seed=new)
    q = random_queries(new, 2, 16, torch.float32)
    actual = extend(q, *pool.arguments(), *extend_arguments(pool, [new]), 0.25)
    slots = pool.req_to_token[pool.req_pool_indices[0], : prefix + new].long()
    k, v = (cache[slots].transpose(0, 1) for cache in (pool.k_cache, pool.v_cache))
    visible = torch.arange(prefix + new)[None] <= torch.arange(prefix, prefix + new)[:, None]
    expected = F.scaled_dot_product_attention(
        q.transpose(0, 1), k.expand(2, -1, -1), v.expand(2, -1, -1), attn_mask=visible, scale=0.25)  # fmt: skip
    assert_close(actual, expected.transpose(0, 1), "attention f32")


@pytest.mark.parametrize("prefix", [0, 33])
def test_padding_node_gives_zeros_and_disturbs_nobody(extend, prefix):
    """A row of the mask without any node is padding."""
    pool = random_pool([prefix + 4], 1, 16, torch.float32)
    q = random_queries(4, 2, 16, torch.float32)
    mask = random_tree(4, seed=2)
    mask[3] = False
    padded = extend(q, *pool.arguments(), *extend_arguments(pool, [4]), 0.25, mask.flatten())
    three = (*pool.arguments()[:-1], torch.tensor([prefix + 3]))
    smaller = extend(q[:3], *three, *extend_arguments(pool, [3]), 0.25, mask[:3, :3].flatten())
    assert_equal(padded[3], torch.zeros(2, 16))
    assert_equal(padded[:3], smaller)


def test_request_without_keys_gives_zeros(decode):
    pool = random_pool([0, 3], 1, 16, torch.float32)
    out = decode(random_queries(2, 2, 16, torch.float32), *pool.arguments(), 0.25)
    assert_equal(out[0], torch.zeros(2, 16))
    assert out[1].isfinite().all()


def test_request_shorter_than_its_new_tokens(extend):
    """A padding request of a batch: causal rows before position 0 and all nodes of a tree see nothing."""
    pool = random_pool([8, 2], 1, 16, torch.float32)
    q = random_queries(8, 2, 16, torch.float32)
    for mask in (None, torch.cat([random_tree(4, 0), random_tree(4, 1)]).flatten()):
        arguments = q, *pool.arguments(), *extend_arguments(pool, [4, 4]), 0.25, mask
        actual = extend(*arguments)
        assert_close(actual, reference.extend_attention(*arguments), "attention f32")
        assert_equal(actual[4:6], torch.zeros(2, 2, 16))


def test_request_without_new_tokens_in_a_batch(extend):
    pool = random_pool([9, 5, 12], 1, 16, torch.float32)
    q = random_queries(5, 2, 16, torch.float32)
    arguments = q, *pool.arguments(), *extend_arguments(pool, [2, 0, 3]), 0.25
    assert_close(extend(*arguments), reference.extend_attention(*arguments), "attention f32")


def test_batch_of_nobody(extend, decode):
    pool = random_pool([4], 1, 16, torch.float32)
    nobody = torch.empty(0, dtype=torch.int64)
    q = torch.empty(0, 2, 16)
    caches = pool.arguments()[:3]
    assert decode(q, *caches, nobody, nobody, 0.25).shape == (0, 2, 16)
    assert extend(q, *caches, nobody, nobody, nobody, nobody, 0, 0.25).shape == (0, 2, 16)
    no_mask = torch.empty(0, dtype=torch.bool)
    assert extend(q, *caches, nobody, nobody, nobody, nobody, 4, 0.25, no_mask).shape == (0, 2, 16)


def test_strided_views(extend):
    """q inside a fused projection, caches with the head dimension first and layers interleaved, a wide table."""
    pool = random_pool([19], 2, 16, torch.float32)
    q = random_queries(4, 6, 16, torch.float32)
    fused = torch.full((4, 200), float("nan"))
    fused[:, 8:104] = q.flatten(1)
    k_cache = torch.stack([torch.full_like(pool.k_cache, float("nan")), pool.k_cache]).transpose(0, 1)[:, 1]
    v_cache = pool.v_cache.transpose(0, 1).contiguous().transpose(0, 1)
    table = torch.cat([pool.req_to_token, torch.zeros(3, 50, dtype=torch.int32)], 1)[:, : pool.req_to_token.shape[1]]
    mask = random_tree(4, seed=5).flatten()
    new = *extend_arguments(pool, [4]), 0.25, mask
    actual = extend(fused[:, 8:104].view(4, 6, 16), k_cache, v_cache, table, *pool.arguments()[3:], *new)
    assert_equal(actual, extend(q, *pool.arguments(), *new))


def test_slot_addresses_pass_32_bits(decode, form):
    """Slot 2,100,000 of 1024 elements: the pool is mapped and stays untouched but for that slot."""
    slots, heads, head_dim = 2_100_001, 8, 128
    caches = [
        torch.frombuffer(mmap.mmap(-1, slots * heads * head_dim * 2), dtype=torch.float16).view(slots, heads, head_dim)
        for _ in range(2)
    ]
    table = torch.full((1, 1), slots - 1, dtype=torch.int32)
    values = random_queries(1, heads, head_dim, torch.float16)
    caches[1][slots - 1] = values[0]
    out = decode(values, *caches, table, torch.zeros(1, dtype=torch.int64), torch.ones(1, dtype=torch.int64), 0.1)
    assert_equal(out, values)


ERRORS = {
    "kv heads do not divide": ({"q": torch.zeros(1, 5, 16)}, ValueError, "5 heads"),
    "dtype of the cache": ({"k_cache": torch.zeros(4, 2, 16, dtype=torch.float16)}, TypeError, "k_cache has dtype"),
    "float64": ({"q": torch.zeros(1, 4, 16, dtype=torch.float64)}, TypeError, "q has dtype torch.float64"),
    "head size": ({"q": torch.zeros(1, 4, 8)}, ValueError, "k_cache has shape"),
    "transposed cache": ({"v_cache": torch.zeros(4, 16, 2).transpose(1, 2)}, ValueError, "v_cache has stride"),
    "float lengths": ({"seq_lens": torch.ones(1)}, TypeError, "seq_lens has dtype"),
    "lengths of no axis": ({"seq_lens": torch.tensor(1)}, ValueError, r"seq_lens has shape \[\], expected \[any\]"),
    "two index lengths": ({"req_pool_indices": torch.zeros(2, dtype=torch.int64)}, ValueError, "req_pool_indices"),
}


@pytest.mark.parametrize(("changes", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_arguments_that_do_not_fit(extend, decode, changes, error, message):
    one = torch.ones(1, dtype=torch.int64)
    fitting = {"q": torch.zeros(1, 4, 16), "k_cache": torch.zeros(4, 2, 16), "v_cache": torch.zeros(4, 2, 16),
                   "req_to_token": torch.zeros(1, 4, dtype=torch.int32), "req_pool_indices": one * 0, "seq_lens": one,
                   "sm_scale": 0.25}  # fmt: skip
    with pytest.raises(error, match=message):
        decode(**{**fitting, **changes})
    new = {"extend_seq_lens": one, "extend_start_loc": one * 0, "max_extend_len": 1}
    with pytest.raises(error, match=message):
        extend(**{**fitting, **new, **changes})


def test_rows_without_a_request_are_refused(extend):
    pool, none = random_pool([5], 1, 16, torch.float32), torch.zeros(0, dtype=torch.int64)
    q = random_queries(3, 2, 16, torch.float32)
    with pytest.raises(ValueError, match="q has 3 rows and there are no requests"):
        extend(q, *pool.arguments()[:3], none, none, none, none, 3, 0.25)


def test_tree_mask_of_another_size(extend):
    pool = random_pool([5], 1, 16, torch.float32)
    q = random_queries(3, 2, 16, torch.float32)
    with pytest.raises(ValueError, match="tree_mask has 8 elements"):
        extend(q, *pool.arguments(), *extend_arguments(pool, [3]), 0.25, torch.ones(8, dtype=torch.bool))
