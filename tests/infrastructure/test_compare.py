"""The comparisons fail when they should, and say where."""

import math
from pathlib import Path

import pytest
import torch

from tests.compare import assert_close, assert_equal
from tests.tolerance import TOLERANCES

ONE = torch.ones(2, 3)


def test_equal_values_pass():
    for values in ([1, -2], [1.5, math.nan, -math.inf], [True, False], []):
        assert_equal(torch.tensor(values), torch.tensor(values))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (torch.ones(3, 2), "shape"),
        (torch.ones(2, 3, dtype=torch.float64), "dtype"),
        (
            torch.ones(2, 3).index_put((torch.tensor(1), torch.tensor(2)), torch.tensor(2.0)),
            r"\[1, 2\]: 1.0, expected 2",
        ),
        (torch.full((2, 3), math.nan), "6 of 6"),
    ],
    ids=["shape", "dtype", "value", "nan"],
)
def test_differences_are_named(other, message):
    for compare in (assert_equal, lambda actual, expected: assert_close(actual, expected, "linear f32")):
        with pytest.raises(AssertionError, match=message):
            compare(ONE, other)


def test_negative_zero_is_not_zero():
    with pytest.raises(AssertionError, match="1 of 1"):
        assert_equal(torch.tensor([0.0]), torch.tensor([-0.0]))


def test_a_drift_of_every_element_fails_by_root_mean_square():
    row = TOLERANCES["linear f32"]
    expected = torch.full((1000,), 0.1)
    with pytest.raises(AssertionError, match="root mean square"):
        assert_close(expected + row.max_abs / 2, expected, "linear f32")


def test_every_tolerance_has_a_reason_and_positive_bounds():
    for row in TOLERANCES.values():
        assert len(row.reason) > 20
        assert min(row.max_abs, row.max_rel, row.rms) > 0


def test_every_tolerance_is_used():
    tests = "\n".join(path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py"))
    unused = [name for name in TOLERANCES if f'"{name}"' not in tests and f'f"{name.split()[0]} {{' not in tests]
    assert not unused
