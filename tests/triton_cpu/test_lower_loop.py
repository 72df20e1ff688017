"""Lowering of loops and branches: what they carry, how often they run, and how a program ends early."""

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
def if_kernel(x, out, choice, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    scale = 1.0
    if choice > 0:
        a = a * 2
        scale = 3.0
    elif choice < -5:
        a = tl.flip(a, 0)
    else:
        scale = -1.0
    tl.store(out + i, a * scale)


@triton.jit
def if_with_stores_kernel(x, out, choice, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    if choice > 0:
        tl.store(x + i, a + 1)
        if choice > 10:
            tl.store(x + i, a + 2)
    b = tl.load(x + i)
    tl.store(out + i, a + b)


@triton.jit
def if_in_loop_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    best = tl.full((B,), -1000, tl.int32)
    at = tl.zeros((B,), tl.int32)
    seen = 0
    for k in range(n):
        flag = tl.load(x + k * (B + 1))
        if flag > 0:
            row = tl.load(x + k * (B + 1) + 1 + i)
            at = tl.where(row > best, k, at)
            best = tl.maximum(best, row)
            seen += 1
    tl.store(out + i, best)
    tl.store(out + B + i, at)
    tl.store(out + 2 * B, seen)


@triton.jit
def early_return_kernel(x, out, n, B: tl.constexpr):
    program = tl.program_id(0)
    if program >= n:
        return
    i = tl.arange(0, B)
    a = tl.load(x + program * B + i)
    if tl.sum(a, 0) < 0:
        tl.store(out + program * B + i, 0 * a)
        return
    tl.store(out + program * B + i, a * 2)


@triton.jit
def tensor_across_a_return_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    root = tl.sqrt(a)
    tl.store(x + i, a * 0)
    if n == 0:
        return
    tl.store(out + i, root + a)


@triton.jit
def while_kernel(out, n):
    steps = 0
    value = n
    while value != 1:
        if value % 2 == 0:
            value = value // 2
        else:
            value = 3 * value + 1
        steps += 1
    tl.store(out, steps)
    tl.store(out + 1, value)


@triton.jit
def while_with_tensors_kernel(x, out, limit, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = i.to(tl.int64)
    turns = 0
    while tl.sum(a, 0) < limit:
        a, b = a + b, a
        turns += 1
    tl.store(out + i, a)
    tl.store(out + B + i, b)
    tl.store(out + 2 * B, turns)


@triton.jit
def linked_list_kernel(links, out):
    node = 0
    length = 0
    while node >= 0:
        tl.store(out + length, node)
        node = tl.load(links + node)
        length += 1


@triton.jit
def search_kernel(x, out, n, wanted):
    at = 0
    while (at < n) and (tl.load(x + at) != wanted):
        at += 1
    tl.store(out, at)


@triton.jit
def nested_kernel(x, out, rows, cols, B: tl.constexpr):
    i = tl.arange(0, B)
    for r in range(rows):
        total = tl.zeros((B,), tl.float32)
        for c in range(cols):
            if (r + c) % 2 == 0:
                total += tl.load(x + (r * cols + c) * B + i)
            else:
                n = c
                while n > 0:
                    total -= 1.0
                    n -= 1
        tl.store(out + r * B + i, total)


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


@pytest.mark.parametrize("choice", [1, 0, -5, -6])
def test_if(choice):
    x, out = rows_of(64), torch.empty(64)
    if_kernel[(1,)](x, out, choice, B=64)
    assert_equal(out, x * 6 if choice > 0 else x.flip(0) if choice < -5 else -x)


@pytest.mark.parametrize(("choice", "more"), [(0, 0), (1, 1), (11, 2)])
def test_a_load_before_a_branch_does_not_see_what_the_branch_stores(choice, more):
    x, out = rows_of(32), torch.empty(32)
    before = x.clone()
    if_with_stores_kernel[(1,)](x, out, choice, B=32)
    assert_equal(out, before + (before + more if more else before))


@pytest.mark.parametrize("n", [0, 1, 6])
def test_if_in_a_loop(n):
    x = torch.randint(-50, 50, (6, 33), dtype=torch.int32, generator=torch.Generator().manual_seed(6))
    x[:, 0] = torch.tensor([1, -1, 1, 0, 1, 1])
    out = torch.full((65,), 7, dtype=torch.int32)
    if_in_loop_kernel[(1,)](x, out, n, B=32)
    rows = [k for k in range(n) if x[k, 0] > 0]
    assert out[64] == len(rows)
    chosen = torch.cat([torch.full((1, 32), -1000, dtype=torch.int32), x[rows, 1:]])
    best, place = chosen.max(0)
    assert torch.equal(out[:32], best)
    assert out[32:64].tolist() == [([0, *rows])[p] for p in place.tolist()]


def test_early_return():
    x, out = rows_of(4, 16), torch.empty(4, 16)
    x[1], x[2] = x[1].abs(), -x[2].abs()
    early_return_kernel[(4,)](x, out, 3, B=16)
    assert_equal(out[:3], torch.where(x[:3].sum(1, keepdim=True) < 0, 0 * x[:3], x[:3] * 2))
    assert out[3].isnan().all()


@pytest.mark.parametrize("n", [0, 1])
def test_tensors_used_after_a_possible_return(n):
    x, out = rows_of(64).abs(), torch.empty(64)
    before = x.clone()
    tensor_across_a_return_kernel[(1,)](x, out, n, B=64)
    assert (x == 0).all()
    assert out.isnan().all() if n == 0 else torch.equal(out, before.double().sqrt().float() + before)


@pytest.mark.parametrize(("n", "steps"), [(1, 0), (2, 1), (7, 16), (27, 111)])
def test_while(n, steps):
    out = torch.empty(2, dtype=torch.int32)
    while_kernel[(1,)](out, n)
    assert out.tolist() == [steps, 1]


@pytest.mark.parametrize("limit", [0, 2000, 10**6])
def test_while_with_tensors(limit):
    x, out = torch.arange(32) + 1, torch.full((65,), 7)
    while_with_tensors_kernel[(1,)](x, out, limit, B=32)
    a, b, turns = x, torch.arange(32), 0
    while a.sum() < limit:
        a, b, turns = a + b, a, turns + 1
    assert torch.equal(out, torch.cat([a, b, torch.tensor([turns])]))


def test_while_follows_links():
    links, out = torch.tensor([3, -1, 1, 2], dtype=torch.int32), torch.full((5,), 9, dtype=torch.int32)
    linked_list_kernel[(1,)](links, out)
    assert out.tolist() == [0, 3, 2, 1, 9]


@pytest.mark.parametrize(("wanted", "place"), [(5, 0), (7, 2), (9, 4)])
def test_search(wanted, place):
    x, out = torch.tensor([5, 6, 7, 8, 0], dtype=torch.int32), torch.empty(1, dtype=torch.int32)
    search_kernel[(1,)](x, out, 4, wanted)
    assert out.item() == place


def test_loops_and_branches_in_each_other():
    x, out = rows_of(3, 4, 16), torch.empty(3, 16)
    nested_kernel[(1,)](x, out, 3, 4, B=16)
    for r in range(3):
        total = torch.zeros(16)
        for c in range(4):
            if (r + c) % 2 == 0:
                total = total + x[r, c]
            else:
                for _ in range(c):
                    total = total - 1.0
        assert_equal(out[r], total)


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
