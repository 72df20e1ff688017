"""store_kv_cache: exact copies into slots, nothing else written."""

from __future__ import annotations

import mmap

import pytest
import torch

from tests.compare import assert_equal
from tests.triton_spec.floating import load_op

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
DIMENSIONS = [(3, 64, 64), (2, 80, 96), (1, 13, 1), (2, 192, 128)]


@pytest.fixture
def store_kv_cache(form):
    return load_op(form, "triton_spec.layers.cache", "store_kv_cache")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=["int32", "int64"])
@pytest.mark.parametrize(("heads", "key_dim", "value_dim"), DIMENSIONS, ids=str)
def test_writes_the_slots_and_nothing_else(store_kv_cache, dtype, index, heads, key_dim, value_dim):
    k = torch.randn(5, heads, key_dim).to(DTYPES[dtype])
    v = torch.randn(5, heads, value_dim).to(DTYPES[dtype])
    k_cache = torch.full((11, heads, key_dim), 7.0).to(DTYPES[dtype])
    v_cache = torch.full((11, heads, value_dim), 7.0).to(DTYPES[dtype])
    loc = torch.tensor([3, 10, 0, 7, 4], dtype=index)
    expected_k, expected_v = k_cache.clone(), v_cache.clone()
    expected_k[loc.long()], expected_v[loc.long()] = k, v
    store_kv_cache(k, v, k_cache, v_cache, loc)
    assert_equal(k_cache, expected_k)
    assert_equal(v_cache, expected_v)


def test_strided_views(store_kv_cache):
    """k and v inside a fused projection; one layer of a cache that interleaves layers, heads first."""
    fused = torch.randn(4, 100)
    k, v = fused[:, 10:42].view(4, 2, 16), fused[:, 42:74].view(4, 2, 16)
    storage = torch.full((2, 3, 9, 20), 7.0)  # heads, layers, slots, head_dim and padding
    k_cache, v_cache = (storage[:, layer, :, :16].transpose(0, 1) for layer in (0, 2))
    loc = torch.tensor([8, 0, 5, 1])
    store_kv_cache(k, v, k_cache, v_cache, loc)
    assert_equal(k_cache[loc], k.contiguous())
    assert_equal(v_cache[loc], v.contiguous())
    assert storage[:, 1].eq(7).all()
    assert storage[..., 16:].eq(7).all()
    assert k_cache[[2, 3, 4, 6, 7]].eq(7).all()


def test_row_without_a_slot_is_not_written(store_kv_cache):
    k = torch.randn(4, 1, 8)
    k_cache, v_cache = torch.zeros(3, 1, 8), torch.zeros(3, 1, 8)
    store_kv_cache(k, k, k_cache, v_cache, torch.tensor([-1, 2, 3, 2**40]))
    assert_equal(k_cache[2], k[1])
    assert k_cache[:2].eq(0).all()
    assert_equal(v_cache, k_cache)


def test_no_rows(store_kv_cache):
    cache = torch.zeros(3, 1, 8)
    store_kv_cache(torch.empty(0, 1, 8), torch.empty(0, 1, 8), cache, cache, torch.empty(0, dtype=torch.int64))
    assert cache.eq(0).all()


def test_slot_addresses_pass_32_bits(store_kv_cache):
    """Slot 2,100,000 of 1024 elements: the pool is mapped and stays untouched but for that slot."""
    slots, heads, head_dim = 2_100_001, 8, 128
    k_cache, v_cache = (
        torch.frombuffer(mmap.mmap(-1, slots * heads * head_dim * 2), dtype=torch.float16).view(slots, heads, head_dim)
        for _ in range(2)
    )
    k, v = (torch.randn(1, heads, head_dim).half() for _ in range(2))
    store_kv_cache(k, v, k_cache, v_cache, torch.tensor([slots - 1], dtype=torch.int32))
    assert_equal(k_cache[slots - 1], k[0])
    assert_equal(v_cache[slots - 1], v[0])


ERRORS = {
    "heads": ({"v": torch.zeros(2, 2, 8)}, ValueError, "v has shape"),
    "cache head size": ({"k_cache": torch.zeros(4, 3, 9)}, ValueError, r"k_cache has shape \[4, 3, 9\]"),
    "slots": ({"v_cache": torch.zeros(5, 3, 8)}, ValueError, r"v_cache has shape \[5, 3, 8\], expected \[4, 3, 8\]"),
    "dtypes": ({"k_cache": torch.zeros(4, 3, 8).half()}, TypeError, "k_cache has dtype torch.float16"),
    "rows": ({"loc": torch.zeros(3, dtype=torch.int64)}, ValueError, r"loc has shape \[3\]"),
    "float slots": ({"loc": torch.zeros(2)}, TypeError, "loc has dtype torch.float32"),
    "strided slots": ({"loc": torch.zeros(4, dtype=torch.int64)[::2]}, ValueError, "loc has strides"),
    "transposed": ({"k": torch.zeros(2, 8, 3).transpose(1, 2)}, ValueError, "k has stride 3"),
}


@pytest.mark.parametrize(("changes", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_arguments_that_do_not_fit(store_kv_cache, changes, error, message):
    fitting = {"k": torch.zeros(2, 3, 8), "v": torch.zeros(2, 3, 8), "k_cache": torch.zeros(4, 3, 8),
                   "v_cache": torch.zeros(4, 3, 8), "loc": torch.zeros(2, dtype=torch.int64)}  # fmt: skip
    with pytest.raises(error, match=message):
        store_kv_cache(**{**fitting, **changes})
