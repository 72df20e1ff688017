"""fill_accept_out_cache_loc: the slots of accepted nodes without gaps."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.triton_spec.floating import load_op


@pytest.fixture
def op(form):
    return load_op(form, "triton_spec.accept.compact", "fill_accept_out_cache_loc")


def compact(op, accept_index, out_cache_loc, index=torch.int32):
    rows = torch.tensor(accept_index, dtype=index)
    out = torch.zeros(rows.numel(), dtype=torch.int64)
    op(rows, torch.tensor(out_cache_loc), out)
    return out.tolist()


@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=["int32", "int64"])
def test_by_hand(op, index):
    """16 nodes a request; the tail stays 0."""
    rows = [[0, 1, -1, -1], [16, 18, 21, -1], [32, -1, -1, -1]]
    slots = [1000 + 7 * node for node in range(48)]
    assert compact(op, rows, slots, index) == [1000, 1007, 1112, 1126, 1147, 1224, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("batch", [1, 2, 31, 45])
@pytest.mark.parametrize("width", [1, 5, 9])
def test_sizes(op, batch, width):
    accepted = torch.rand(batch, width) < 0.6
    rows = torch.where(accepted, torch.randint(0, 200, (batch, width)), -1).tolist()
    slots = torch.randint(1, 2**40, (200,)).tolist()
    wanted = [slots[node] for row in rows for node in row if node != -1]
    assert compact(op, rows, slots) == wanted + [0] * (batch * width - len(wanted))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_rows(op, data):
    """Also gaps between accepted nodes, and numbers of no node."""
    width = data.draw(st.integers(1, 5), "width")
    row = st.lists(st.integers(-3, 12), min_size=width, max_size=width)
    rows = data.draw(st.lists(row, min_size=1, max_size=9), "rows")
    slots = [3 * node + 1 for node in range(10)]
    wanted = [slots[node] for row in rows for node in row if 0 <= node < 10]
    assert compact(op, rows, slots) == wanted + [0] * (len(rows) * len(rows[0]) - len(wanted))


def test_no_requests(op):
    op(torch.empty(0, 4, dtype=torch.int32), torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64))


def test_no_columns(op):
    op(torch.empty(3, 0, dtype=torch.int32), torch.zeros(6, dtype=torch.int64), torch.empty(0, dtype=torch.int64))


ERRORS = {
    "size of the nodes": ({"accept_out_cache_loc": torch.zeros(16, dtype=torch.int64)}, ValueError,
                          r"accept_out_cache_loc has shape \[16\], expected \[8\]"),
    "flat": ({"accept_index": torch.zeros(8, dtype=torch.int32)}, ValueError, "accept_index has shape"),
    "float": ({"out_cache_loc": torch.zeros(16)}, TypeError, "out_cache_loc has dtype torch.float32"),
    "strided": ({"accept_index": torch.zeros(2, 8, dtype=torch.int32)[:, ::2]}, ValueError, "accept_index has strides"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_arguments_that_do_not_fit(op, changes, error, message):
    fitting = {"accept_index": torch.zeros(2, 4, dtype=torch.int32),
               "out_cache_loc": torch.zeros(16, dtype=torch.int64),
               "accept_out_cache_loc": torch.zeros(8, dtype=torch.int64)}  # fmt: skip
    with pytest.raises(error, match=message):
        op(**{**fitting, **changes})
