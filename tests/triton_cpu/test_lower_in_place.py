"""Kernels that store where they load: every program reads all that a statement reads before the statement writes."""

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal

SIZES = [16, 64, 512]


@triton.jit
def shift_kernel(x, by, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i + by, tl.load(x + i))


@triton.jit
def shift_left_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.load(x + i + 1))


@triton.jit
def shift_right_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i + 1, tl.load(x + i))


@triton.jit
def flip_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.flip(tl.load(x + i), 0))


@triton.jit
def flip_indices_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.load(x + B - 1 - i))


@triton.jit
def masked_shift_kernel(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(x + i + 1, a, mask=i + 1 < n)


@triton.jit
def transpose_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)[:, None]
    j = tl.arange(0, B)[None, :]
    tl.store(x + j * B + i, tl.load(x + i * B + j))


@triton.jit
def permute_kernel(x, index, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + tl.load(index + i), tl.load(x + i))


@triton.jit
def invert_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + tl.load(x + i), i)


@triton.jit
def where_next_is_larger_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i + 1, 0, mask=tl.load(x + i) > 0)


@triton.jit
def read_write_read_kernel(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    before = tl.load(x + i)
    tl.store(x + i, before * 2)
    after = tl.load(x + i)
    tl.store(y + i, before)
    tl.store(y + B + i, after)
    tl.store(x + i, before + after)


@triton.jit
def write_between_kernel(x, y, z, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = a * 2 + 1
    tl.store(y + i, i.to(tl.float32))
    tl.store(z + i, b)


@triton.jit
def exchange_kernel(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(x + i, b)
    tl.store(y + i, a)


@triton.jit
def normalise_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    tl.store(x + i, a - tl.sum(a, 0))


@triton.jit
def cumulate_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.cumsum(tl.load(x + i), 0) + tl.load(x + B - 1 - i))


@triton.jit
def by_address_kernel(target, source, B: tl.constexpr):
    i = tl.arange(0, B)
    to = target.to(tl.pointer_type(tl.float32))
    given = source.to(tl.pointer_type(tl.float32))
    tl.store(to + i, tl.load(given + i))


@triton.jit
def moves_in_a_loop_kernel(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(n):
        a = tl.load(x + k + i)
        tl.store(x + k + 1 + i, a)


@triton.jit
def matrix_rows_kernel(x, target, source, count, width, R: tl.constexpr, B: tl.constexpr):
    r = tl.arange(0, R)
    j = tl.arange(0, B)
    inside = (r < count)[:, None] & (j < width)[None, :]
    to = tl.load(target + r, mask=r < count, other=0).to(tl.int64)
    given = tl.load(source + r, mask=r < count, other=0).to(tl.int64)
    rows = tl.load(x + given[:, None] * width + j[None, :], mask=inside)
    tl.store(x + to[:, None] * width + j[None, :], rows, mask=inside)


@triton.jit
def atomic_shift_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(x + i + 1, tl.load(x + i))


@triton.jit
def clamped_kernel(x, y, n, B: tl.constexpr):
    i = tl.minimum(tl.arange(0, B), n - 1)
    tl.store(y + i, tl.load(x + i) * 2)


@triton.jit
def offset_argument_kernel(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i) * 2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("by", [1, 3, 40, -1, -33, 0])
def test_shift_by_an_argument(size, by):
    x = torch.randn(size + 200)
    expected = x.clone()
    expected[100 + by : 100 + by + size] = x[100 : 100 + size]
    shift_kernel[(1,)](x[100:], by, B=size)
    assert_equal(x, expected)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [torch.int8, torch.bfloat16, torch.float32], ids=str)
def test_shift_by_one(dtype, size):
    x = torch.randn(size + 1).mul(100).to(dtype)
    left = torch.cat([x[1:], x[-1:]])
    right = torch.cat([x[:1], x[:-1]])
    y = x.clone()
    shift_left_kernel[(1,)](x, B=size)
    assert_equal(x, left)
    shift_right_kernel[(1,)](y, B=size)
    assert_equal(y, right)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kernel", [flip_kernel, flip_indices_kernel], ids=["tl.flip", "indices"])
def test_flip(kernel, size):
    x = torch.randn(size)
    expected = x.flip(0)
    kernel[(1,)](x, B=size)
    assert_equal(x, expected)


@pytest.mark.parametrize("n", [0, 1, 100, 512])
def test_masked_shift(n):
    x = torch.randn(512)
    expected = x.clone()
    expected[1:n] = x[: max(n - 1, 0)]
    masked_shift_kernel[(1,)](x, n, B=512)
    assert_equal(x, expected)


@pytest.mark.parametrize("size", [2, 16, 64])
def test_transpose(size):
    x = torch.randn(size, size)
    expected = x.T.contiguous()
    transpose_kernel[(1,)](x, B=size)
    assert_equal(x, expected)


@pytest.mark.parametrize("size", SIZES)
def test_permute(size):
    x, order = torch.randn(size), torch.randperm(size).int()
    expected = x.clone()
    expected[order.long()] = x
    permute_kernel[(1,)](x, order, B=size)
    assert_equal(x, expected)


@pytest.mark.parametrize("size", SIZES)
def test_indices_that_are_overwritten(size):
    x = torch.randperm(size).int()
    expected = torch.argsort(x).int()
    invert_kernel[(1,)](x, B=size)
    assert torch.equal(x, expected)


def test_a_mask_that_is_overwritten():
    x = torch.ones(257, dtype=torch.int32)
    where_next_is_larger_kernel[(1,)](x, B=256)
    assert x.tolist() == [1] + [0] * 256


@pytest.mark.parametrize("size", SIZES)
def test_load_store_load(size):
    x, y = torch.randn(size), torch.empty(2, size)
    before = x.clone()
    read_write_read_kernel[(1,)](x, y, B=size)
    assert_equal(y, torch.stack([before, before * 2]))
    assert_equal(x, before + before * 2)


def test_a_store_through_another_name_of_the_same_memory():
    x, z = torch.randn(256), torch.empty(256)
    expected = x * 2 + 1
    write_between_kernel[(1,)](x, x, z, B=256)
    assert_equal(z, expected)
    assert torch.equal(x, torch.arange(256.0))


def test_exchange():
    x, y = torch.randn(256), torch.randn(256)
    a, b = x.clone(), y.clone()
    exchange_kernel[(1,)](x, y, B=256)
    assert_equal(torch.stack([x, y]), torch.stack([b, a]))


def test_reductions_and_scans_see_all_of_what_is_overwritten():
    x = torch.arange(256)
    normalise_kernel[(1,)](x, B=256)
    assert torch.equal(x, torch.arange(256) - torch.arange(256).sum())
    x = torch.arange(256)
    cumulate_kernel[(1,)](x, B=256)
    assert torch.equal(x, torch.arange(256).cumsum(0) + torch.arange(256).flip(0))


@pytest.mark.parametrize("by", [1, 40, -1])
def test_overlapping_rows_by_address(by):
    x = torch.randn(700)
    expected = x.clone()
    expected[100 + by : 100 + by + 512] = x[100:612]
    base = x.data_ptr() + 400
    by_address_kernel[(1,)](base + 4 * by, base, B=512)
    assert_equal(x, expected)


def test_moves_in_a_loop():
    x = torch.randn(300)
    expected = x.clone()
    for k in range(5):
        expected[k + 1 : k + 257] = expected[k : k + 256].clone()
    moves_in_a_loop_kernel[(1,)](x, 5, B=256)
    assert_equal(x, expected)


@pytest.mark.parametrize("by", [1, -1, 3])
def test_rows_of_a_table_move_as_if_gathered_first(by):
    x = torch.randn(40, 48)
    source = torch.arange(10, 23, dtype=torch.int32)
    expected = x.clone()
    expected[source + by] = x[source]
    matrix_rows_kernel[(1,)](x, source + by, source, len(source), 48, R=16, B=64)
    assert_equal(x, expected)


def test_atomics_do_not_see_their_own_sums():
    x = torch.ones(257, dtype=torch.int32)
    atomic_shift_kernel[(1,)](x, B=256)
    assert x.tolist() == [1] + [2] * 256


def test_two_arguments_that_are_the_same_tensor():
    x = torch.randn(512)
    expected = x * 2
    offset_argument_kernel[(1,)](x, x, B=512)
    assert_equal(x, expected)


@pytest.mark.parametrize("n", [1, 10, 511])
def test_a_place_that_is_written_several_times(n):
    x = torch.randn(512)
    expected = torch.cat([x[:n] * 2, x[n:]])
    clamped_kernel[(1,)](x, x, n, B=512)
    assert_equal(x, expected)
