"""Lowering of gathers inside of tensors, histograms, and functions mapped over elements."""

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal


@triton.jit
def gather_kernel(x, index, out, M: tl.constexpr, N: tl.constexpr, P: tl.constexpr, Q: tl.constexpr,
                  AXIS: tl.constexpr):  # fmt: skip
    a = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    place = tl.arange(0, P)[:, None] * Q + tl.arange(0, Q)[None, :]
    tl.store(out + place, tl.gather(a * 2, tl.load(index + place), AXIS))


@triton.jit
def gather_line_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    tl.store(out + i, tl.gather(a, B - 1 - i, 0) + tl.gather(a, i // 2, 0))


@triton.jit
def histogram_kernel(x, out, n, B: tl.constexpr, BINS: tl.constexpr, MASKED: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    if MASKED:
        counts = tl.histogram(a, BINS, mask=i < n)
    else:
        counts = tl.histogram(a, BINS)
    tl.store(out + tl.arange(0, BINS), counts)


@triton.jit
def collatz(x, y):
    if x < 0:
        return y * 10
    steps = 0
    while x > 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    return steps


@triton.jit
def larger_first(a, b):
    if a > b:
        return a, b
    return b, a


@triton.jit
def swap_neighbours(a0, a1, b0, b1):
    return a1 + b0, a0 - b1


@triton.jit
def mapped_kernel(x, y, out, M: tl.constexpr, N: tl.constexpr):
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + place)
    b = tl.load(y + place)
    tl.store(out + place, tl.map_elementwise(collatz, a, b))
    high, low = tl.map_elementwise(larger_first, a + 1, b)
    tl.store(out + M * N + place, high * 2)
    tl.store(out + 2 * M * N + place, low)
    if N > 1:
        tl.store(out + 3 * M * N + place, tl.map_elementwise(swap_neighbours, a, b, pack=2)[0])


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.bfloat16, torch.float32, torch.int64], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("M", "N"), [(1, 1), (4, 64), (32, 2)])
def test_gather(M, N, axis, dtype):
    x = torch.randint(0, 2 if dtype == torch.bool else 50, (M, N)).to(dtype)
    P, Q = (8, N) if axis == 0 else (M, 8)
    index = torch.randint(0, (M, N)[axis], (P, Q), dtype=torch.int32)
    out = torch.empty(P, Q, dtype=dtype)
    gather_kernel[(1,)](x, index, out, M=M, N=N, P=P, Q=Q, AXIS=axis)
    assert_equal(out, (x.int() * 2).to(dtype).gather(axis, index.long()))


@pytest.mark.parametrize("size", [1, 2, 64, 128])
def test_gather_of_a_line(size):
    x, out = torch.randn(size), torch.empty(size)
    gather_line_kernel[(1,)](x, out, B=size)
    assert_equal(out, x.flip(0) + x[torch.arange(size) // 2])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64], ids=str)
def test_gather_by_indices_of_other_widths(dtype):
    x, index = torch.randn(1, 256), torch.arange(255, -1, -1).to(dtype)
    out = torch.empty(1, 256)
    gather_kernel[(1,)](x, index, out, M=1, N=256, P=1, Q=256, AXIS=1)
    assert_equal(out, x.flip(1) * 2)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("size", "bins"), [(1, 2), (64, 16), (256, 4)])
def test_histogram(size, bins, masked):
    x = torch.randint(0, bins, (size,), dtype=torch.int32)
    out = torch.empty(bins, dtype=torch.int32)
    n = size // 2 + 1 if masked else size
    histogram_kernel[(1,)](x, out, n, B=size, BINS=bins, MASKED=masked)
    assert torch.equal(out, torch.bincount(x[:n], minlength=bins).int())


def test_histogram_leaves_out_what_has_no_bin():
    x = torch.tensor([0, 3, 4, -1, 2**31 - 1, -(2**31), 3, 1], dtype=torch.int32)
    out = torch.empty(4, dtype=torch.int32)
    histogram_kernel[(1,)](x, out, 8, B=8, BINS=4, MASKED=False)
    assert out.tolist() == [1, 1, 0, 2]


def steps_of(x, y):
    if x < 0:
        return y * 10
    steps = 0
    while x > 1:
        x, steps = (x // 2 if x % 2 == 0 else 3 * x + 1), steps + 1
    return steps


@pytest.mark.parametrize(("M", "N"), [(1, 1), (2, 16)])
def test_functions_that_branch_and_loop(M, N):
    x, y = torch.randint(-5, 30, (M, N), dtype=torch.int32), torch.randint(-5, 30, (M, N), dtype=torch.int32)
    out = torch.empty(4, M, N, dtype=torch.int32)
    mapped_kernel[(1,)](x, y, out, M=M, N=N)
    pairs = zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
    assert out[0].ravel().tolist() == [steps_of(a, b) for a, b in pairs]
    assert torch.equal(out[1], 2 * torch.maximum(x + 1, y))
    assert torch.equal(out[2], torch.minimum(x + 1, y))
    if N > 1:
        assert torch.equal(out[3, :, ::2], x[:, 1::2] + y[:, ::2])
        assert torch.equal(out[3, :, 1::2], x[:, ::2] - y[:, 1::2])
