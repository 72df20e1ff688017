"""Lowering of branches, early returns and conditional loops."""

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal


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
def reshaped_in_a_branch_kernel(out, n, turn, B: tl.constexpr):
    """Only some ways lead past the reshape, which wants its operand in memory."""
    i = tl.arange(0, B * B)
    square = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    line = i * 3 + 5
    grown = i
    for k in range(n):
        if k == turn:
            tl.store(out + square, tl.trans(tl.reshape(line, (B, B))))
            tl.store(out + B * B + square, tl.trans(tl.reshape(grown, (B, B))))
        tl.store(out + 2 * B * B + i, grown)
        grown += 7
    tl.store(out + 3 * B * B + i, line)


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


def rows_of(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("choice", [1, 0, -5, -6])
def test_if(choice):
    x, out = rows_of(64), torch.empty(64)
    if_kernel[(1,)](x, out, choice, B=64)
    assert_equal(out, x * 6 if choice > 0 else x.flip(0) if choice < -5 else -x)


@pytest.mark.parametrize("turn", [-1, 0, 2])
def test_what_one_branch_puts_into_memory_is_not_taken_from_there_elsewhere(turn):
    B, n = 8, 5
    i, out = torch.arange(B * B, dtype=torch.int32), torch.zeros(4, B * B, dtype=torch.int32)
    reshaped_in_a_branch_kernel[(1,)](out, n, turn, B=B)
    ran = turn >= 0
    expected = [(i * 3 + 5).view(B, B).T.flatten() * ran, (i + 7 * turn).view(B, B).T.flatten() * ran]
    assert torch.equal(out, torch.stack([*expected, i + 7 * (n - 1), i * 3 + 5]))


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
