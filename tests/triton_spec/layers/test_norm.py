"""RMS norm: agreement with the reference and with transformers, residual, strides, bits."""

from __future__ import annotations

import pytest
import torch

from tests.compare import assert_close, assert_equal
from tests.triton_spec.floating import load_op
from triton_spec.layers import reference

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
EPS = 1e-5


@pytest.fixture
def rms_norm(form):
    return load_op(form, "triton_spec.layers.norm", "rms_norm")


def inputs(rows: int, hidden: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x and residual [rows, hidden], weight [hidden]."""
    generator = torch.Generator().manual_seed(rows + hidden)
    x, residual = (torch.randn(rows, hidden, generator=generator).to(dtype) for _ in range(2))
    return x, residual, (1 + torch.randn(hidden, generator=generator) / 4).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hidden", [1, 13, 64, 576, 1536])
@pytest.mark.parametrize("rows", [1, 3, 17])
def test_agrees_with_reference(rms_norm, dtype, rows, hidden):
    x, residual, weight = inputs(rows, hidden, DTYPES[dtype])
    assert_close(rms_norm(x, weight, EPS), reference.rms_norm(x, weight, EPS), f"rms_norm {dtype}")
    stream, expected_stream = residual.clone(), residual.clone()
    expected = reference.rms_norm(x, weight, EPS, expected_stream)
    assert_close(rms_norm(x, weight, EPS, stream), expected, f"rms_norm {dtype}")
    assert_equal(stream, expected_stream)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_agrees_with_transformers(rms_norm, dtype):
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    x, _, weight = inputs(5, 576, DTYPES[dtype])
    norm = LlamaRMSNorm(576, EPS)
    norm.weight.data = weight
    assert_close(rms_norm(x, weight, EPS), norm(x).detach(), f"rms_norm {dtype}")


def test_f32_residual_stream_of_a_bf16_model(rms_norm):
    x, residual, weight = inputs(3, 64, torch.bfloat16)
    stream = residual.float() + 2**-12
    expected = stream + x.float()
    y = rms_norm(x, weight, EPS, stream)
    assert y.dtype == torch.bfloat16
    assert_equal(stream, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_of_a_row_do_not_depend_on_its_company(rms_norm, dtype):
    x, residual, weight = inputs(64, 576, DTYPES[dtype])
    whole_stream = residual.clone()
    whole = rms_norm(x, weight, EPS, whole_stream)
    for row in (0, 5, 63):
        stream = residual[row : row + 1].clone()
        assert_equal(rms_norm(x[row : row + 1], weight, EPS, stream), whole[row : row + 1])
        assert_equal(stream, whole_stream[row : row + 1])


def test_rows_at_any_stride(rms_norm):
    x, residual, weight = inputs(5, 40, torch.float32)
    expected_stream = residual.clone()
    expected = rms_norm(x, weight, EPS, expected_stream)
    wide = torch.full((5, 100), float("nan"))
    wide[:, 3:43], wide[:, 50:90] = x, residual
    assert_equal(rms_norm(wide[:, 3:43], weight, EPS, wide[:, 50:90]), expected)
    assert_equal(wide[:, 50:90].contiguous(), expected_stream)
    assert_equal(wide[:, 3:43].contiguous(), x)
    assert wide[:, 43:50].isnan().all()
    assert wide[:, 90:].isnan().all()
    assert_equal(rms_norm(x[:1].expand(3, -1), weight, EPS), rms_norm(x[:1], weight, EPS).expand(3, -1))


def test_zero_row_and_large_values(rms_norm):
    x = torch.stack([torch.zeros(64), torch.full((64,), 60000.0)]).half()
    y = rms_norm(x, torch.ones(64).half(), EPS)
    assert_equal(y, torch.stack([torch.zeros(64), torch.ones(64)]).half())


def test_no_rows(rms_norm):
    assert rms_norm(torch.empty(0, 64), torch.ones(64), EPS).shape == (0, 64)


ERRORS = {
    "weight": ((torch.zeros(2, 8), torch.zeros(9), EPS), ValueError, r"weight has shape \[9\], expected \[8\]"),
    "weight dtype": ((torch.zeros(2, 8), torch.zeros(8).half(), EPS), TypeError, "weight has dtype torch.float16"),
    "residual": ((torch.zeros(2, 8), torch.zeros(8), EPS, torch.zeros(3, 8)), ValueError, "residual has shape"),
    "transposed": ((torch.zeros(8, 2).T, torch.zeros(8), EPS), ValueError, "x has stride 2"),
    "int": ((torch.zeros(2, 8, dtype=torch.int32), torch.zeros(8), EPS), TypeError, "x has dtype torch.int32"),
}


@pytest.mark.parametrize(("arguments", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_arguments_that_do_not_fit(rms_norm, arguments, error, message):
    with pytest.raises(error, match=message):
        rms_norm(*arguments)
