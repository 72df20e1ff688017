"""The bits of a row: the same alone, in a batch, in any tile, in a prefill, and in a token tree."""

from __future__ import annotations

import pytest
import torch

from tests.compare import assert_equal
from tests.triton_spec.attention.pool import Pool, extend_arguments, random_pool, random_queries, random_tree, scatter

DTYPES = [pytest.param(torch.bfloat16, id="bf16"), pytest.param(torch.float16, id="f16"),
          pytest.param(torch.float32, id="f32")]  # fmt: skip
GROUPS = [pytest.param(14, 2, id="gqa14-2"), pytest.param(9, 3, id="gqa9-3"), pytest.param(1, 1, id="gqa1-1")]
SCALE = 0.3
pytestmark = pytest.mark.parametrize("form", ["interpreted", "compiled"], indirect=True)


def sequence(pool: Pool, request: int, nodes: torch.Tensor | None, prefix: int) -> Pool:
    """Request ``request`` alone in a fresh pool with other slots: its prefix, then the given new tokens in order."""
    slots = pool.req_to_token[pool.req_pool_indices[request]].long()
    places = slots[:prefix] if nodes is None else torch.cat((slots[:prefix], slots[prefix + nodes]))
    return scatter([pool.k_cache[places]], [pool.v_cache[places]], seed=99 + request + prefix)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("heads", "kv_heads"), GROUPS)
@pytest.mark.parametrize("prefix", [0, 1, 29, 32, 61])
def test_tree_node_is_decoding_of_its_path(extend, decode, dtype, heads, kv_heads, prefix):
    nodes = 11
    pool = random_pool([prefix + nodes], kv_heads, 16, dtype, seed=prefix)
    q = random_queries(nodes, heads, 16, dtype)
    mask = random_tree(nodes, seed=prefix)
    verified = extend(q, *pool.arguments(), *extend_arguments(pool, [nodes]), SCALE, mask.flatten())
    for node in range(nodes):
        alone = sequence(pool, 0, mask[node].nonzero()[:, 0], prefix)
        assert_equal(verified[node], decode(q[node : node + 1], *alone.arguments(), SCALE)[0])


def test_deep_tree_crosses_key_blocks(extend, decode):
    nodes, prefix = 70, 20
    pool = random_pool([prefix + nodes], 1, 16, torch.bfloat16)
    q = random_queries(nodes, 3, 16, torch.bfloat16)
    chain = torch.ones(nodes, nodes, dtype=torch.bool).tril()
    chain[65:, 60:65] = False  # a second branch below node 59
    verified = extend(q, *pool.arguments(), *extend_arguments(pool, [nodes]), SCALE, chain.flatten())
    for node in (0, 11, 12, 43, 44, 59, 64, 65, 69):
        alone = sequence(pool, 0, chain[node].nonzero()[:, 0], prefix)
        assert_equal(verified[node], decode(q[node : node + 1], *alone.arguments(), SCALE)[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("prefix", [0, 5, 32])
def test_causal_prefill_is_decoding_one_by_one(extend, decode, dtype, prefix):
    new = 37
    pool = random_pool([prefix + new], 2, 16, dtype, seed=prefix)
    q = random_queries(new, 6, 16, dtype)
    prefill = extend(q, *pool.arguments(), *extend_arguments(pool, [new]), SCALE)
    for i in range(new):
        lengths = torch.tensor([prefix + i + 1])
        one = decode(q[i : i + 1], *pool.arguments()[:-1], lengths, SCALE)
        assert_equal(prefill[i], one[0])


@pytest.mark.parametrize("cuts", [(37,), (1, 36), (5, 20, 12), (32, 5)], ids=str)
def test_prefill_in_pieces(extend, cuts):
    pool = random_pool([37], 1, 32, torch.bfloat16)
    q = random_queries(37, 5, 32, torch.bfloat16)
    whole = extend(q, *pool.arguments(), *extend_arguments(pool, [37]), SCALE)
    start = 0
    for new in cuts:
        lengths = torch.tensor([start + new])
        piece = extend(q[start : start + new], *pool.arguments()[:-1], lengths, *extend_arguments(pool, [new]), SCALE)
        assert_equal(piece, whole[start : start + new])
        start += new


@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=["int32", "int64"])
def test_batch_is_each_request_alone(extend, decode, index):
    nodes, prefixes = 6, [3, 0, 40, 31, 64]
    pool = random_pool([prefix + nodes for prefix in prefixes], 2, 32, torch.bfloat16, index=index)
    q = random_queries(nodes * len(prefixes), 14, 32, torch.bfloat16)
    masks = [random_tree(nodes, seed=prefix) for prefix in prefixes]
    together = extend(q, *pool.arguments(), *extend_arguments(pool, [nodes] * len(prefixes)), SCALE,
                      torch.stack(masks).flatten())  # fmt: skip
    causal = extend(q, *pool.arguments(), *extend_arguments(pool, [nodes] * len(prefixes)), SCALE)
    decoded = decode(q[: len(prefixes)], *pool.arguments(), SCALE)
    for request, prefix in enumerate(prefixes):
        alone = sequence(pool, request, torch.arange(nodes), prefix)
        rows = slice(request * nodes, (request + 1) * nodes)
        one = extend_arguments(alone, [nodes])
        assert_equal(together[rows], extend(q[rows], *alone.arguments(), *one, SCALE, masks[request].flatten()))
        assert_equal(causal[rows], extend(q[rows], *alone.arguments(), *one, SCALE))
        row = slice(request, request + 1)
        assert_equal(decoded[row], decode(q[row], *alone.arguments(), SCALE))


def test_larger_tree_leaves_the_nodes_before_unchanged(extend):
    """Other tiles, another NODES constant: nodes 0..4 of a 19-node tree are those of the 5-node tree."""
    prefix, few, many = 45, 5, 19
    pool = random_pool([prefix + many], 3, 64, torch.bfloat16)
    q = random_queries(many, 9, 64, torch.bfloat16)
    mask = random_tree(many, seed=1)
    large = extend(q, *pool.arguments(), *extend_arguments(pool, [many]), SCALE, mask.flatten())
    arguments = (*pool.arguments()[:-1], torch.tensor([prefix + few]))
    small = extend(q[:few], *arguments, *extend_arguments(pool, [few]), SCALE, mask[:few, :few].flatten())
    assert_equal(small, large[:few])


def test_nan_in_a_node_stays_with_the_rows_that_see_it(extend):
    nodes, prefix, bad = 9, 10, 3
    pool = random_pool([prefix + nodes], 1, 16, torch.float32)
    q = random_queries(nodes, 2, 16, torch.float32)
    mask = random_tree(nodes, seed=4)
    arguments = *extend_arguments(pool, [nodes]), SCALE, mask.flatten()
    clean = extend(q, *pool.arguments(), *arguments)
    slot = pool.req_to_token[pool.req_pool_indices[0], prefix + bad].long()
    pool.k_cache[slot] = float("nan")
    pool.v_cache[slot] = float("nan")
    dirty = extend(q, *pool.arguments(), *arguments)
    sees = mask[:, bad]
    assert sees.any()
    assert not sees.all()
    assert_equal(dirty[~sees], clean[~sees])
    assert dirty[sees].isnan().all()
