"""Lowering of addresses: strides, gathers, matrices, computed and loaded pointers, descriptors."""

from dataclasses import dataclass

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal
from tests.triton_cpu.guarded import Canary, Walled, survives

DTYPES = {
    "i1": torch.bool, "i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
}  # fmt: skip


@triton.jit
def masked_kernel(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=0), mask=i < n)


@triton.jit
def strided_kernel(x, y, given, taken, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i * taken, tl.load(x + i * given, mask=i < n), mask=i < n)


@triton.jit
def constant_stride_kernel(x, y, S: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + S * i))
    tl.store(y + B + (B - 1 - i), tl.load(x + i))


@triton.jit
def gather_kernel(x, index, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + tl.load(index + i)))


@triton.jit
def scatter_kernel(x, index, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + tl.load(index + i), tl.load(x + i), mask=i < n)


@triton.jit
def matrix_kernel(x, y, rows, cols, x0, x1, y0, y1, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    inside = (i < rows) & (j < cols)
    a = tl.load(x + i * x0 + j * x1, mask=inside, other=0)
    tl.store(y + i * y0 + j * y1, a, mask=inside)


@triton.jit
def rows_by_index_kernel(x, rows, y, cols, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    row = tl.load(rows + i).to(tl.int64)
    inside = (row >= 0)[:, None] & (j < cols)[None, :]
    tl.store(y + i[:, None] * N + j[None, :], tl.load(x + row[:, None] * cols + j[None, :], mask=inside, other=-1))


@triton.jit
def cube_kernel(x, y, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    tl.store(y + c * A * B + a * B + b, tl.load(x + a * B * C + b * C + c))


@triton.jit
def address_kernel(addresses, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(n):
        row = tl.load(addresses + k).to(tl.pointer_type(tl.float32))
        tl.store(y + k * B + i, tl.load(row + i))


@triton.jit
def addresses_kernel(addresses, y, B: tl.constexpr):
    i = tl.arange(0, B)
    places = tl.load(addresses + i).to(tl.pointer_type(tl.float32))
    a = tl.load(places)
    tl.store(places, a + 1)
    tl.store(y + i, a)


@triton.jit
def pointer_choice_kernel(x, y, z, choose, B: tl.constexpr):
    i = tl.arange(0, B)
    source = x
    if choose > 0:
        source = y
    tl.store(z + i, tl.load(source + i))
    tl.store(z + B + i, tl.load(tl.where(i % 2 == 0, x + i, y + i)))


@triton.jit
def wraps_kernel(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i % n))


@triton.jit
def byte_offsets_kernel(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    small = i.to(tl.int8)
    tl.store(y + i, tl.load(x + small))
    tl.store(y + B + i, tl.load(x + (i.to(tl.int16) * 2).to(tl.uint8)))


@triton.jit
def far_kernel(x, row, cols, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + row.to(tl.int64) * cols + i))


@triton.jit
def descriptor_kernel(x, y, M, N, B: tl.constexpr):
    given = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[B, B])
    taken = tl.make_tensor_descriptor(y, shape=[M, N], strides=[N, 1], block_shape=[B, B])
    m = tl.program_id(0) * B
    n = tl.program_id(1) * B
    taken.store([m, n], given.load([m, n]) * 2)


def numbers(size, dtype, seed=7):
    x = torch.randint(-100, 100, (size,), generator=torch.Generator().manual_seed(seed))
    return x > 0 if dtype == torch.bool else x.to(dtype)


@dataclass
class Table:
    """What passes for a tensor at an address."""

    address: int
    dtype: torch.dtype

    def data_ptr(self):
        return self.address


@pytest.mark.parametrize("name", ["i1", "i8", "f16", "bf16", "f32", "f64"])
def test_behind_the_last_element_is_forbidden_memory(name):
    dtype = DTYPES[name]

    def run(wrap):
        x, y = (wrap(numbers(45, dtype, seed)) for seed in (1, 2))
        masked_kernel[(1,)](x, y, 45, B=64)
        strided_kernel[(1,)](x, y, 2, 1, 23, B=64)
        matrix_kernel[(1,)](x, y, 5, 9, 9, 1, 1, 5, M=8, N=16)
        return bool(torch.equal(x[:45].view(5, 9).T.reshape(-1), y))

    assert run(lambda tensor: tensor)  # compiles
    assert survives(lambda: run(lambda tensor: Walled(tensor).tensor))


def test_the_wall_is_deadly():
    x, y = numbers(45, torch.float32), torch.empty(64)
    masked_kernel[(1,)](torch.cat([x, x]), y, 64, B=64)
    assert not survives(lambda: masked_kernel[(1,)](Walled(x).tensor, y, 64, B=64) is not None)


@pytest.mark.parametrize(("given", "taken"), [(1, 1), (2, 1), (1, 3), (5, 7), (0, 1), (-1, 1), (1, -2)])
@pytest.mark.parametrize("name", ["bf16", "f32"])
def test_strides(name, given, taken):
    x, y = numbers(1024, DTYPES[name]), torch.zeros(1024, dtype=DTYPES[name])
    strided_kernel[(1,)](x[512:], y[512:], given, taken, 50, B=64)
    at = torch.arange(50)
    expected = torch.zeros_like(y)
    expected[512 + at * taken] = x[512 + at * given]
    assert_equal(y, expected)


@pytest.mark.parametrize("stride", [0, 1, 2, 3, 8])
@pytest.mark.parametrize("name", ["i8", "bf16", "f32", "i64"])
def test_constant_strides_and_reversed_stores(name, stride):
    x, y = numbers(512, DTYPES[name]), torch.empty(128, dtype=DTYPES[name])
    constant_stride_kernel[(1,)](x, y, S=stride, B=64)
    assert_equal(y, torch.cat([x[torch.arange(64) * stride], x[:64].flip(0)]))


@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=["i32", "i64"])
@pytest.mark.parametrize("name", DTYPES)
def test_gather_and_scatter(name, index):
    x, y = numbers(64, DTYPES[name]), torch.empty(64, dtype=DTYPES[name])
    order = torch.randperm(64, generator=torch.Generator().manual_seed(2)).to(index)
    gather_kernel[(1,)](x, order, y, B=64)
    assert_equal(y, x[order.long()])
    z = Canary(torch.empty(64, dtype=DTYPES[name]))
    expected = z.tensor.clone()
    scatter_kernel[(1,)](x, order, z.tensor, 40, B=64)
    expected[order[:40].long()] = x[:40]
    assert_equal(z.tensor, expected)
    assert z.outside_is_untouched()


@pytest.mark.parametrize("layout", ["rows", "columns", "rows to columns", "columns to rows", "spread"])
@pytest.mark.parametrize(("rows", "cols"), [(8, 64), (5, 33), (1, 1), (0, 3)])
def test_matrices(layout, rows, cols):
    x, y = torch.randn(8, 64), torch.empty(8, 64)
    before = y.clone()
    views = {
        "rows": (x, y),
        "columns": (x.T.contiguous().T, y.T.contiguous().T),
        "rows to columns": (x, y.T.contiguous().T),
        "columns to rows": (x.T.contiguous().T, y),
        "spread": (torch.zeros(8, 64, 2)[:, :, 0].copy_(x), torch.empty(64, 8, 3)[:, :, 1].T),
    }
    given, taken = views[layout]
    matrix_kernel[(1,)](given, taken, rows, cols, *given.stride(), *taken.stride(), M=8, N=64)
    expected = before
    expected[:rows, :cols] = x[:rows, :cols]
    assert_equal(taken.contiguous(), expected)


@pytest.mark.parametrize("cols", [32, 20])
@pytest.mark.parametrize("name", ["bf16", "f32"])
def test_rows_by_index(name, cols):
    x = numbers(50 * cols, DTYPES[name]).view(50, cols)
    rows = torch.tensor([3, 49, -1, 0, 7, 7, -1, 12], dtype=torch.int32)
    y = torch.empty(8, 32, dtype=DTYPES[name])
    rows_by_index_kernel[(1,)](x, rows, y, cols, M=8, N=32)
    expected = torch.full((8, 32), -1, dtype=DTYPES[name])
    expected[rows >= 0, :cols] = x[rows[rows >= 0].long()]
    assert_equal(y, expected)


def test_three_dimensions_permuted():
    x = torch.randn(4, 8, 16)
    y = torch.empty(16, 4, 8)
    cube_kernel[(1,)](x, y, A=4, B=8, C=16)
    assert_equal(y, x.permute(2, 0, 1).contiguous())


def test_addresses_of_rows():
    rows = [torch.randn(32) for _ in range(3)]
    addresses = torch.tensor([row.data_ptr() for row in rows], dtype=torch.uint64)
    y = torch.empty(3, 32)
    address_kernel[(1,)](addresses, y, 3, B=32)
    assert_equal(y, torch.stack(rows))


def test_addresses_of_elements():
    x, y = torch.randn(200), torch.empty(64)
    order = torch.randperm(200)[:64]
    expected = x.clone()
    expected[order] += 1
    before = x[order].clone()
    addresses_kernel[(1,)](x.data_ptr() + 4 * order, y, B=64)
    assert_equal(y, before)
    assert_equal(x, expected)


@pytest.mark.parametrize("choose", [0, 1])
def test_chosen_pointers(choose):
    x, y, z = torch.randn(32), torch.randn(32), torch.empty(2, 32)
    pointer_choice_kernel[(1,)](x, y, z, choose, B=32)
    assert_equal(z[0], y if choose else x)
    assert_equal(z[1], torch.where(torch.arange(32) % 2 == 0, x, y))


@pytest.mark.parametrize("n", [1, 3, 32, 64, 100])
def test_indices_that_wrap(n):
    x, y = torch.randn(128), torch.empty(256)
    wraps_kernel[(4,)](x, y, n, B=64)
    assert_equal(y, x[torch.arange(256) % n])


def test_narrow_offsets():
    x, y = torch.randn(256), torch.empty(2, 64)
    byte_offsets_kernel[(1,)](x, y, B=64)
    assert_equal(y, torch.stack([x[:64], x[:128:2]]))


def test_offsets_beyond_32_bits():
    cols = 2**31 - 16
    x, y = torch.randn(64), torch.empty(16)
    row = 3
    table = Table(x.data_ptr() - 4 * row * cols, torch.float32)  # of which only row 3 is there
    far_kernel[(1,)](table, row, cols, y, B=16)
    assert_equal(y, x[:16])


@pytest.mark.parametrize(("M", "N"), [(32, 32), (20, 36)])
def test_tensor_descriptors(M, N):
    x, y = torch.randn(M, N), Canary(torch.empty(M, N))
    descriptor_kernel[(2, 3)](x, y.tensor, M, N, B=16)
    assert_equal(y.tensor, x * 2)
    assert y.outside_is_untouched()
