"""tl.dot in panels of 16 columns: bf16 in pairs, int8 in fours, by the instructions for them."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal


@triton.jit
def product_kernel(a, b, c, out, turns, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ALONG_K: tl.constexpr,
                   MASKED: tl.constexpr):  # fmt: skip
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    depth = turns * K
    places = m[:, None] * N + n[None, :]
    total = tl.load(c + places)
    for start in range(0, depth, K):
        if MASKED:
            left = tl.load(a + m[:, None] * depth + (start + k)[None, :], mask=(start + k < depth)[None, :], other=0)
        else:
            left = tl.load(a + m[:, None] * depth + (start + k)[None, :])
        if ALONG_K:
            right = tl.trans(tl.load(b + n[:, None] * depth + (start + k)[None, :]))
        else:
            right = tl.load(b + (start + k)[:, None] * N + n[None, :])
        total = tl.dot(left, right, total, out_dtype=c.dtype.element_ty)
    tl.store(out + places, total)


@triton.jit
def batched_kernel(a, b, out, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, m, n, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + i[:, None, None] * M * K + m[None, :, None] * K + k[None, None, :])
    right = tl.load(b + i[:, None, None] * K * N + k[None, :, None] * N + n[None, None, :])
    tl.store(out + i[:, None, None] * M * N + m[None, :, None] * N + n[None, None, :],
             tl.dot(left, right, out_dtype=out.dtype.element_ty))  # fmt: skip


BF16 = pytest.param(torch.bfloat16, marks=pytest.mark.avx512_bf16, id="bf16")
INT8 = pytest.param(torch.int8, marks=pytest.mark.avx512_vnni, id="int8")
# M, N, K, turns; up to 4 rows are multiplied without packing
SHAPES = [
    (1, 16, 4, 1), (2, 32, 8, 3), (4, 64, 16, 1), (4, 128, 64, 2), (8, 16, 4, 2), (16, 64, 128, 1), (32, 256, 32, 2),
    (64, 128, 2048, 1), (128, 32, 64, 3),
]  # fmt: skip
INSTRUCTIONS = {torch.bfloat16: "avx512bf16.dpbf16ps.512", torch.int8: "avx512.vpdpbusd.512"}


def operands(m: int, n: int, k: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(m * 10007 + n * 101 + k)
    sizes = (m, k), (k, n), (m, n)
    if dtype == torch.int8:
        a, b = (torch.randint(-128, 128, size, generator=generator).to(dtype) for size in sizes[:2])
        return a, b, torch.randint(-(2**31), 2**31, sizes[2], generator=generator).to(torch.int32)
    a, b, c = (torch.randn(size, generator=generator) for size in sizes)
    return a.to(dtype), b.to(dtype), c


def multiply(a, b, c, turns, along_k=False, masked=False, isa="avx512"):
    """The product, and the code that computed it."""
    out = torch.empty_like(c)
    (m, depth), n = a.shape, b.shape[1]
    given = b.T.contiguous() if along_k else b
    made = product_kernel[(1,)](
        a, given, c, out, turns, M=m, N=n, K=depth // turns, ALONG_K=along_k, MASKED=masked, isa=isa
    )
    return out, made.asm["llir"]


def assert_rounded(out, a, b, c):
    """A rounding for each product that is added, of no more than the sum of magnitudes so far."""
    a, b, c = a.double(), b.double(), c.double()
    bound = (a.shape[-1] + 1) * 2.0**-24 * (a.abs() @ b.abs() + c.abs())
    assert ((out - (c + a @ b)).abs() <= bound).all()


@pytest.mark.parametrize("masked", [False, True], ids=["plain", "masked"])
@pytest.mark.parametrize("dtype", [BF16, INT8])
@pytest.mark.parametrize(("m", "n", "k", "turns"), SHAPES)
def test_along_n(m, n, k, turns, dtype, masked):
    a, b, c = operands(m, n, k * turns, dtype)
    out, code = multiply(a, b, c, turns, masked=masked)
    assert INSTRUCTIONS[dtype] in code
    if dtype == torch.int8:
        assert_equal(out, (c.long() + a.long() @ b.long()).to(torch.int32))
    else:
        assert_rounded(out, a, b, c)


@pytest.mark.avx512_vnni
@pytest.mark.parametrize(("m", "n", "k", "turns"), SHAPES)
def test_int8_along_k(m, n, k, turns):
    a, b, c = operands(m, n, k * turns, torch.int8)
    out, code = multiply(a, b, c, turns, along_k=True)
    assert INSTRUCTIONS[torch.int8] in code
    assert_equal(out, (c.long() + a.long() @ b.long()).to(torch.int32))


@pytest.mark.avx2
@pytest.mark.parametrize("along_k", [False, True], ids=["along n", "along k"])
@pytest.mark.parametrize(("m", "n", "k", "turns"), SHAPES)
def test_int8_by_pairs(m, n, k, turns, along_k):
    a, b, c = operands(m, n, k * turns, torch.int8)
    out, code = multiply(a, b, c, turns, along_k, isa="avx2")
    assert "avx2.pmadd.wd" in code
    assert_equal(out, (c.long() + a.long() @ b.long()).to(torch.int32))


@pytest.mark.parametrize("isa", [
    pytest.param("avx2", marks=pytest.mark.avx2), pytest.param("avx512", marks=pytest.mark.avx512_vnni),
])  # fmt: skip
@pytest.mark.parametrize(("x", "y"), [(-128, -128), (-128, 127), (127, -128), (127, 127), (-1, 1), (0, -128)])
def test_the_extremes_of_int8(x, y, isa):
    a, b = torch.full((8, 4096), x, dtype=torch.int8), torch.full((4096, 16), y, dtype=torch.int8)
    out, _ = multiply(a, b, torch.zeros(8, 16, dtype=torch.int32), turns=1, isa=isa)
    assert_equal(out, torch.full((8, 16), 4096 * x * y, dtype=torch.int32))


@pytest.mark.parametrize("dtype", [BF16, INT8])
@pytest.mark.parametrize("rows", [1, 2, 4, 8, 16])
def test_the_bits_of_a_row_do_not_depend_on_the_others(rows, dtype):
    a, b, c = operands(32, 64, 192, dtype)
    whole, _ = multiply(a, b, c, turns=3)
    some, _ = multiply(a[:rows].contiguous(), b, c[:rows].contiguous(), turns=3)
    assert_equal(some, whole[:rows])


@pytest.mark.avx512_bf16
def test_what_is_not_finite_stays_in_its_row_and_column():
    a, b, c = operands(8, 32, 64, torch.bfloat16)
    a[3, 63], b[5, 31] = float("nan"), float("inf")
    out, _ = multiply(a, b, c, turns=1)
    finite = torch.isfinite(out)
    expected = torch.ones_like(finite)
    expected[3], expected[:, 31] = False, False
    assert_equal(finite, expected)


@pytest.mark.parametrize("dtype", [BF16, INT8])
@pytest.mark.parametrize("m", [2, 8])
def test_batches(m, dtype):
    made = [operands(m, 32, 64, dtype)[:2] for _ in range(3)] + [operands(m, 32, 64, dtype)[:2]]
    a, b = (torch.stack([pair[i] * (j + 1) for j, pair in enumerate(made)]) for i in (0, 1))
    out = torch.empty(4, m, 32, dtype=torch.int32 if dtype == torch.int8 else torch.float32)
    batched_kernel[(1,)](a, b, out, B=4, M=m, N=32, K=64, isa="avx512")
    if dtype == torch.int8:
        assert_equal(out, (a.long() @ b.long()).to(torch.int32))
    else:
        assert_rounded(out, a, b, torch.zeros_like(out))
