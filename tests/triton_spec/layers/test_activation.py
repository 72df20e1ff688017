"""silu_and_mul: agreement with the reference, extremes, strides, bits."""

from __future__ import annotations

import pytest
import torch

from tests.compare import assert_close, assert_equal
from tests.triton_spec.floating import load_op
from triton_spec.layers import reference

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


@pytest.fixture
def silu_and_mul(form):
    return load_op(form, "triton_spec.layers.activation", "silu_and_mul")


def inputs(rows: int, width: int, dtype: torch.dtype) -> torch.Tensor:
    return (torch.randn(rows, 2 * width, generator=torch.Generator().manual_seed(width)) * 3).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 13, 64, 257, 1536])
@pytest.mark.parametrize("rows", [1, 3, 17])
def test_agrees_with_reference(silu_and_mul, dtype, rows, width):
    x = inputs(rows, width, DTYPES[dtype])
    assert_close(silu_and_mul(x), reference.silu_and_mul(x), f"silu_and_mul {dtype}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_of_a_row_do_not_depend_on_its_company(silu_and_mul, dtype):
    x = inputs(17, 300, DTYPES[dtype])
    whole = silu_and_mul(x)
    for row in (0, 5, 16):
        assert_equal(silu_and_mul(x[row : row + 1]), whole[row : row + 1])


@pytest.mark.filterwarnings("ignore:overflow encountered in exp")  # numpy's, in the interpreter
def test_large_gates(silu_and_mul):
    gate = torch.tensor([[-1e4, -100.0, -88.5, 0.0, 88.5, 100.0, 1e4]])
    y = silu_and_mul(torch.cat([gate, torch.ones_like(gate)], 1))
    assert_close(y, gate * torch.sigmoid(gate), "silu_and_mul f32")


def test_rows_at_any_stride(silu_and_mul):
    x = inputs(5, 20, torch.float32)
    wide = torch.full((5, 99), float("nan"))
    wide[:, 7:47] = x
    assert_equal(silu_and_mul(wide[:, 7:47]), silu_and_mul(x))
    assert_equal(silu_and_mul(x[:1].expand(3, -1)), silu_and_mul(x[:1]).expand(3, -1))


def test_empty(silu_and_mul):
    assert silu_and_mul(torch.empty(0, 8)).shape == (0, 4)
    assert silu_and_mul(torch.empty(3, 0)).shape == (3, 0)


ERRORS = {
    "odd": (torch.zeros(2, 7), ValueError, "x has 7 columns"),
    "transposed": (torch.zeros(8, 2).T, ValueError, "x has stride 2"),
    "float64": (torch.zeros(2, 8).double(), TypeError, "x has dtype torch.float64"),
    "one dimension": (torch.zeros(8), ValueError, r"x has shape \[8\]"),
}


@pytest.mark.parametrize(("x", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_arguments_that_do_not_fit(silu_and_mul, x, error, message):
    with pytest.raises(error, match=message):
        silu_and_mul(x)
