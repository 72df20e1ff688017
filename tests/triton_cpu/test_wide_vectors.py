"""The code for AVX-512, run on any machine: its 512-bit vectors are taken apart where they do not exist."""

from __future__ import annotations

import pytest
import torch

from tests.compare import assert_close, assert_equal
from tests.triton_cpu.emulated_amx import AVX512, emulated_amx
from triton_spec.layers import reference
from triton_spec.layers.linear import linear

FEATURES = {"avx512": AVX512, "avx512 bf16": (*AVX512, "avx512bf16")}


@pytest.fixture(params=FEATURES)
def wide(request, tmp_path):
    with emulated_amx(tmp_path / "cache", FEATURES[request.param]) as machine:
        yield request.param
    assert machine.executed == 0


@pytest.mark.parametrize(("rows", "columns", "depth"), [(1, 64, 64), (3, 100, 576), (16, 33, 48), (33, 7, 5)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=["bf16", "f16", "f32"])
def test_linear(wide, rows, columns, depth, dtype):
    x, weight = torch.randn(rows, depth).to(dtype), torch.randn(columns, depth).to(dtype)
    name = {torch.bfloat16: "linear bf16", torch.float16: "linear f16", torch.float32: "linear f32"}[dtype]
    assert_close(linear(x, weight), reference.linear(x, weight), name)


def test_the_bits_of_a_row_do_not_depend_on_the_others(wide):
    x, weight = torch.randn(37, 96).bfloat16(), torch.randn(40, 96).bfloat16()
    whole = linear(x, weight)
    for rows in (range(1), range(5, 7), range(20, 37)):
        assert_equal(linear(x[rows], weight), whole[rows])
