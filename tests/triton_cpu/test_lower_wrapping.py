"""Offsets modulo a number: a chunk that does not wrap around is read as neighbours, another element by element."""

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal

STARTS = [0, 1, 5, 31, 33, 99, -3, -33, -100]
DIVISORS = [1, 3, 31, 32, 33, 64, 100, 1000, -5, -40, 0]  # x % 0 is 0, so that nothing traps
ORIGIN = 4000  # of the offsets in memory, which may be negative
MEMORY = torch.arange(8000, dtype=torch.float32)


@triton.jit(do_not_specialize=["n", "start"])
def line_kernel(x, out, n, start, UNSIGNED: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    if UNSIGNED:
        at = ((start + i).to(tl.uint32) % n.to(tl.uint32)).to(tl.int32)
    else:
        at = (start + i) % n
    tl.store(out + i, tl.load(x + at))


@triton.jit
def constant_kernel(x, out, start, N: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + (start + i) % N))


@triton.jit(do_not_specialize=["n", "start"])
def growing_kernel(x, out, n, start, M: tl.constexpr, B: tl.constexpr):
    """Pointers that grow in a loop, of which a mask leaves some out."""
    row, i = tl.arange(0, M)[:, None], tl.arange(0, B)
    at = ((start + i) % n)[None, :]
    p = x + row * 100 + at
    for turn in range(3):
        tl.store(out + (turn * M + row) * B + i[None, :], tl.load(p, mask=at != 3, other=-1.0))
        p += 50


@triton.jit(do_not_specialize=["n", "m", "start"])
def combined_kernel(x, out, n, m, start, B: tl.constexpr):
    """A remainder of a remainder, and two that could make up for each other; from memory, as they are used twice."""
    i = tl.arange(0, B)
    again = ((start + i) % n + 5) % m
    both = 2 * ((start + i) % n) - (start + i) % m
    for _ in range(2):
        tl.store(out + i, tl.load(x + again))
        tl.store(out + B + i, tl.load(x + both))
        x += 1


def remainder(x: torch.Tensor, n: int) -> torch.Tensor:
    return torch.fmod(x, n) if n else torch.zeros_like(x)


@pytest.mark.parametrize("size", [4, 32, 128])
@pytest.mark.parametrize("n", DIVISORS)
def test_line(n, size):
    for start in STARTS:
        for unsigned in (False, True) if n >= 0 and start >= 0 else (False,):
            out = torch.empty(size)
            line_kernel[(1,)](MEMORY[ORIGIN:], out, n, start, UNSIGNED=unsigned, B=size)
            assert_equal(out, MEMORY[ORIGIN + remainder(start + torch.arange(size), n)])


@pytest.mark.parametrize("n", [1, 8, 24, 32, 100])
def test_constant_divisor(n):
    for start in (0, 7, 30, 90):
        out = torch.empty(64)
        constant_kernel[(1,)](MEMORY[ORIGIN:], out, start, N=n, B=64)
        assert_equal(out, MEMORY[ORIGIN + remainder(start + torch.arange(64), n)])


@pytest.mark.parametrize("n", DIVISORS)
def test_growing_pointers(n):
    for start in STARTS:
        out = torch.empty(3, 4, 64)
        growing_kernel[(1,)](MEMORY[ORIGIN:], out, n, start, M=4, B=64)
        at = remainder(start + torch.arange(64), n)
        places = ORIGIN + 50 * torch.arange(3)[:, None, None] + 100 * torch.arange(4)[:, None] + at
        assert_equal(out, torch.where(at == 3, -1.0, MEMORY[places]))


@pytest.mark.parametrize("m", [1, 7, 31, 50])
@pytest.mark.parametrize("n", [1, 8, 33, 64, 100])
def test_combined_remainders(n, m):
    for start in STARTS:
        out = torch.empty(2, 64)
        combined_kernel[(1,)](MEMORY[ORIGIN:], out, n, m, start, B=64)
        x = start + torch.arange(64)
        again, both = remainder(remainder(x, n) + 5, m), 2 * remainder(x, n) - remainder(x, m)
        assert_equal(out, MEMORY[ORIGIN + 1 + torch.stack([again, both])])


@triton.jit
def product_kernel(a, b, c, m, n, B: tl.constexpr, K: tl.constexpr):
    """Rows and columns past the end wrap around, as in Triton's tutorial."""
    i, j, k = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B), tl.arange(0, K)
    left = tl.load(a + (i % m)[:, None] * K + k[None, :])
    right = tl.load(b + k[:, None] * n + (j % n)[None, :])
    at = c + i[:, None] * n + j[None, :]
    tl.store(at, tl.dot(left, right), mask=(i[:, None] < m) & (j[None, :] < n))


@pytest.mark.parametrize(("m", "n"), [(1, 1), (33, 70), (64, 64), (100, 50)])
def test_product_on_tiles(m, n, tile_machine):
    a, b = (torch.randint(-3, 4, size, dtype=torch.bfloat16) for size in ((m, 32), (32, n)))
    c = torch.empty(m, n)
    product_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, c, m, n, B=32, K=32)
    assert_equal(c, a.float() @ b.float())
    assert tile_machine.executed > 0
