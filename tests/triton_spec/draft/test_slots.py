"""assign_req_to_token_pool and assign_extend_cache_locs: slots into the request table and out of it."""

from __future__ import annotations

import mmap

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.compare import assert_equal
from tests.triton_spec.floating import load_op

KEPT = -9  # fill of what must not be written
each_index = pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=["int32", "int64"])


@pytest.fixture
def write(form):
    return load_op(form, "triton_spec.draft.slots", "assign_req_to_token_pool")


@pytest.fixture
def read(form):
    return load_op(form, "triton_spec.draft.slots", "assign_extend_cache_locs")


def indices(values, dtype=torch.int64):
    return torch.tensor(values, dtype=dtype)


@each_index
def test_writes_ranges_of_rows(write, index):
    """The second range is empty."""
    table = torch.full((5, 20), KEPT, dtype=torch.int32)
    expected = table.clone()
    expected[2, 0:6] = torch.arange(100, 106)
    expected[1, 8:15] = torch.arange(106, 113)
    requests, start, end = (indices(values, index) for values in ([2, 4, 1], [0, 3, 8], [6, 3, 15]))
    write(requests, table, start, end, torch.arange(100, 113, dtype=index))
    assert_equal(table, expected)


@each_index
@pytest.mark.parametrize("table_index", [torch.int32, torch.int64], ids=["table32", "table64"])
def test_reads_ranges_of_rows(read, index, table_index):
    """The last range is empty; what follows the slots keeps its fill."""
    table = torch.arange(4 * 16, dtype=table_index).view(4, 16) * 3
    requests, start, end = (indices(values, index) for values in ([1, 3, 0, 2], [4, 0, 11, 6], [9, 7, 12, 6]))
    out = torch.full((15,), KEPT, dtype=index)
    read(requests, table, start, end, out)
    expected = torch.cat((table[1, 4:9], table[3, 0:7], table[0, 11:12])).to(index)
    assert_equal(out, torch.cat((expected, indices([KEPT, KEPT], index))))


@pytest.mark.parametrize("length", [0, 1, 127, 128, 129, 300])
def test_long_ranges(write, read, length):
    table = torch.full((3, 310), KEPT, dtype=torch.int32)
    slots = torch.randperm(2 * length)
    ranges = indices([2, 0]), indices([5, 9]), indices([5 + length, 9 + length])
    write(ranges[0], table, *ranges[1:], slots)
    assert table.ne(KEPT).sum() == 2 * length
    assert_equal(table[0, 9 : 9 + length].long(), slots[length:])
    out = torch.empty(2 * length, dtype=torch.int64)
    read(ranges[0], table, *ranges[1:], out)
    assert_equal(out, slots)


def test_rows_of_a_wider_table(write, read):
    storage = torch.full((4, 30), KEPT, dtype=torch.int32)
    table = storage[1:, 10:20]
    write(indices([2, 0]), table, indices([0, 8]), indices([3, 10]), torch.arange(5))
    expected = torch.full((4, 30), KEPT, dtype=torch.int32)
    expected[3, 10:13], expected[1, 18:20] = torch.arange(3), torch.arange(3, 5)
    assert_equal(storage, expected)
    out = torch.empty(5, dtype=torch.int32)
    read(indices([2, 0]), table, indices([0, 8]), indices([3, 10]), out)
    assert_equal(out, torch.arange(5, dtype=torch.int32))


def test_what_has_no_place_is_skipped(write, read):
    """Positions -1 and 4 of a table of width 4, rows -1 and 3 of 3, and a slot list that ends early."""
    storage = torch.full((5, 8), KEPT, dtype=torch.int32)
    table = storage[1:4, 2:6]
    ranges = indices([1, -1, 3, 0]), indices([-1, 0, 1, 1]), indices([5, 2, 3, 4])
    write(ranges[0], table, *ranges[1:], torch.arange(100, 112))
    expected = torch.full((5, 8), KEPT, dtype=torch.int32)
    expected[2, 2:6] = torch.arange(101, 105)
    expected[1, 3:5] = torch.arange(110, 112)
    assert_equal(storage, expected)
    storage.copy_(torch.arange(40).view(5, 8))
    out = torch.full((14,), KEPT)
    read(ranges[0], table, *ranges[1:], out[:12])
    assert out.tolist() == [KEPT, 18, 19, 20, 21, *[KEPT] * 5, 11, 12, KEPT, KEPT]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_ranges(write, read, data):
    """Also ranges that end before they start, leave the table, or belong to no row; and too few slots."""
    width = 9
    batch = data.draw(st.integers(1, 5), "batch")
    requests = data.draw(st.lists(st.integers(-1, 6), min_size=batch, max_size=batch, unique=True), "requests")
    start = data.draw(st.lists(st.integers(-2, 11), min_size=batch, max_size=batch), "start")
    end = data.draw(st.lists(st.integers(-2, 11), min_size=batch, max_size=batch), "end")
    total = data.draw(st.integers(0, 30), "total")
    pairs = [(row, at) for row, a, b in zip(requests, start, end, strict=True) for at in range(a, b)]
    known = [(k, row, at) for k, (row, at) in enumerate(pairs) if k < total and 0 <= row < 6 and 0 <= at < width]
    storage = torch.full((10, width + 4), KEPT, dtype=torch.int32)
    table, expected = storage[2:8, 2:-2], torch.full_like(storage, KEPT)
    for place, row, at in known:
        expected[2 + row, 2 + at] = 50 + place
    ranges = indices(requests), indices(start), indices(end)
    write(ranges[0], table, *ranges[1:], torch.arange(50, 50 + total))
    assert_equal(storage, expected)
    table = torch.arange(6 * width).view(6, width)
    out, wanted = (torch.full((total,), KEPT) for _ in range(2))
    for place, row, at in known:
        wanted[place] = row * width + at
    read(ranges[0], table, *ranges[1:], out)
    assert_equal(out, wanted)


def test_table_addresses_pass_32_bits(write, read):
    """Row 9 of 300,000,000 positions: the table is mapped and stays untouched but for two of them."""
    width = 300_000_000
    table = torch.frombuffer(mmap.mmap(-1, 10 * width * 4), dtype=torch.int32).view(10, width)
    where = indices([9], torch.int32), indices([width - 2], torch.int32), indices([width], torch.int32)
    write(where[0], table, *where[1:], indices([7, 8], torch.int32))
    assert table[9, width - 2 :].tolist() == [7, 8]
    out = torch.empty(2, dtype=torch.int32)
    read(where[0], table, *where[1:], out)
    assert out.tolist() == [7, 8]


def test_no_requests(write, read):
    table, none = torch.full((2, 3), KEPT, dtype=torch.int32), torch.empty(0, dtype=torch.int64)
    write(none, table, none, none, none)
    read(none, table, none, none, none)
    assert table.eq(KEPT).all()


ERRORS = {
    "float table": ({"req_to_token": torch.zeros(2, 8)}, TypeError, "req_to_token has dtype torch.float32"),
    "flat table": ({"req_to_token": torch.zeros(8, dtype=torch.int32)}, ValueError, r"req_to_token has shape \[8\]"),
    "transposed": ({"req_to_token": torch.zeros(8, 2, dtype=torch.int32).t()}, ValueError, "req_to_token has stride 2"),
    "starts": ({"start_offset": torch.zeros(3, dtype=torch.int64)}, ValueError, r"start_offset has shape \[3\]"),
    "ends": ({"end_offset": torch.zeros(2)}, TypeError, "end_offset has dtype torch.float32"),
    "strided": ({"out_cache_loc": torch.zeros(8, dtype=torch.int64)[::2]}, ValueError, "out_cache_loc has strides"),
}


@pytest.mark.parametrize(("changes", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_arguments_that_do_not_fit(write, read, changes, error, message):
    fitting = {name: torch.zeros(2, dtype=torch.int64) for name in ("req_pool_indices", "start_offset", "end_offset")}
    fitting |= {"req_to_token": torch.zeros(2, 8, dtype=torch.int32),
                "out_cache_loc": torch.zeros(4, dtype=torch.int64)}  # fmt: skip
    for op in (write, read):
        with pytest.raises(error, match=message):
            op(**{**fitting, **changes})
