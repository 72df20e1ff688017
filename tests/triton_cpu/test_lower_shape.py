"""Lowering of operations that move elements, against PyTorch."""

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal


@triton.jit
def outer_kernel(x, y, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + j)
    tl.store(out + i[:, None] * N + j[None, :], a[:, None] * b[None, :] + i[:, None] - j[None, :])


@triton.jit
def broadcast_kernel(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    rows = tl.load(x + tl.arange(0, B))
    cube = tl.broadcast_to(rows[None, :, None], (A, B, C))
    tl.store(out + a * B * C + b * C + c, cube * 2 + a)


@triton.jit
def transpose_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    a = tl.load(x + i * N + j)
    t = tl.trans(a)
    k = tl.arange(0, N)[:, None]
    l = tl.arange(0, M)[None, :]
    tl.store(out + k * M + l, t + tl.sum(a, 1)[None, :])


@triton.jit
def permute_kernel(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    cube = tl.permute(tl.load(x + a * B * C + b * C + c), (2, 0, 1)) + 0.5
    k = tl.arange(0, C)[:, None, None]
    l = tl.arange(0, A)[None, :, None]
    m = tl.arange(0, B)[None, None, :]
    tl.store(out + k * A * B + l * B + m, cube)


@triton.jit
def reshape_kernel(x, out, M: tl.constexpr, N: tl.constexpr, P: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    a = tl.load(x + i * N + j) * 2
    b = tl.reshape(a, (P, M * N // P))
    k = tl.arange(0, P)[:, None]
    l = tl.arange(0, M * N // P)[None, :]
    tl.store(out + k * (M * N // P) + l, b)
    tl.store(out + M * N + tl.arange(0, M * N), tl.ravel(a + i))


@triton.jit
def pairs_kernel(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.load(y + i)
    k = tl.arange(0, 2 * B)
    tl.store(out + k, tl.interleave(a, b))
    joined = tl.join(a, b + 1)
    tl.store(out + 2 * B + i[:, None] * 2 + tl.arange(0, 2)[None, :], joined)
    first, second = tl.split(joined)
    tl.store(out + 4 * B + i, first - second)
    tl.store(out + 5 * B + k, tl.cat(a, b, can_reorder=True))


@triton.jit
def split_matrix_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    a = tl.load(x + i * N + j)
    low, high = tl.split(tl.permute(tl.reshape(a, (M, 2, N // 2)), (0, 2, 1)))
    k = tl.arange(0, N // 2)[None, :]
    tl.store(out + i * N // 2 + k, low * high)
    tl.store(out + M * N // 2 + i * N + j, tl.reshape(tl.permute(tl.join(-high, low), (0, 2, 1)), (M, N)))


@triton.jit
def flip_kernel(x, out, M: tl.constexpr, N: tl.constexpr, DIM: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    tl.store(out + i * N + j, tl.flip(tl.load(x + i * N + j), DIM))


@triton.jit
def where_kernel(x, y, out, n, scalar, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    a = tl.load(x + i * N + j)
    b = tl.load(y + i * N + j)
    tl.store(out + i * N + j, tl.where(i > j, a, b))
    tl.store(out + M * N + i * N + j, tl.where(n > 0, a, b))
    tl.store(out + 2 * M * N + i * N + j, tl.where(j < n, scalar, 0.0))
    tl.store(out + 3 * M * N + i * N + j, tl.where(a > 0, tl.where(i < 1, 1.0, a), tl.load(y)))


@triton.jit
def constants_kernel(out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.full((B,), 2.5, tl.float32))
    tl.store(out + B + i, tl.zeros((B,), tl.float32) + tl.full((), -1.0, tl.float32))
    tl.store(out + 2 * B + i, tl.full((B,), float("-inf"), tl.float32))
    tl.store(out + 3 * B + i, tl.full((B,), float("nan"), tl.float32))
    tl.store(out + 4 * B + i, tl.full((B,), 1e-45, tl.float32))
    tl.store(out + 5 * B + i, tl.full((B,), 0.1, tl.bfloat16).to(tl.float32))
    tl.store(out + 6 * B + i, tl.full((B,), 65504.0, tl.float16).to(tl.float32))
    tl.store(out + 7 * B + i, tl.arange(B, 2 * B).to(tl.float32))


@triton.jit
def integer_constants_kernel(out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.full((B,), 2**63 - 1, tl.int64))
    tl.store(out + B + i, tl.full((B,), -(2**63), tl.int64))
    tl.store(out + 2 * B + i, tl.full((B,), -1, tl.int8).to(tl.int64))
    tl.store(out + 3 * B + i, tl.full((B,), 255, tl.uint8).to(tl.int64))
    tl.store(out + 4 * B + i, tl.full((B,), True, tl.int1).to(tl.int64))
    tl.store(out + 5 * B + i, tl.full((B,), 2**31, tl.int64) * 2)


@triton.jit
def sort_kernel(x, out, M: tl.constexpr, N: tl.constexpr, DOWN: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    tl.store(out + i * N + j, tl.sort(tl.load(x + i * N + j), descending=DOWN))


@triton.jit
def topk_kernel(x, out, N: tl.constexpr, K: tl.constexpr):
    tl.store(out + tl.arange(0, K), tl.topk(tl.load(x + tl.arange(0, N)), K))


@triton.jit
def softmax_kernel(x, out, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    a = tl.load(x + i * n + j, mask=j < n, other=float("-inf"))
    tl.store(out + i * n + j, tl.softmax(a, dim=1), mask=j < n)


@pytest.mark.parametrize(("M", "N"), [(1, 1), (4, 1), (1, 8), (8, 64), (64, 8), (2, 128)])
def test_outer_product(M, N):
    x, y, out = torch.randn(M), torch.randn(N), torch.empty(M, N)
    outer_kernel[(1,)](x, y, out, M=M, N=N, enable_fp_fusion=False)
    assert_equal(out, x[:, None] * y + torch.arange(M)[:, None] - torch.arange(N))


@pytest.mark.parametrize("shape", [(1, 4, 1), (2, 4, 16), (8, 2, 64), (2, 64, 1)], ids=str)
def test_broadcast(shape):
    A, B, C = shape
    x, out = torch.randn(B), torch.empty(shape)
    broadcast_kernel[(1,)](x, out, A=A, B=B, C=C)
    assert_equal(out, x[None, :, None].expand(shape) * 2 + torch.arange(A)[:, None, None])


@pytest.mark.parametrize(("M", "N"), [(1, 4), (4, 1), (16, 16), (8, 64), (128, 4)])
def test_transpose(M, N):
    x = torch.randint(-9, 9, (M, N))
    out = torch.empty(N, M, dtype=torch.int64)
    transpose_kernel[(1,)](x, out, M=M, N=N)
    assert torch.equal(out, x.T + x.sum(1))


@pytest.mark.parametrize("shape", [(2, 4, 8), (1, 16, 32), (4, 1, 2)], ids=str)
def test_permute(shape):
    A, B, C = shape
    x, out = torch.randn(shape), torch.empty(C, A, B)
    permute_kernel[(1,)](x, out, A=A, B=B, C=C)
    assert_equal(out, (x.permute(2, 0, 1) + 0.5).contiguous())


@pytest.mark.parametrize(("M", "N", "P"), [(4, 8, 8), (8, 4, 1), (1, 64, 4), (16, 16, 2)])
def test_reshape(M, N, P):
    x, out = torch.randn(M, N), torch.empty(2 * M * N)
    reshape_kernel[(1,)](x, out, M=M, N=N, P=P)
    assert_equal(out, torch.cat([(2 * x).ravel(), (2 * x + torch.arange(M)[:, None]).ravel()]))


@pytest.mark.filterwarnings("ignore:tl.cat")  # Triton 3.10 drops can_reorder, the only form that is an operation
@pytest.mark.parametrize("dtype", [torch.int8, torch.bfloat16, torch.float32, torch.int64], ids=str)
@pytest.mark.parametrize("size", [1, 2, 64])
def test_join_split_interleave_cat(size, dtype):
    x, y = (torch.randint(-50, 50, (size,)).to(dtype) for _ in range(2))
    out = torch.empty(7 * size, dtype=dtype)
    pairs_kernel[(1,)](x, y, out, B=size)
    interleaved, joined = torch.stack([x, y], 1).ravel(), torch.stack([x, y + 1], 1).ravel()
    assert_equal(out[: 5 * size], torch.cat([interleaved, joined, x - (y + 1)]))
    assert_equal(out[5 * size :], torch.cat([x, y]))


@pytest.mark.parametrize(("M", "N"), [(1, 4), (4, 32), (2, 128)])
def test_rotated_halves(M, N):
    x, out = torch.randn(M, N), torch.empty(M * N // 2 + M * N)
    split_matrix_kernel[(1,)](x, out, M=M, N=N)
    low, high = x.chunk(2, 1)
    assert_equal(out, torch.cat([(low * high).ravel(), torch.cat([-high, low], 1).ravel()]))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(("M", "N"), [(1, 1), (4, 64), (32, 2)])
def test_flip(M, N, dim):
    x, out = torch.randn(M, N), torch.empty(M, N)
    flip_kernel[(1,)](x, out, M=M, N=N, DIM=dim)
    assert_equal(out, x.flip(dim))


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize(("M", "N"), [(2, 4), (8, 64)])
def test_where(M, N, n):
    x, y, out = torch.randn(M, N), torch.randn(M, N), torch.empty(4, M, N)
    where_kernel[(1,)](x, y, out, n, 1.5, M=M, N=N)
    i, j = torch.arange(M)[:, None], torch.arange(N)
    assert_equal(out[0], torch.where(i > j, x, y))
    assert_equal(out[1], x if n > 0 else y)
    assert_equal(out[2], torch.where(j < n, 1.5, 0.0).expand(M, N))
    assert_equal(out[3], torch.where(x > 0, torch.where(i < 1, 1.0, x), y[0, 0]))


def test_constants():
    out = torch.zeros(8, 16)
    constants_kernel[(1,)](out, B=16)
    tenth = torch.tensor(0.1).bfloat16().item()
    rows = torch.tensor([2.5, -1.0, float("-inf"), float("nan"), 1e-45, tenth, 65504.0])
    assert_equal(out, torch.cat([rows[:, None].expand(7, 16), torch.arange(16.0, 32.0)[None]]))


def test_integer_constants():
    out = torch.empty(6, 4, dtype=torch.int64)
    integer_constants_kernel[(1,)](out, B=4)
    assert out[:, 0].tolist() == [2**63 - 1, -(2**63), -1, 255, 1, 2**32]
    assert (out == out[:, :1]).all()


@pytest.mark.parametrize("down", [False, True], ids=["ascending", "descending"])
@pytest.mark.parametrize(("M", "N"), [(1, 1), (4, 8), (2, 64)])
def test_sort(M, N, down):
    x, out = torch.randn(M, N), torch.empty(M, N)
    sort_kernel[(1,)](x, out, M=M, N=N, DOWN=down)
    assert_equal(out, x.sort(1, descending=down).values)


@pytest.mark.parametrize(("N", "K"), [(16, 1), (64, 8)])
def test_topk(N, K):
    x, out = torch.randn(N), torch.empty(K)
    topk_kernel[(1,)](x, out, N=N, K=K)
    assert_equal(out, x.topk(K).values)


@pytest.mark.parametrize("n", [1, 5, 64])
def test_softmax(n):
    x, out = 4 * torch.randn(4, n), torch.empty(4, n)
    softmax_kernel[(1,)](x, out, n, M=4, N=64)
    assert torch.allclose(out, x.softmax(1), rtol=1e-5, atol=1e-7)
