"""Lowering of tl.dot: sizes, types, layouts, operands of every kind, accumulators, and bits that M has no part in."""

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal

SIZES = [
    (1, 1, 1), (1, 16, 64), (16, 16, 16), (2, 1, 8), (1, 128, 2), (4, 8, 128), (64, 2, 32), (128, 128, 128),
    (16, 64, 1), (8, 4, 4), (32, 16, 64),
]  # fmt: skip
LAYOUTS = ("NN", "NT", "TN", "TT")  # of a and b: T is stored transposed


@triton.jit
def dot_kernel(a, b, c, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
               TA: tl.constexpr, TB: tl.constexpr, ACC: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    if TA:
        x = tl.load(a + k[None, :] * M + m[:, None])
    else:
        x = tl.load(a + m[:, None] * K + k[None, :])
    if TB:
        y = tl.trans(tl.load(b + n[:, None] * K + k[None, :]))
    else:
        y = tl.load(b + k[:, None] * N + n[None, :])
    place = m[:, None] * N + n[None, :]
    if ACC:
        tl.store(out + place, tl.dot(x, y, tl.load(c + place), out_dtype=KIND))
    else:
        tl.store(out + place, tl.dot(x, y, out_dtype=KIND))


@triton.jit
def linear_kernel(x, w, out, rows, cols, depth, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                  GROWING: tl.constexpr):  # fmt: skip
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    if GROWING:
        xs = x + m[:, None] * depth + k[None, :]
        ws = w + n[None, :] * depth + k[:, None]
        for start in range(0, depth, BK):
            inside = start + k < depth
            a = tl.load(xs, mask=(m < rows)[:, None] & inside[None, :], other=0.0)
            b = tl.load(ws, mask=(n < cols)[None, :] & inside[:, None], other=0.0)
            total = tl.dot(a, b, total)
            xs += BK
            ws += BK
    else:
        for start in range(0, depth, BK):
            at = start + k
            a = tl.load(
                x + m[:, None] * depth + at[None, :], mask=(m < rows)[:, None] & (at < depth)[None, :], other=0.0
            )
            b = tl.load(
                w + n[None, :] * depth + at[:, None], mask=(n < cols)[None, :] & (at < depth)[:, None], other=0.0
            )
            total += tl.dot(a, b)
    tl.store(out + m[:, None] * cols + n[None, :], total, mask=(m < rows)[:, None] & (n < cols)[None, :])


@triton.jit
def row_times_column_kernel(x, w, out, rows, cols, depth, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, depth, BK):
        a = tl.load(x + m[:, None] * depth + (start + k)[None, :], mask=(m < rows)[:, None], other=0.0)
        b = tl.load(w + (start + k)[:, None] * cols + n[None, :], mask=(n < cols)[None, :], other=0.0)
        total = tl.dot(a, b, total)
    tl.store(out + m[:, None] * cols + n[None, :], total, mask=(m < rows)[:, None] & (n < cols)[None, :])


@triton.jit
def computed_kernel(x, y, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    a = tl.load(x + m * K + tl.arange(0, K)[None, :])
    b = tl.load(y + tl.arange(0, K)[:, None] * N + n)
    p = tl.where(a > 0, a * 2, a - 1.0)
    q = tl.exp(b * 0) * b + tl.arange(0, K)[:, None]
    tl.store(out + m * N + n, tl.dot(p, q) + 0.5)


@triton.jit
def chain_kernel(x, y, z, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, L: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    k = tl.arange(0, K)
    n = tl.arange(0, N)
    l = tl.arange(0, L)
    a = tl.load(x + m * K + k[None, :])
    b = tl.load(y + k[:, None] * N + n[None, :])
    c = tl.load(z + n[:, None] * L + l[None, :])
    first = tl.dot(a, b)
    tl.store(out + m * L + l[None, :], tl.dot(first.to(c.dtype), c) - tl.sum(first, 1)[:, None])


@triton.jit
def attention_kernel(q, k, v, out, length, scale, M: tl.constexpr, D: tl.constexpr, B: tl.constexpr):
    m = tl.arange(0, M)
    d = tl.arange(0, D)
    query = tl.load(q + m[:, None] * D + d[None, :])
    largest = tl.full((M,), float("-inf"), tl.float32)
    weight = tl.zeros((M,), tl.float32)
    total = tl.zeros((M, D), tl.float32)
    for start in range(0, length, B):
        n = start + tl.arange(0, B)
        keys = tl.load(k + n[None, :] * D + d[:, None], mask=(n < length)[None, :], other=0.0)
        score = tl.where((n < length)[None, :], tl.dot(query, keys) * scale, float("-inf"))
        new = tl.maximum(largest, tl.max(score, 1))
        p = tl.exp(score - new[:, None])
        fade = tl.exp(largest - new)
        weight = weight * fade + tl.sum(p, 1)
        values = tl.load(v + n[:, None] * D + d[None, :], mask=(n < length)[:, None], other=0.0)
        total = total * fade[:, None]
        total = tl.dot(p.to(values.dtype), values, total)
        largest = new
    tl.store(out + m[:, None] * D + d[None, :], total / weight[:, None])


@triton.jit
def two_sums_kernel(x, w, gate, out, depth, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    k = tl.arange(0, BK)
    up = tl.zeros((M, N), tl.float32)
    down = tl.full((M, N), 1.0, tl.float32)
    for start in range(0, depth, BK):
        a = tl.load(x + m * depth + start + k[None, :])
        up = tl.dot(a, tl.load(w + n * depth + start + k[:, None]), up)
        down = tl.dot(a, tl.load(gate + n * depth + start + k[:, None]), down)
    tl.store(out + m * N + n, up * down)


@triton.jit
def squares_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)[:, None]
    j = tl.arange(0, B)[None, :]
    a = tl.load(x + i * B + j)
    power = a
    for _ in range(n):
        power = tl.dot(power, a)
    tl.store(out + i * B + j, power)


@triton.jit
def accumulator_seen_kernel(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)[:, None]
    j = tl.arange(0, B)[None, :]
    a = tl.load(x + i * B + j)
    b = tl.load(y + i * B + j)
    total = tl.zeros((B, B), tl.float32)
    before = tl.full((B, B), 7.0, tl.float32)
    for _ in range(n):
        after = tl.dot(a, b, total)
        before = total
        total = after
    tl.store(out + i * B + j, total - before)


@triton.jit
def batched_kernel(x, y, out, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TB: tl.constexpr):
    b = tl.arange(0, B)[:, None, None]
    m = tl.arange(0, M)[None, :, None]
    n = tl.arange(0, N)[None, None, :]
    a = tl.load(x + b * M * K + m * K + tl.arange(0, K)[None, None, :])
    if TB:
        c = tl.load(y + b * N * K + n * K + tl.arange(0, K)[None, :, None])
    else:
        c = tl.load(y + b * K * N + tl.arange(0, K)[None, :, None] * N + n)
    tl.store(out + b * M * N + m * N + n, tl.dot(a, c))


def small_integers(*shape, dtype=torch.float32, high=4):
    """Sums of products of these are exact in every type used here."""
    return torch.randint(-high, high + 1, shape).to(dtype)


KINDS = {
    "f32": (torch.float32, torch.float32, tl.float32), "f16": (torch.float16, torch.float32, tl.float32),
    "bf16": (torch.bfloat16, torch.float32, tl.float32), "f64": (torch.float64, torch.float64, tl.float64),
    "i8": (torch.int8, torch.int32, tl.int32),
}  # fmt: skip


def run_dot(kind, layout, M, N, K, with_accumulator):
    dtype, out_dtype, out_kind = KINDS[kind]
    a, b, c = (
        small_integers(M, K, dtype=dtype),
        small_integers(K, N, dtype=dtype),
        small_integers(M, N, dtype=out_dtype),
    )
    TA, TB = layout[0] == "T", layout[1] == "T"
    out = torch.empty(M, N, dtype=out_dtype)
    given = (a.T.contiguous() if TA else a), (b.T.contiguous() if TB else b)
    dot_kernel[(1,)](*given, c, out, M=M, N=N, K=K, TA=TA, TB=TB, ACC=with_accumulator, KIND=out_kind)
    expected = (a.double() @ b.double()).to(out_dtype)
    assert torch.equal(out, expected + c if with_accumulator else expected)


@pytest.mark.parametrize("layout", ["NN", "NT"])
@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize(("M", "N", "K"), SIZES)
def test_sizes(M, N, K, kind, layout):
    run_dot(kind, layout, M, N, K, with_accumulator=(M + N) % 3 == 0)


@pytest.mark.parametrize("with_accumulator", [False, True], ids=["alone", "accumulator"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_types_and_layouts(kind, layout, with_accumulator):
    run_dot(kind, layout, 4, 16, 32, with_accumulator)


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "f64"])
@pytest.mark.parametrize("layout", ["NN", "NT"])
def test_rounding(layout, kind):
    dtype, out_dtype, out_kind = KINDS[kind]
    a, b = torch.randn(8, 128).to(dtype), torch.randn(128, 16).to(dtype)
    given = b.T.contiguous() if layout[1] == "T" else b
    out = torch.empty(8, 16, dtype=out_dtype)
    dot_kernel[(1,)](a, given, out, out, M=8, N=16, K=128, TA=False, TB=layout[1] == "T", ACC=False, KIND=out_kind)
    exact = a.double() @ b.double()
    bound = 128 * (2.0**-24 if out_dtype == torch.float32 else 2.0**-53) * (a.double().abs() @ b.double().abs())
    assert ((out.double() - exact).abs() <= bound).all()


@pytest.mark.parametrize("layout", ["NN", "NT"])
def test_not_finite_stays_in_its_row(layout):
    a, b = small_integers(8, 64, dtype=torch.bfloat16), small_integers(64, 16, dtype=torch.bfloat16)
    a[2, 5], a[4, 63], a[5, 0] = float("nan"), float("inf"), float("-inf")
    b[5, 3] = b[63, 3] = b[0, 3] = 1.0
    given = b.T.contiguous() if layout[1] == "T" else b
    out = torch.empty(8, 16)
    kind = tl.float32
    dot_kernel[(1,)](a, given, out, out, M=8, N=16, K=64, TA=False, TB=layout[1] == "T", ACC=False, KIND=kind)
    assert_equal(out, a.float() @ b.float())


@pytest.mark.parametrize("growing", [False, True], ids=["offsets", "growing pointers"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(("rows", "cols", "depth"), [(1, 40, 100), (5, 16, 64), (33, 7, 1), (3, 3, 0)])
def test_a_loop_that_only_accumulates(rows, cols, depth, dtype, growing):
    x, w = small_integers(rows, depth, dtype=dtype), small_integers(cols, depth, dtype=dtype)
    out = torch.empty(rows, cols)
    grid = (triton.cdiv(rows, 16), triton.cdiv(cols, 16))
    linear_kernel[grid](x, w, out, rows, cols, depth, BM=16, BN=16, BK=32, GROWING=growing)
    assert torch.equal(out, x.float() @ w.float().T)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_loop_over_rows_of_the_second_operand(dtype):
    x, w = small_integers(5, 96, dtype=dtype), small_integers(96, 40, dtype=dtype)
    out = torch.empty(5, 40)
    row_times_column_kernel[(2, 2)](x, w, out, 5, 40, 96, BM=4, BN=32, BK=32)
    assert_equal(out, x.float() @ w.float())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("transposed", [True, False], ids=["weights [N, K]", "weights [K, N]"])
def test_the_bits_of_a_row_do_not_depend_on_its_company(transposed, dtype):
    x, w = torch.randn(32, 256).to(dtype), torch.randn(48, 256).to(dtype)
    given = w if transposed else w.T.contiguous()

    def product(rows, block):
        out = torch.empty(rows, 48)
        grid = (triton.cdiv(rows, block), 3)
        if transposed:
            linear_kernel[grid](x, given, out, rows, 48, 256, BM=block, BN=16, BK=64, GROWING=False)
        else:
            row_times_column_kernel[grid](x, given, out, rows, 48, 256, BM=block, BN=16, BK=64)
        return out

    everything = product(32, 16)
    for rows, block in [(1, 1), (1, 16), (2, 2), (3, 4), (7, 8), (17, 16), (32, 32)]:
        assert_equal(product(rows, block), everything[:rows])


@pytest.mark.parametrize(("M", "N", "K"), [(4, 16, 8), (16, 4, 64), (1, 1, 2)])
def test_computed_operands(M, N, K):
    x, y = small_integers(M, K), small_integers(K, N)
    out = torch.empty(M, N)
    computed_kernel[(1,)](x, y, out, M=M, N=N, K=K)
    assert_equal(out, torch.where(x > 0, x * 2, x - 1) @ (y + torch.arange(K)[:, None]) + 0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_product_of_a_product(dtype):
    x, y, z = (small_integers(*shape, dtype=dtype, high=2) for shape in [(8, 4), (4, 16), (16, 32)])
    out = torch.empty(8, 32)
    chain_kernel[(1,)](x, y, z, out, M=8, N=16, K=4, L=32)
    first = x.float() @ y.float()
    assert_equal(out, first @ z.float() - first.sum(1, keepdim=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("length", [1, 40, 64])
def test_attention(length, dtype):
    q, k, v = (torch.randn(size, 32).to(dtype) for size in (8, length, length))
    out = torch.empty(8, 32)
    attention_kernel[(1,)](q, k, v, out, length, 32**-0.5, M=8, D=32, B=16)
    expected = (q.double() @ k.double().T * 32**-0.5).softmax(1) @ v.double()
    limit = 2e-6 if dtype == torch.float32 else 1e-2  # the weights are rounded to bf16
    assert (out - expected).abs().max() < limit * expected.abs().max().clamp(min=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_two_sums_in_a_loop(dtype):
    x, w, gate = (small_integers(rows, 64, dtype=dtype, high=1) for rows in (4, 16, 16))
    out = torch.empty(4, 16)
    two_sums_kernel[(1,)](x, w, gate, out, 64, M=4, N=16, BK=32)
    assert_equal(out, (x.float() @ w.float().T) * (x.float() @ gate.float().T + 1))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_carried_operand(n):
    x = small_integers(16, 16, high=1)
    out = torch.empty(16, 16)
    squares_kernel[(1,)](x, out, n, B=16)
    assert_equal(out, torch.linalg.matrix_power(x, n + 1))


@pytest.mark.parametrize("n", [1, 3])
def test_an_accumulator_that_is_still_needed(n):
    x, y, out = small_integers(16, 16), small_integers(16, 16), torch.empty(16, 16)
    accumulator_seen_kernel[(1,)](x, y, out, n, B=16)
    assert_equal(out, x @ y)


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("B", "M", "N", "K"), [(1, 4, 16, 8), (4, 8, 16, 32)])
def test_batches(B, M, N, K, dtype, transposed):
    x, y = small_integers(B, M, K, dtype=dtype), small_integers(B, K, N, dtype=dtype)
    out = torch.empty(B, M, N)
    given = y.mT.contiguous() if transposed else y
    batched_kernel[(1,)](x, given, out, B=B, M=M, N=N, K=K, TB=transposed)
    assert_equal(out, x.float() @ y.float())
