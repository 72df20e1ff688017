"""Lowering of loads and stores: element types, layouts, masks, and memory that must not be touched."""

import threading
from dataclasses import dataclass

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal
from tests.triton_cpu.guarded import Canary

DTYPES = {
    "i1": torch.bool, "i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
}  # fmt: skip
# elements and mask limit: one lane, a part of a chunk, several chunks, none, all
SIZES = [(1, 1), (2, 1), (16, 11), (64, 64), (128, 100), (256, 0), (256, 255)]


@triton.jit
def copy_kernel(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def other_kernel(x, y, n, B: tl.constexpr, OTHER: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=OTHER))


@triton.jit
def other_tensor_kernel(x, z, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=tl.load(z + i)))


@triton.jit
def holes_kernel(x, keep, y, B: tl.constexpr):
    i = tl.arange(0, B)
    m = tl.load(keep + i)
    tl.store(y + i, tl.load(x + i, mask=m, other=0), mask=m)


@triton.jit
def scalar_kernel(x, y, n, nowhere):
    tl.store(y, tl.load(x + 2))
    tl.store(y + 1, tl.load(x + n, mask=n < 3))
    tl.store(y + 2, tl.load(x + n, mask=n < 3, other=7))
    tl.store(y + 3, 9, mask=n < 3)
    tl.store(nowhere, tl.load(nowhere, mask=n < 0, other=4), mask=n < 0)


@triton.jit
def one_element_kernel(x, y, n):
    i = tl.arange(0, 1)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=5), mask=i < 1)


@triton.jit
def uniform_store_kernel(y, value, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, value, mask=i < n)


@triton.jit
def one_place_kernel(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    everywhere = tl.load(x + i * 0)
    tl.store(y + i, everywhere)


@triton.jit
def reversed_kernel(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    tl.store(y + i, 2 * tl.flip(a, 0) + a)


@triton.jit
def many_buffers_kernel(x, y, N: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B * B)
    a = tl.load(x + i)
    for _ in tl.static_range(N):
        a = tl.ravel(tl.trans(tl.reshape(a, (B, B)))) + 1
    tl.store(y + i, a)


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


@pytest.mark.parametrize(
    ("name", "size", "n"),
    [*(("f32", *size) for size in SIZES), *((name, 256, 255) for name in DTYPES if name != "f32")],
)
def test_copy(name, size, n):
    x, y = numbers(size, DTYPES[name]), Canary(torch.empty(size, dtype=DTYPES[name]))
    before = y.tensor.clone()
    copy_kernel[(1,)](x, y.tensor, n, B=size)
    assert_equal(y.tensor[:n], x[:n])
    assert_equal(y.tensor[n:], before[n:])
    assert y.outside_is_untouched()


@pytest.mark.parametrize("other", [0, -3, 1.5])
@pytest.mark.parametrize("name", ["i1", "i8", "i32", "f16", "bf16", "f32", "f64"])
def test_masked_lanes_read_other(name, other):
    dtype = DTYPES[name]
    x, y = numbers(64, dtype), torch.empty(64, dtype=dtype)
    other_kernel[(1,)](x, y, 45, B=64, OTHER=other)
    expected = x.clone()
    expected[45:] = torch.tensor(other).to(dtype)
    assert_equal(y, expected)


@pytest.mark.parametrize("n", [0, 1, 32, 64])
def test_other_is_a_tensor(n):
    x, z, y = numbers(64, torch.float32), numbers(64, torch.float32, 8), torch.empty(64)
    other_tensor_kernel[(1,)](x, z, y, n, B=64)
    assert_equal(y, torch.cat([x[:n], z[n:]]))


@pytest.mark.parametrize("name", DTYPES)
def test_masks_with_holes(name):
    dtype = DTYPES[name]
    x, y = numbers(128, dtype), torch.empty(128, dtype=dtype)
    keep = torch.rand(128, generator=torch.Generator().manual_seed(1)) > 0.5
    before = y.clone()
    holes_kernel[(1,)](x, keep, y, B=128)
    assert_equal(y, torch.where(keep, x, before))


@pytest.mark.parametrize("n", [1, 3])
def test_scalars(n):
    x, y = torch.tensor([10, 11, 12]), torch.full((4,), -1)
    scalar_kernel[(1,)](x, y, n, Table(0, torch.int64))
    assert y.tolist() == ([12, 11, 11, 9] if n < 3 else [12, 0, 7, -1])


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("name", ["i1", "f16", "f32"])
def test_a_tensor_of_one_element(name, n):
    x, y = numbers(1, DTYPES[name]) * 0, torch.empty(1, dtype=DTYPES[name])
    one_element_kernel[(1,)](x, y, n)
    assert y.item() == (0 if n else torch.tensor(5).to(DTYPES[name]).item())


@pytest.mark.parametrize("value", [2.5, -1.0])
def test_one_value_everywhere(value):
    y = torch.empty(64)
    uniform_store_kernel[(1,)](y, value, 50, B=64)
    assert (y[:50] == value).all()
    assert y[50:].isnan().all()


def test_every_lane_reads_one_place():
    x, y = torch.tensor([3.5, 4.5]), torch.empty(64)
    one_place_kernel[(1,)](x, y, B=64)
    assert (y == 3.5).all()


@pytest.mark.parametrize("size", [1 << 14, 1 << 17], ids=["stack", "arena"])
def test_large_tensors(size):
    x, y = torch.randn(size), torch.empty(size)
    reversed_kernel[(2,)](x, y, B=size)
    assert_equal(y, 2 * x.flip(0) + x)


def test_many_buffers_do_not_overflow_the_stack():
    x, y = torch.randint(0, 99, (128 * 128,), dtype=torch.int32), torch.empty(128 * 128, dtype=torch.int32)

    def run():
        many_buffers_kernel[(1,)](x, y, N=24, B=128)  # 64 KiB each, 1.5 MiB together

    run()  # compiles, which takes more stack than the thread has
    y.zero_()
    before = threading.stack_size(1 << 20)
    thread = threading.Thread(target=run)
    thread.start()
    threading.stack_size(before)
    thread.join()
    assert torch.equal(y, x + 24)
