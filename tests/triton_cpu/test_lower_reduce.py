"""Lowering of reductions, against PyTorch: any axis, number of dimensions and type, ties and NaN, own functions."""

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal

NAN = float("nan")
SHAPES = [(1,), (2,), (256,), (4, 8), (1, 64), (64, 1), (16, 128), (2, 4, 8), (8, 2, 64)]
CASES = [(shape, axis) for shape in SHAPES for axis in range(len(shape))]


@triton.jit
def reduce_kernel(x, out, OP: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, AXIS: tl.constexpr):
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    cube = tl.load(x + a * B * C + b * C + c)
    if OP == "sum":
        result = tl.sum(cube, AXIS)
    elif OP == "max":
        result = tl.max(cube, AXIS)
    elif OP == "min":
        result = tl.min(cube, AXIS)
    elif OP == "xor":
        result = tl.xor_sum(cube, AXIS)
    elif OP == "or":
        result = tl.reduce_or(cube, AXIS)
    elif OP == "argmax":
        result = tl.argmax(cube, AXIS)
    else:
        result = tl.argmin(cube, AXIS)
    tl.store(out + tl.arange(0, A * B * C // cube.shape[AXIS]), tl.ravel(result))


@triton.jit
def line_kernel(x, total, largest, smallest, B: tl.constexpr):
    a = tl.load(x + tl.arange(0, B))
    tl.store(total, tl.sum(a, 0))
    tl.store(largest, tl.max(a, 0))
    tl.store(smallest, tl.min(a, 0))


@triton.jit
def matrix_kernel(x, rows, cols, everything, kept, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    a = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(rows + i, tl.sum(a, 1))
    tl.store(cols + j, tl.sum(a, 0))
    tl.store(everything, tl.sum(a))
    tl.store(kept + i[:, None] * N + j[None, :], a - tl.max(a, 1, keep_dims=True) + tl.min(a, 0, keep_dims=True))


@triton.jit
def arguments_kernel(x, out, B: tl.constexpr):
    a = tl.load(x + tl.arange(0, B))
    tl.store(out + 0, tl.argmax(a, 0))
    tl.store(out + 1, tl.argmin(a, 0))
    tl.store(out + 2, tl.argmax(a, 0, tie_break_left=False))
    tl.store(out + 3, tl.argmin(a, 0, tie_break_left=False))


@triton.jit
def arguments_of_rows_kernel(x, largest, place, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    a = tl.load(x + i[:, None] * n + j[None, :], mask=(j < n)[None, :], other=float("-inf"))
    value, index = tl.max(a, 1, return_indices=True)
    tl.store(largest + i, value)
    tl.store(place + i, index)


@triton.jit
def times(a, b):
    return a * b


@triton.jit
def later(a, b):
    return b


@triton.jit
def welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    return mean_a + delta * (n_b / n), m2_a + m2_b + delta * delta * (n_a * n_b / n), n


@triton.jit
def largest_pair(key_a, value_a, key_b, value_b):
    keep = (key_a > key_b) | ((key_a == key_b) & (value_a <= value_b))
    return tl.where(keep, key_a, key_b), tl.where(keep, value_a, value_b)


@triton.jit
def own_functions_kernel(x, y, product, last, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    a = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(product + i, tl.reduce(a, 1, times))
    tl.store(last + i, tl.reduce(a, 1, later))
    b = tl.load(y + i[:, None] * N + j[None, :])
    key, value = tl.reduce((a, b), 0, largest_pair)
    tl.store(x + j, key)
    tl.store(y + j, value)


@triton.jit
def variance_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    a = tl.load(x + i[:, None] * N + j[None, :])
    mean, m2, n = tl.reduce((a, tl.zeros_like(a), tl.full((M, N), 1.0, tl.float32)), 1, welford)
    tl.store(out + i, mean)
    tl.store(out + M + i, m2 / n)


@triton.jit
def rows_kernel(x, out, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    a = tl.load(x + i[:, None] * N + j[None, :], mask=(i < n)[:, None], other=0.0)
    tl.store(out + i, tl.sum(a * a, 1), mask=i < n)


@triton.jit
def histogram_by_sums_kernel(x, out, B: tl.constexpr, BINS: tl.constexpr):
    a = tl.load(x + tl.arange(0, B))
    bins = tl.arange(0, BINS)
    tl.store(out + bins, tl.sum((a[None, :] == bins[:, None]).to(tl.int32), 1))


def reduced(x, op, axis):
    if op == "xor":
        rows = x.movedim(axis, 0)
        total = rows[0].clone()
        for row in rows[1:]:
            total ^= row
        return total
    if op == "or":
        rows = x.movedim(axis, 0)
        total = rows[0].clone()
        for row in rows[1:]:
            total |= row
        return total
    if op in ("argmax", "argmin"):
        return getattr(x, op)(axis).int()
    if op == "sum":
        return x.sum(axis, dtype=x.dtype)
    return getattr(x, "amax" if op == "max" else "amin")(axis)


def cube(shape):
    return (1,) * (3 - len(shape)) + tuple(shape)


@pytest.mark.parametrize("op", ["sum", "max", "argmin"])
@pytest.mark.parametrize(("shape", "axis"), CASES, ids=str)
def test_every_axis(shape, axis, op):
    count = torch.Size(shape).numel()
    x = torch.randperm(count, generator=torch.Generator().manual_seed(1)).int().view(shape) - count // 2
    expected = reduced(x, op, axis)
    out = torch.empty(expected.shape, dtype=torch.int32)
    A, B, C = cube(shape)
    reduce_kernel[(1,)](x, out, OP=op, A=A, B=B, C=C, AXIS=axis + 3 - len(shape))
    assert torch.equal(out, expected)


@pytest.mark.parametrize("axis", [0, 2])
@pytest.mark.parametrize("op", ["min", "xor", "or", "argmax"])
def test_other_functions(op, axis):
    x = torch.randint(-1000, 1000, (4, 2, 64), dtype=torch.int32)
    x[1] = x[0]  # ties
    expected = reduced(x, op, axis)
    out = torch.empty(expected.shape, dtype=torch.int32)
    reduce_kernel[(1,)](x, out, OP=op, A=4, B=2, C=64, AXIS=axis)
    assert torch.equal(out, expected)


@pytest.mark.parametrize(
    ("dtype", "sum_dtype"),
    [
        (torch.int8, torch.int32), (torch.uint8, torch.int32), (torch.int16, torch.int32), (torch.int64, torch.int64),
        (torch.float16, torch.float16), (torch.bfloat16, torch.bfloat16), (torch.float32, torch.float32),
        (torch.float64, torch.float64), (torch.bool, torch.int32),
    ],
    ids=str,
)  # fmt: skip
def test_types(dtype, sum_dtype):
    x = torch.randint(-4, 5, (256,))
    x = x > 0 if dtype == torch.bool else (x % 5 if dtype == torch.uint8 else x).to(dtype)
    total, largest, smallest = (torch.zeros(1, dtype=kind) for kind in (sum_dtype, dtype, dtype))
    line_kernel[(1,)](x, total, largest, smallest, B=256)
    assert total.item() == x.double().sum().item()  # exact in every type
    assert largest.item() == x.double().max().item()
    assert smallest.item() == x.double().min().item()


@pytest.mark.parametrize(("M", "N"), [(1, 1), (4, 16), (2, 256), (64, 4)])
def test_rows_columns_and_everything(M, N):
    x = torch.randint(-99, 99, (M, N)).float()
    rows, cols, everything, kept = torch.empty(M), torch.empty(N), torch.empty(1), torch.empty(M, N)
    matrix_kernel[(1,)](x, rows, cols, everything, kept, M=M, N=N)
    assert_equal(rows, x.sum(1))
    assert_equal(cols, x.sum(0))
    assert everything.item() == x.sum()
    assert_equal(kept, x - x.amax(1, keepdim=True) + x.amin(0, keepdim=True))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 9, 9, 1, 1, 5, 9, 4], [1, 3, 6, 4]),
        ([7] * 8, [0, 0, 7, 7]),
        ([NAN, 2, 5, 5], [2, 1, 3, 1]),  # a NaN loses to what comes after it: Triton's own function says so
        ([1, float("-inf"), float("inf"), 2, 2, 2, 2, 2], [2, 1, 2, 1]),
    ],
    ids=["ties", "all equal", "NaN first", "infinities"],
)
def test_ties_and_nan_of_arguments(values, expected):
    x, out = torch.tensor(values, dtype=torch.float32), torch.full((4,), -1, dtype=torch.int32)
    arguments_kernel[(1,)](x, out, B=len(values))
    assert out.tolist()[:2] == expected[:2]
    if not x.isnan().any():
        assert out.tolist()[2] in [i for i, v in enumerate(values) if v == max(values)]
        assert out.tolist()[3] in [i for i, v in enumerate(values) if v == min(values)]


@pytest.mark.parametrize("size", [8, 32, 64, 512])
def test_the_first_of_equal_values_wins_across_chunks(size):
    for places in ([size - 1], [1, size - 1], [size // 2, size // 2 + 1], list(range(size))):
        x, out = torch.zeros(size), torch.empty(4, dtype=torch.int32)
        x[places] = 1.0
        arguments_kernel[(1,)](x, out, B=size)
        assert out[0].item() == places[0]


def test_nan_in_maximum_and_minimum():
    x = torch.tensor([NAN, 1.0, NAN, -2.0] * 64)
    total, largest, smallest = torch.empty(1), torch.empty(1), torch.empty(1)
    line_kernel[(1,)](x, total, largest, smallest, B=256)
    assert total.isnan()
    assert (largest.item(), smallest.item()) == (1.0, -2.0)


@pytest.mark.parametrize("n", [1, 5, 64, 100])
def test_maximum_with_its_place(n):
    x = torch.randn(4, n)
    largest, place = torch.empty(4), torch.empty(4, dtype=torch.int32)
    arguments_of_rows_kernel[(1,)](x, largest, place, n, M=4, N=128)
    assert_equal(largest, x.max(1).values)
    assert torch.equal(place, x.max(1).indices.int())


@pytest.mark.parametrize(("M", "N"), [(1, 1), (4, 8), (8, 128)])
def test_own_functions(M, N):
    x, y = torch.randint(-2, 3, (M, N)), torch.randint(0, 1000, (M, N))
    a, b = x.clone(), y.clone()
    product, last = torch.empty(M, dtype=torch.int64), torch.empty(M, dtype=torch.int64)
    own_functions_kernel[(1,)](x, y, product, last, M=M, N=N)
    assert torch.equal(product, a.prod(1))
    assert torch.equal(last, a[:, -1])
    best = a.amax(0)
    assert torch.equal(x[0], best)
    assert torch.equal(y[0], torch.where(a == best, b, 1000).amin(0))


@pytest.mark.parametrize(("M", "N"), [(1, 2), (4, 128)])
def test_three_values_at_once(M, N):
    x, out = torch.randn(M, N), torch.empty(2, M)
    variance_kernel[(1,)](x, out, M=M, N=N)
    assert torch.allclose(out[0], x.mean(1), atol=1e-6)
    assert torch.allclose(out[1], x.var(1, correction=0), rtol=1e-5)


@pytest.mark.parametrize("size", [64, 256])
def test_the_bits_of_a_row_do_not_depend_on_its_company(size):
    x = torch.randn(16, size)
    alone, together, in_a_part = torch.empty(1), torch.empty(16), torch.empty(4)
    rows_kernel[(1,)](x, together, 16, M=16, N=size)
    rows_kernel[(1,)](x, in_a_part, 3, M=4, N=size)
    assert_equal(in_a_part[:3], together[:3])
    for row in range(16):
        rows_kernel[(1,)](x[row], alone, 1, M=1, N=size)
        assert alone.item() == together[row].item()


def test_histogram_by_comparison():
    x, out = torch.randint(0, 8, (256,), dtype=torch.int32), torch.empty(8, dtype=torch.int32)
    histogram_by_sums_kernel[(1,)](x, out, B=256, BINS=8)
    assert torch.equal(out, torch.bincount(x, minlength=8).int())
