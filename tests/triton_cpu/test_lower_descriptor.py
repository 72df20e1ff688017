"""Tensor descriptors, made by the kernel or by the caller: rows are read as neighbours."""

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.compare import assert_equal
from tests.triton_cpu.ttir_of import nodes_of, ttir_of
from triton_cpu.analysis.axis import step
from triton_cpu.lower import arith, cast, pointer, shape  # noqa: F401  # their rules say what is lazy

MADE = pytest.mark.parametrize("made", [True, False], ids=["made by the kernel", "made by the caller"])


@triton.jit
def line_kernel(x, y, N, MADE: tl.constexpr, B: tl.constexpr):
    if MADE:
        x = tl.make_tensor_descriptor(x, [N], [1], [B])
        y = tl.make_tensor_descriptor(y, [N], [1], [B])
    at = tl.program_id(0) * B
    y.store([at], x.load([at]) + 1)


@triton.jit
def matrix_kernel(x, y, rows, columns, MADE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Tiles to where their mirror images are."""
    if MADE:
        x = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BM, BN])
        y = tl.make_tensor_descriptor(y, [columns, rows], [rows, 1], [BN, BM])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    y.store([n, m], x.load([m, n]).T)


@triton.jit
def cube_kernel(x, y, A, M, N, MADE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    if MADE:
        x = tl.make_tensor_descriptor(x, [A, M, N], [M * N, N, 1], [1, BM, BN])
        y = tl.make_tensor_descriptor(y, [A, M, N], [M * N, N, 1], [1, BM, BN])
    at = [tl.program_id(0), tl.program_id(1) * BM, tl.program_id(2) * BN]
    y.store(at, x.load(at) * 2)


def given(tensor: torch.Tensor, block: list[int], made: bool) -> torch.Tensor | TensorDescriptor:
    return tensor if made else TensorDescriptor.from_tensor(tensor, block)


@MADE
@pytest.mark.parametrize("size", [4, 64, 100, 516])
def test_line(size, made):
    x, y = torch.randn(size), torch.zeros(size + 64)
    line_kernel[(triton.cdiv(size, 64),)](given(x, [64], made), given(y[:size], [64], made), size, MADE=made, B=64)
    assert_equal(y, torch.cat([x + 1, torch.zeros(64)]))


@MADE
@pytest.mark.parametrize("sizes", [(4, 8), (64, 32), (100, 36)], ids=str)
def test_matrix(sizes, made):
    M, N = sizes
    x, y = torch.randn(M, N), torch.empty(N, M)
    grid = (triton.cdiv(M, 16), triton.cdiv(N, 32))
    matrix_kernel[grid](given(x, [16, 32], made), given(y, [32, 16], made), M, N, MADE=made, BM=16, BN=32)
    assert_equal(y, x.T.contiguous())


@MADE
def test_cube(made):
    x, y = torch.randn(3, 20, 36), torch.empty(3, 20, 36)
    block = [1, 16, 32]
    cube_kernel[(3, 2, 2)](given(x, block, made), given(y, block, made), 3, 20, 36, MADE=made, BM=16, BN=32)
    assert_equal(y, x * 2)


@MADE
def test_rows_are_neighbours(made):
    x, y = ("*fp32", "*fp32") if made else ("tensordesc<fp32[16, 32]>", "tensordesc<fp32[32, 16]>")
    blocks = ttir_of(matrix_kernel, x=x, y=y, rows="i32", columns="i32", MADE=made, BM=16, BN=32)
    (load,) = nodes_of(blocks, "tt.load")
    assert step({}, load.operands[0], 1) == 1


@triton.jit
def reshape_kernel(x, y, FIRST: tl.constexpr, SECOND: tl.constexpr):
    value = tl.load(x + tl.arange(0, 64)).reshape(FIRST).reshape(SECOND)
    tl.store(y + tl.arange(0, 64), (value + 1).reshape(64))


@pytest.mark.parametrize("first", [(1, 64), (64, 1), (1, 64, 1), (8, 8), (1, 1, 1, 64)], ids=str)
@pytest.mark.parametrize("second", [(64,), (1, 1, 64), (64, 1), (2, 1, 32, 1)], ids=str)
def test_dimensions_of_size_1_come_and_go(first, second):
    x, y = torch.randn(64), torch.empty(64)
    reshape_kernel[(1,)](x, y, FIRST=first, SECOND=second)
    assert_equal(y, x + 1)
