"""Memory from torch.empty and its kin never looks initialised."""

import copy

import pytest
import torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str)
def test_floats_are_nan(dtype):
    like = torch.zeros(2, 3, dtype=dtype)
    for tensor in (
        torch.empty(2, 3, dtype=dtype),
        torch.empty_like(like),
        like.new_empty(4),
        torch.empty_strided((2, 2), (1, 2), dtype=dtype),
        like.new_empty_strided((2,), (3,)),
    ):
        assert tensor.isnan().all()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.int8], ids=str)
def test_integers_are_large_and_odd(dtype):
    value = torch.empty(1, dtype=dtype).item()
    assert value % 2 == 1
    assert value > torch.iinfo(dtype).max // 2


def test_booleans_are_true():
    assert torch.empty(3, dtype=torch.bool).all()


def test_pytorch_itself_is_not_disturbed():
    assert torch.empty(2, device="meta").is_meta
    with torch.device("meta"):
        assert torch.empty(2).is_meta
    assert copy.deepcopy(torch.arange(3.0)).tolist() == [0, 1, 2]
    assert torch.nn.Linear(4, 4).weight.isfinite().all()
    assert torch.empty(2, requires_grad=True).requires_grad
