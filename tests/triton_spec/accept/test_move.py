"""copy_all_layer_kv_cache: rows move in every buffer at once, as if all were read before any is written."""

from __future__ import annotations

import mmap

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.compare import assert_equal
from tests.triton_spec.floating import load_op


@pytest.fixture
def op(form):
    return load_op(form, "triton_spec.accept.move", "copy_all_layer_kv_cache")


def pool(layers, slots, key_shape, value_shape, dtype):
    """Keys, then values, of each layer, every element different from its neighbours."""
    shapes = [key_shape] * layers + [value_shape] * layers
    return [(torch.randperm(slots * shape[0] * shape[1]).view(slots, *shape) % 251).to(dtype) for shape in shapes]


def addresses(buffers):
    """data_ptrs and row_strides."""
    return (
        torch.tensor([buffer.data_ptr() for buffer in buffers], dtype=torch.uint64),
        torch.tensor([buffer.stride(0) * buffer.element_size() for buffer in buffers]),
    )


def moved(buffers, target, source):
    """What the buffers must hold afterwards, row by row from a copy."""
    result = [buffer.clone() for buffer in buffers]
    for new, old in zip(result, buffers, strict=True):
        for to, of in zip(target, source, strict=True):
            new[to] = old[of]
    return result


def check(op, buffers, target, source, index=torch.int64):
    expected = moved(buffers, target, source)
    op(*addresses(buffers), torch.tensor(target, dtype=index), torch.tensor(source, dtype=index))
    for buffer, wanted in zip(buffers, expected, strict=True):
        assert_equal(buffer, wanted)


MOVES = {
    "disjoint": ([1, 5, 9, 13], [17, 21, 25, 29]),
    "shift up": ([1, 2, 3, 4], [0, 1, 2, 3]),
    "shift down": ([0, 1, 2, 3], [1, 2, 3, 4]),
    "reverse": ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0]),
    "cycle": ([7, 3, 11], [3, 11, 7]),
    "onto itself": ([0], [0]),
    "one to many": ([4, 5, 6], [9, 9, 9]),
    "window": (list(range(1, 18)), list(range(17))),
}


@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=["int32", "int64"])
@pytest.mark.parametrize(("target", "source"), MOVES.values(), ids=MOVES)
def test_moves(op, target, source, index):
    """3 layers, keys of 2 x 64, values of 2 x 32 elements."""
    check(op, pool(3, 32, (2, 64), (2, 32), torch.bfloat16), target, source, index)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "f32"])
@pytest.mark.parametrize("heads", [(1, 1), (1, 511), (8, 128), (3, 1365)], ids=str)
def test_row_sizes(op, dtype, heads):
    """A byte less, a byte more than a tile, several tiles; values are of another size."""
    check(op, pool(1, 5, heads, (1, 3), dtype), [0, 1, 4], [1, 2, 0])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_moves(op, data):
    slots = data.draw(st.integers(1, 12), "slots")
    target = data.draw(st.lists(st.integers(0, slots - 1), unique=True), "target")
    source = [data.draw(st.integers(0, slots - 1)) for _ in target]
    check(op, pool(2, slots, (1, 5), (1, 3), torch.float16), target, source)


def test_negative_rows_are_skipped(op):
    buffers = pool(2, 6, (1, 8), (1, 8), torch.float32)
    expected = moved(buffers, [3], [0])
    op(*addresses(buffers), torch.tensor([-1, 3, 2]), torch.tensor([1, 0, -1]))
    for buffer, wanted in zip(buffers, expected, strict=True):
        assert_equal(buffer, wanted)


def test_one_buffer_alone(op):
    storage = torch.arange(6 * 4, dtype=torch.int32).view(6, 4)
    expected = storage.clone()
    expected[2], expected[0] = storage[5], storage[1]
    op(*addresses([storage]), torch.tensor([2, 0]), torch.tensor([5, 1]))
    assert_equal(storage, expected)


def test_nothing_to_move(op):
    buffers = pool(1, 4, (1, 8), (1, 8), torch.float32)
    before = [buffer.clone() for buffer in buffers]
    none = torch.empty(0, dtype=torch.int64)
    op(*addresses(buffers), none, none)
    op(torch.empty(0, dtype=torch.uint64), none, torch.tensor([1]), torch.tensor([2]))
    for buffer, wanted in zip(buffers, before, strict=True):
        assert_equal(buffer, wanted)


def test_row_addresses_pass_32_bits(op):
    """Row 2,100,000 of 2 KiB: the pool is mapped and stays untouched but for two rows."""
    slots = 2_100_001
    rows = torch.frombuffer(mmap.mmap(-1, slots * 2048), dtype=torch.uint8).view(slots, 2048)
    rows[slots - 1] = torch.arange(2048) % 253
    op(*addresses([rows]), torch.tensor([3], dtype=torch.int32), torch.tensor([slots - 1], dtype=torch.int32))
    assert_equal(rows[3], rows[slots - 1])
    rows[3] = 1
    op(*addresses([rows]), torch.tensor([slots - 2], dtype=torch.int32), torch.tensor([3], dtype=torch.int32))
    assert rows[slots - 2].eq(1).all()


ERRORS = {
    "signed": ({"data_ptrs": torch.zeros(2, dtype=torch.int64)}, TypeError, "data_ptrs has dtype torch.int64"),
    "strides": ({"row_strides": torch.zeros(3, dtype=torch.int64)}, ValueError, r"row_strides has shape \[3\]"),
    "stride dtype": ({"row_strides": torch.zeros(2, dtype=torch.int32)}, TypeError, "row_strides has dtype"),
    "negative stride": ({"row_strides": torch.tensor([64, -64])}, ValueError, "row_strides has -64"),
    "rows": ({"src_loc": torch.zeros(4, dtype=torch.int64)}, ValueError, r"src_loc has shape \[4\], expected \[3\]"),
    "float rows": ({"tgt_loc": torch.zeros(3)}, TypeError, "tgt_loc has dtype torch.float32"),
}


@pytest.mark.parametrize(("changes", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_arguments_that_do_not_fit(op, changes, error, message):
    locations = torch.zeros(3, dtype=torch.int64)
    fitting = {"data_ptrs": torch.zeros(2, dtype=torch.uint64), "row_strides": torch.zeros(2, dtype=torch.int64),
               "tgt_loc": locations, "src_loc": locations}  # fmt: skip
    with pytest.raises(error, match=message):
        op(**{**fitting, **changes})
