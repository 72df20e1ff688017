"""Lowering of atomic operations: what memory holds after them, what they return, and that threads lose nothing."""

import pytest
import torch
import triton
import triton.language as tl

PROGRAMS = 4096
THREADS = 4


@triton.jit
def read_modify_write_kernel(x, y, old, n, OP: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(y + i)
    m = i < n
    if OP == "add":
        before = tl.atomic_add(x + i, a, mask=m)
    elif OP == "max":
        before = tl.atomic_max(x + i, a, mask=m)
    elif OP == "min":
        before = tl.atomic_min(x + i, a, mask=m)
    elif OP == "and":
        before = tl.atomic_and(x + i, a, mask=m)
    elif OP == "or":
        before = tl.atomic_or(x + i, a, mask=m)
    elif OP == "xor":
        before = tl.atomic_xor(x + i, a, mask=m)
    else:
        before = tl.atomic_xchg(x + i, a, mask=m)
    tl.store(old + i, before, mask=m)


@triton.jit
def compare_and_swap_kernel(x, expected, y, old, B: tl.constexpr):
    i = tl.arange(0, B)
    before = tl.atomic_cas(x + i, tl.load(expected + i), tl.load(y + i))
    tl.store(old + i, before)


@triton.jit
def count_kernel(counters, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(counters + i, 1)
    tl.atomic_add(counters + B + i % 2, i)
    ticket = tl.atomic_add(counters + B + 2, 1)
    tl.atomic_max(counters + B + 3, ticket)
    tl.atomic_min(counters + B + 4, tl.program_id(0) - 5)


@triton.jit
def tickets_kernel(counter, taken):
    ticket = tl.atomic_add(counter, 1)
    tl.store(taken + ticket, tl.program_id(0))


@triton.jit
def float_sum_kernel(total, halves):
    tl.atomic_add(total, 0.5)
    tl.atomic_add(halves, 1.0, sem="relaxed")


@triton.jit
def sixteen_bit_sum_kernel(total, B: tl.constexpr):
    tl.atomic_add(total + tl.arange(0, B), 1.0)


@triton.jit
def lock_kernel(lock, value):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(value, tl.load(value) + 1)
    tl.atomic_xchg(lock, 0)


@triton.jit
def last_program_kernel(x, partial, counter, out, n, B: tl.constexpr):
    program = tl.program_id(0)
    i = tl.arange(0, B)
    tl.store(partial + program, tl.sum(tl.load(x + program * B + i), 0))
    done = tl.atomic_add(counter, 1)
    if done == n - 1:
        total = 0
        for k in range(n):
            total += tl.load(partial + k)
        tl.store(out, total)


@triton.jit
def scalar_mask_kernel(x, n):
    tl.atomic_add(x, 5, mask=n > 0)
    tl.atomic_add(x + 1, 7, mask=n > 2)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    yield THREADS
    torch.set_num_threads(before)


COMBINE = {
    "add": torch.add, "max": torch.maximum, "min": torch.minimum, "and": torch.bitwise_and, "or": torch.bitwise_or,
    "xor": torch.bitwise_xor, "xchg": lambda x, y: y,
}  # fmt: skip


@pytest.mark.parametrize("n", [1, 50, 64])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("op", COMBINE)
def test_integers(op, dtype, n):
    x, y = (torch.randint(-1000, 1000, (64,), dtype=dtype) for _ in range(2))
    old = torch.full((64,), -7, dtype=dtype)
    before = x.clone()
    read_modify_write_kernel[(1,)](x, y, old, n, OP=op, B=64)
    assert torch.equal(x, torch.cat([COMBINE[op](before, y)[:n], before[n:]]))
    assert torch.equal(old[:n], before[:n])
    assert (old[n:] == -7).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("op", ["add", "max", "min", "xchg"])
def test_floats(op, dtype):
    x, y = torch.randn(64, dtype=dtype), torch.randn(64, dtype=dtype)
    x[0], y[1] = -0.0, 0.0
    old = torch.empty(64, dtype=dtype)
    before = x.clone()
    read_modify_write_kernel[(1,)](x, y, old, 64, OP=op, B=64)
    assert torch.equal(x, COMBINE[op](before, y))
    assert torch.equal(old, before)


@pytest.mark.parametrize("dtype", [torch.uint32, torch.uint64], ids=str)
@pytest.mark.parametrize("op", ["max", "min"])
def test_unsigned(op, dtype):
    bits = 8 * dtype.itemsize
    a, b = [2**bits - 1, 3, 2 ** (bits - 1), 0], [1, 2 ** (bits - 1), 5, 0]
    x, y, old = (torch.tensor(values, dtype=dtype) for values in (a, b, a))
    read_modify_write_kernel[(1,)](x, y, old, 4, OP=op, B=4)
    assert x.tolist() == [max(p) if op == "max" else min(p) for p in zip(a, b, strict=True)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_sixteen_bit_sums(dtype):
    x, y, old = torch.randn(64).to(dtype), torch.randn(64).to(dtype), torch.empty(64, dtype=dtype)
    before = x.clone()
    read_modify_write_kernel[(1,)](x, y, old, 64, OP="add", B=64)
    assert torch.equal(x, before + y)
    assert torch.equal(old, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_threads_lose_no_sixteen_bit_float(dtype, threads):
    total = torch.zeros(16, dtype=dtype)
    sixteen_bit_sum_kernel[(PROGRAMS,)](total, B=16)
    assert (total == {torch.float16: 2048, torch.bfloat16: 256}[dtype]).all()  # where adding 1 changes nothing any more


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64, torch.bfloat16, torch.float32], ids=str)
def test_compare_and_swap(dtype):
    x, expected = torch.arange(64).to(dtype), torch.arange(64).to(dtype)
    expected[::3] = -1
    y, old = torch.full((64,), 99, dtype=dtype), torch.empty(64, dtype=dtype)
    compare_and_swap_kernel[(1,)](x, expected, y, old, B=64)
    assert torch.equal(old, torch.arange(64).to(dtype))
    assert torch.equal(x, torch.where(old == expected, y, old))


def test_threads_lose_no_count(threads):
    counters = torch.zeros(64 + 5, dtype=torch.int32)
    count_kernel[(PROGRAMS,)](counters, B=64)
    assert (counters[:64] == PROGRAMS).all()
    assert counters[64:].tolist() == [PROGRAMS * 31 * 32, PROGRAMS * 32 * 32, PROGRAMS, PROGRAMS - 1, -5]


def test_every_ticket_is_given_once(threads):
    counter, taken = torch.zeros(1, dtype=torch.int32), torch.full((1 << 16,), -1, dtype=torch.int32)
    tickets_kernel[(1 << 16,)](counter, taken)
    assert torch.equal(taken.sort().values, torch.arange(1 << 16, dtype=torch.int32))


def test_threads_lose_no_float(threads):
    total, halves = torch.zeros(1), torch.zeros(1, dtype=torch.float64)
    float_sum_kernel[(1 << 16,)](total, halves)
    assert (total.item(), halves.item()) == (1 << 15, 1 << 16)


def test_a_lock_protects(threads):
    lock, value = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    lock_kernel[(1 << 15,)](lock, value)
    assert (lock.item(), value.item()) == (0, 1 << 15)


def test_the_last_program_sees_what_the_others_stored(threads):
    x = torch.randint(-99, 99, (PROGRAMS, 64), dtype=torch.int32)
    partial, counter = torch.empty(PROGRAMS, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    out = torch.empty(1, dtype=torch.int32)
    last_program_kernel[(PROGRAMS,)](x, partial, counter, out, PROGRAMS, B=64)
    assert out.item() == x.sum()


@pytest.mark.parametrize("n", [0, 2, 3])
def test_masked_scalars(n):
    x = torch.zeros(2, dtype=torch.int32)
    scalar_mask_kernel[(1,)](x, n)
    assert x.tolist() == [5 * (n > 0), 7 * (n > 2)]
