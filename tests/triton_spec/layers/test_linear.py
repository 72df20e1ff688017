"""The linear layer: agreement with the reference, and the bits of a row in any company."""

from __future__ import annotations

import pytest
import torch

from tests.compare import assert_close, assert_equal
from tests.triton_spec.floating import load_op
from triton_spec.layers import reference

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
kernel_forms = pytest.mark.parametrize("form", ["interpreted", "compiled"], indirect=True)


@pytest.fixture
def linear(form):
    return load_op(form, "triton_spec.layers.linear", "linear")


def inputs(rows: int, columns: int, depth: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """x [rows, depth] and weight [columns, depth] whose product has elements around 1."""
    generator = torch.Generator().manual_seed(rows + columns + depth)
    x = torch.randn(rows, depth, generator=generator).to(dtype)
    return x, (torch.randn(columns, depth, generator=generator) * depth**-0.5).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 3, 16, 17, 65])
@pytest.mark.parametrize(("columns", "depth"), [(50, 13), (1, 64), (64, 576), (50, 100), (96, 257)], ids=str)
def test_agrees_with_reference(linear, dtype, rows, columns, depth):
    x, weight = inputs(rows, columns, depth, DTYPES[dtype])
    actual = linear(x, weight)
    assert actual.dtype == DTYPES[dtype]
    assert_close(actual, reference.linear(x, weight), f"linear {dtype}")


@pytest.mark.parametrize("rows", [1, 16])
@pytest.mark.parametrize(("columns", "depth"), [(1536, 576), (576, 1536), (960, 576)], ids=str)
def test_model_shapes(linear, form, rows, columns, depth):
    if form == "interpreted" and rows > 1:
        pytest.skip("the same programs as with one row, only slower")
    x, weight = inputs(rows, columns, depth, torch.bfloat16)
    assert_close(linear(x, weight), reference.linear(x, weight), "linear bf16")


@pytest.mark.parametrize("columns", [64, 50])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bias_is_added_before_the_one_rounding(linear, columns, dtype):
    x, weight = inputs(3, columns, 64, DTYPES[dtype])
    bias = torch.randn(columns, generator=torch.Generator().manual_seed(1)).to(DTYPES[dtype])
    expected = reference.linear(x, weight, out_dtype=torch.float32) + bias.float()
    assert_close(linear(x, weight, bias, torch.float32), expected, "linear f32")
    assert_close(linear(x, weight, bias), expected.to(DTYPES[dtype]), f"linear {dtype}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_f32_result_of_any_dtype(linear, dtype):
    x, weight = inputs(4, 33, 96, DTYPES[dtype])
    actual = linear(x, weight, out_dtype=torch.float32)
    assert actual.dtype == torch.float32
    assert_close(actual, x.float() @ weight.float().T, "linear f32")


@kernel_forms
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("columns", "depth"), [(64, 576), (50, 100)], ids=str)
def test_bits_of_a_row_do_not_depend_on_its_company(linear, dtype, columns, depth):
    x, weight = inputs(64, columns, depth, DTYPES[dtype])
    alone = linear(x[:1], weight)
    for rows in (2, 7, 16, 17, 64):
        assert_equal(linear(x[:rows], weight)[:1], alone)
        assert_equal(linear(x[:rows].flip(0).contiguous(), weight)[-1:], alone)


@kernel_forms
def test_bits_of_a_column_do_not_depend_on_its_company(linear):
    x, weight = inputs(3, 70, 576, torch.bfloat16)
    whole = linear(x, weight)
    for first, last in ((0, 1), (31, 33), (5, 70)):
        assert_equal(linear(x, weight[first:last]), whole[:, first:last].contiguous())


@kernel_forms
def test_rows_at_any_stride(linear):
    x, weight = inputs(5, 40, 64, torch.float32)
    expected = linear(x, weight)
    wide_x, wide_weight = torch.full((5, 100), float("nan")), torch.full((40, 77), float("nan"))
    wide_x[:, 3:67], wide_weight[:, 13:] = x, weight
    assert_equal(linear(wide_x[:, 3:67], wide_weight[:, 13:]), expected)
    assert_equal(linear(x[:1].expand(5, -1), weight), expected[:1].expand(5, -1))
    assert_equal(linear(x[::2], weight[::3]), expected[::2, ::3].contiguous())


@pytest.mark.parametrize(("rows", "columns", "depth"), [(0, 5, 64), (3, 0, 64), (2, 5, 0)], ids=str)
def test_empty(linear, rows, columns, depth):
    y = linear(torch.empty(rows, depth), torch.empty(columns, depth))
    assert_equal(y, torch.zeros(rows, columns))


@kernel_forms
def test_nan_stays_in_its_row_and_column(linear):
    x, weight = inputs(6, 40, 64, torch.float32)
    clean = linear(x, weight)
    x[2, 5], weight[7, 3] = float("nan"), float("inf")
    dirty = linear(x, weight)
    assert dirty[2].isnan().all()
    others = [0, 1, 3, 4, 5]
    columns = [n for n in range(40) if n != 7]
    assert_equal(dirty[others][:, columns], clean[others][:, columns])


ERRORS = {
    "depth": ((torch.zeros(2, 8), torch.zeros(3, 9)), ValueError, r"weight has shape \[3, 9\], expected \[any, 8\]"),
    "dtypes": ((torch.zeros(2, 8), torch.zeros(3, 8).bfloat16()), TypeError, "weight has dtype torch.bfloat16"),
    "float64": ((torch.zeros(2, 8).double(), torch.zeros(3, 8).double()), TypeError, "x has dtype torch.float64"),
    "one dimension": ((torch.zeros(8), torch.zeros(3, 8)), ValueError, r"x has shape \[8\]"),
    "transposed x": ((torch.zeros(8, 2).T, torch.zeros(3, 8)), ValueError, "x has stride 2"),
    "transposed weight": ((torch.zeros(2, 8), torch.zeros(8, 3).T), ValueError, "weight has stride 3"),
    "bias": ((torch.zeros(2, 8), torch.zeros(3, 8), torch.zeros(4)), ValueError, r"bias has shape \[4\]"),
    "int result": ((torch.zeros(2, 8), torch.zeros(3, 8), None, torch.int32), TypeError, "out_dtype is torch.int32"),
}


@pytest.mark.parametrize(("arguments", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_arguments_that_do_not_fit(linear, arguments, error, message):
    with pytest.raises(error, match=message):
        linear(*arguments)
