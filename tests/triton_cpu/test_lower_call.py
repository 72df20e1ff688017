"""Functions that Triton does not inline: those with an early return, called in loops, and those marked noinline."""

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal


@triton.jit
def clipped(x, limit):
    """Scalars in and out, with an early return."""
    if x > limit:
        return limit, 1
    return x, 0


@triton.jit
def scaled_row(x, row, factor, B: tl.constexpr):
    """A tensor out; the other way leaves early."""
    i = tl.arange(0, B)
    if factor == 0:
        return tl.zeros((B,), tl.float32)
    return tl.load(x + row * B + i) * factor


@triton.jit
def folded(a, b, way):
    """Tensors in and out, and a loop inside."""
    if way == 0:
        return a + b
    for _ in range(way):
        a = a * b
    return a


@triton.jit
def scalars_kernel(x, out, limits, n):
    """Two calls a turn: what one call has left in memory is not taken for another's."""
    for i in range(n):
        first, cut = clipped(tl.load(x + i), tl.load(limits))
        second, cut_again = clipped(first * 2, tl.load(limits + 1))
        tl.store(out + 3 * i, first)
        tl.store(out + 3 * i + 1, second)
        tl.store(out + 3 * i + 2, (cut + cut_again).to(tl.float32))


@triton.jit
def rows_kernel(x, out, factors, rows, B: tl.constexpr):
    total = tl.zeros((B,), tl.float32)
    for row in range(rows):
        total += scaled_row(x, row, tl.load(factors + row), B)
        tl.store(out + row * B + tl.arange(0, B), total)


@triton.jit
def tensors_kernel(x, out, ways, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    for turn in range(n):
        a = folded(a, tl.load(x + B + i), tl.load(ways + turn)) - folded(a, a, 0)
    tl.store(out + i, a)


@triton.jit(noinline=True)
def stored_apart(p, value):
    tl.store(p, value)
    return value + 1


@triton.jit(noinline=True)
def called_by_another(p, value):
    return stored_apart(p + 1, stored_apart(p, value))


@triton.jit
def noinline_kernel(out, n):
    value = 10
    for i in range(n):
        value = called_by_another(out + 2 * i, value)


@triton.jit(noinline=True)
def with_a_join(n, m):
    """The block where both ways meet takes arguments."""
    a = n
    b = m
    if n > 5:
        if m < 0:
            return 0
        a = n * 2
        b = m * 3
    return a + b


@triton.jit
def joins_kernel(out, n, m):
    y = n
    if n > 3:
        if m == 13:
            return
        y = with_a_join(n, m)
    tl.store(out, y)


@triton.jit
def grid_kernel(x, out, limits, B: tl.constexpr):
    at = tl.program_id(0) * B
    for i in range(B):
        value, _ = clipped(tl.load(x + at + i), tl.load(limits))
        tl.store(out + at + i, value)


def test_scalars():
    x, limits = torch.tensor([1.0, 5.0, 2.5]), torch.tensor([3.0, 4.0])
    out = torch.empty(3, 3)
    scalars_kernel[(1,)](x, out, limits, 3)
    assert_equal(out, torch.tensor([[1.0, 2.0, 0.0], [3.0, 4.0, 2.0], [2.5, 4.0, 1.0]]))


@pytest.mark.parametrize("size", [1, 16, 128])
def test_tensors_out(size):
    x, factors = torch.randn(4, size), torch.tensor([2.0, 0.0, 1.0, -3.0])
    out = torch.empty(4, size)
    rows_kernel[(1,)](x, out, factors, 4, B=size)
    total, expected = torch.zeros(size), []
    for row, factor in zip(x, factors, strict=True):
        total = torch.addcmul(total.double(), row.double(), factor.double()).float()  # one rounding, as of an fma
        expected.append(total)
    torch.testing.assert_close(out, torch.stack(expected), rtol=1e-6, atol=1e-6)  # fused or not


@pytest.mark.parametrize("size", [1, 16, 128])
def test_tensors_in_and_out(size):
    x = torch.randint(-2, 3, (2, size), generator=torch.Generator().manual_seed(0)).float()  # exact in any order
    ways, out = torch.tensor([0, 2, 1, 0]), torch.empty(size)
    tensors_kernel[(1,)](x, out, ways, 4, B=size)
    a, b = x
    for way in ways.tolist():
        folded_once = a + b if way == 0 else a * b**way
        a = folded_once - (a + a)
    assert_equal(out, a)


def test_functions_marked_noinline():
    out = torch.empty(6, dtype=torch.int32)
    noinline_kernel[(1,)](out, 3)
    assert_equal(out, torch.arange(10, 16, dtype=torch.int32))


@pytest.mark.parametrize(("n", "m", "expected"), [(3, 1, 3), (4, 13, -1), (4, 1, 5), (6, -1, 0), (6, 2, 18)])
def test_blocks_of_caller_and_function_that_take_arguments(n, m, expected):
    out = torch.full((1,), -1, dtype=torch.int32)
    joins_kernel[(1,)](out, n, m)
    assert out.item() == expected


def test_programs_on_threads():
    x, out = torch.randn(64 * 512), torch.empty(64 * 512)
    grid_kernel[(512,)](x, out, torch.tensor([0.5]), B=64)
    assert_equal(out, x.clamp(max=0.5))
