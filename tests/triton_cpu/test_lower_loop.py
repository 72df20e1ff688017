"""Lowering of counted loops: how often they run, and what they carry."""

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal


@triton.jit
def range_kernel(out, count, low, high, step):
    turns = 0
    for i in range(low, high, step):
        tl.store(out + turns, i)
        turns += 1
    tl.store(count, turns)


@triton.jit
def backwards_kernel(out, count, low, high):
    turns = 0
    for i in range(high, low, -3):
        tl.store(out + turns, i)
        turns += 1
    tl.store(count, turns)


@triton.jit
def carried_tensor_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    largest = tl.full((B,), float("-inf"), tl.float32)
    for k in range(n):
        row = tl.load(x + k * B + i)
        total += row
        largest = tl.maximum(largest, row)
    tl.store(out + i, total)
    tl.store(out + B + i, largest)


@triton.jit
def fibonacci_kernel(out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = i
    b = i + 1
    p = 0
    q = 1
    for _ in range(n):
        a, b = b, a + b
        p, q = q, p + q
    tl.store(out + i, a)
    tl.store(out + B + i, b)
    tl.store(out + 2 * B + i, p)
    tl.store(out + 3 * B + i, q)


@triton.jit
def swap_kernel(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.load(y + i)
    for _ in range(n):
        a, b = b, a
    tl.store(x + i, a)
    tl.store(y + i, b)


@triton.jit
def rotate_kernel(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.load(x + B + i)
    c = tl.load(x + 2 * B + i)
    for _ in range(n):
        a, b, c = b * 2, c + a, a - b
    tl.store(x + i, a)
    tl.store(x + B + i, b)
    tl.store(x + 2 * B + i, c)


@triton.jit
def transposed_each_turn_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)[:, None]
    j = tl.arange(0, B)[None, :]
    a = tl.load(x + i * B + j)
    for k in range(n):
        a = tl.trans(a) + k
    tl.store(out + i * B + j, a)


@triton.jit
def smeared_each_turn_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    for _ in range(n):
        a = a + tl.sum(a, 0)
    tl.store(out + i, a)


@triton.jit
def growing_pointers_kernel(x, out, n, step, B: tl.constexpr):
    i = tl.arange(0, B)
    pointers = x + i
    total = tl.zeros((B,), tl.float32)
    for _ in range(n):
        total += tl.load(pointers)
        pointers += step
    tl.store(out + i, total)
    tl.store(out + B + i, tl.load(pointers))


@triton.jit
def growing_rows_kernel(x, out, rows, cols, B: tl.constexpr):
    r = tl.arange(0, 4)
    c = tl.arange(0, B)
    pointers = x + r[:, None] * cols + c[None, :]
    left = c
    total = tl.zeros((4, B), tl.float32)
    for _ in range(0, cols, B):
        total += tl.load(pointers, mask=(left < cols)[None, :] & (r < rows)[:, None], other=0.0)
        pointers += B
        left += B
    tl.store(out + r[:, None] * B + c[None, :], total)


@triton.jit
def doubling_offsets_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    pointers = x + i
    step = 1
    for _ in range(n):
        pointers += step
        step *= 2
    tl.store(out + i, tl.load(pointers))


@triton.jit
def chased_pointers_kernel(links, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    at = i
    for _ in range(n):
        at = tl.load(links + at)
    tl.store(out + i, at)


@triton.jit
def carried_unchanged_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = a
    for k in range(n):
        tl.store(x + i, a * 0 + k)
        b = b + a
    tl.store(out + i, a)
    tl.store(out + B + i, b)


@triton.jit
def carried_booleans_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    alive = i >= 0
    any_alive = True
    turns = 0
    for k in range(n):
        alive = alive & (tl.load(x + k * B + i) > 0)
        any_alive = any_alive & (tl.sum(alive.to(tl.int32), 0) > 0)
        turns += any_alive.to(tl.int32)
    tl.store(out + i, alive)
    tl.store(out + B + i, turns)


@triton.jit
def static_range_kernel(out, N: tl.constexpr):
    total = 0
    for k in tl.static_range(N):
        total += k * k
    for k in tl.range(0, N, num_stages=2):
        total += k
    tl.store(out, total)


def rows_of(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=["i32", "i64"])
@pytest.mark.parametrize(
    ("low", "high", "step"),
    [(0, 5, 1), (0, 0, 1), (5, 3, 1), (-7, -2, 2), (3, 4, 10), (-1, 2, 1), (0, 9, 3), (0, 10, 3)],
)
def test_range(dtype, low, high, step):
    far = 2**33 if dtype == torch.int64 else 0  # beyond 32 bits
    out, count = torch.full((16,), -1, dtype=dtype), torch.empty(1, dtype=torch.int32)
    range_kernel[(1,)](out, count, far + low, far + high, step)
    expected = list(range(far + low, far + high, step))
    assert count.item() == len(expected)
    assert out[: len(expected)].tolist() == expected


@pytest.mark.parametrize("high", [-1, 0, 1, 3, 7])
def test_range_backwards(high):
    out, count = torch.full((16,), -1, dtype=torch.int32), torch.empty(1, dtype=torch.int32)
    backwards_kernel[(1,)](out, count, 0, high)
    expected = list(range(high, 0, -3))
    assert count.item() == len(expected)
    assert out[: len(expected)].tolist() == expected


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("size", [1, 2, 64, 128])
def test_carried_tensors(n, size):
    x, out = rows_of(max(n, 1), size), torch.empty(2, size)
    carried_tensor_kernel[(1,)](x, out, n, B=size)
    total, largest = torch.zeros(size), torch.full((size,), float("-inf"))
    for row in x[:n]:
        total, largest = total + row, largest.maximum(row)
    assert_equal(out, torch.stack([total, largest]))


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_values_that_depend_on_each_other(n):
    out = torch.empty(4, 32, dtype=torch.int32)
    fibonacci_kernel[(1,)](out, n, B=32)
    a, b, p, q = torch.arange(32), torch.arange(32) + 1, 0, 1
    for _ in range(n):
        a, b, p, q = b, a + b, q, p + q
    expected = torch.stack([a, b, torch.full((32,), p), torch.full((32,), q)])
    assert torch.equal(out, expected.int())


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_swapped_tensors(n):
    x, y = rows_of(32), rows_of(64)[32:]
    a, b = x.clone(), y.clone()
    swap_kernel[(1,)](x, y, n, B=32)
    expected = (a, b) if n % 2 == 0 else (b, a)
    assert_equal(torch.stack([x, y]), torch.stack(expected))


def test_three_tensors_in_a_ring():
    x = rows_of(3, 32)
    a, b, c = x.clone()
    rotate_kernel[(1,)](x, 5, B=32)
    for _ in range(5):
        a, b, c = b * 2, c + a, a - b
    assert_equal(x, torch.stack([a, b, c]))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_tensor_transposed_in_each_turn(n):
    x, out = rows_of(16, 16), torch.empty(16, 16)
    transposed_each_turn_kernel[(1,)](x, out, n, B=16)
    for k in range(n):
        x = x.T + k
    assert_equal(out, x.contiguous())


def test_a_tensor_that_needs_all_of_itself_in_each_turn():
    x, out = torch.arange(128), torch.empty(128, dtype=torch.int64)
    smeared_each_turn_kernel[(1,)](x, out, 3, B=128)
    for _ in range(3):
        x = x + x.sum()
    assert torch.equal(out, x)


@pytest.mark.parametrize(("n", "step"), [(0, 16), (1, 16), (4, 16), (3, 5), (3, -16), (3, 0)])
def test_growing_pointers(n, step):
    x, out = rows_of(256), torch.empty(2, 16)
    start = 64
    growing_pointers_kernel[(1,)](x[start:], out, n, step, B=16)
    at = [start + k * step for k in range(n + 1)]
    total = torch.zeros(16)
    for place in at[:-1]:
        total = total + x[place : place + 16]
    assert_equal(out, torch.stack([total, x[at[-1] : at[-1] + 16]]))


@pytest.mark.parametrize(("rows", "cols"), [(4, 64), (3, 40), (1, 5), (4, 0)])
def test_growing_pointers_and_masks_of_rows(rows, cols):
    x, out = rows_of(rows, cols), torch.empty(4, 32)
    growing_rows_kernel[(1,)](x, out, rows, cols, B=32)
    expected = torch.zeros(4, 32)
    for start in range(0, cols, 32):
        part = x[:, start : start + 32]
        expected[:rows, : part.shape[1]] += part
    assert_equal(out, expected)


def test_pointers_that_grow_faster_and_faster():
    x, out = rows_of(64), torch.empty(8)
    doubling_offsets_kernel[(1,)](x, out, 4, B=8)
    assert_equal(out, x[15:23])


def test_indices_loaded_in_each_turn():
    links = torch.randperm(64, generator=torch.Generator().manual_seed(5)).int()
    out = torch.empty(64, dtype=torch.int32)
    chased_pointers_kernel[(1,)](links, out, 3, B=64)
    assert torch.equal(out, links[links[links.long()].long()])


def test_a_load_before_a_loop_does_not_see_what_the_loop_stores():
    x, out = rows_of(32), torch.empty(2, 32)
    before = x.clone()
    carried_unchanged_kernel[(1,)](x, out, 3, B=32)
    assert_equal(out, torch.stack([before, before + before + before + before]))


def test_carried_booleans():
    x = torch.ones(4, 32, dtype=torch.int32)
    x[1, 3:] = 0
    x[3] = -1
    out = torch.full((2, 32), 7, dtype=torch.int32)
    carried_booleans_kernel[(1,)](x, out, 4, B=32)
    assert (out[0] == 0).all()
    assert (out[1] == 3).all()
    carried_booleans_kernel[(1,)](x, out, 3, B=32)
    assert out[0].tolist() == [1] * 3 + [0] * 29


@pytest.mark.parametrize("n", [0, 1, 6])
def test_static_range(n):
    out = torch.empty(1, dtype=torch.int32)
    static_range_kernel[(1,)](out, N=n)
    assert out.item() == sum(k * k + k for k in range(n))
