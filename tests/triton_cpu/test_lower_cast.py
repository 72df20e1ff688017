"""Lowering of conversions among types, against PyTorch."""

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal

SIZE = 64
DTYPES = {
    "i1": torch.bool, "i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
}  # fmt: skip


@triton.jit
def cast_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


@triton.jit
def to_all_kernel(x, outs, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    for k in tl.static_range(len(outs)):
        tl.store(outs[k] + i, a.to(outs[k].dtype.element_ty))


@triton.jit
def bits_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty, bitcast=True))


@triton.jit
def towards_zero_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty, fp_downcast_rounding="rtz"))


@triton.jit
def scalar_cast_kernel(n, f, out_i, out_f):
    tl.store(out_i, f.to(tl.int64))
    tl.store(out_i + 1, n.to(tl.int8).to(tl.int64))
    tl.store(out_i + 2, (n > 3).to(tl.int64))
    tl.store(out_f, n.to(tl.float32))
    tl.store(out_f + 1, f.to(tl.bfloat16).to(tl.float32))


@triton.jit
def wide_index_kernel(stride, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, (i + 3).to(tl.int64) * stride)


@triton.jit
def wrapped_index_kernel(x, first, out, B: tl.constexpr):
    i = tl.arange(0, B)
    narrow = (first + i).to(tl.int8)
    tl.store(out + i, narrow.to(tl.int32))
    tl.store(out + B + i, tl.load(x + narrow))


@triton.jit
def eight_bit_constants_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=-1.75).to(tl.float32))
    tl.store(out + B + i, tl.full((B,), 0.0, x.dtype.element_ty).to(tl.float32))
    tl.store(out + 2 * B + i, tl.full((B,), float("nan"), x.dtype.element_ty).to(tl.float32))


def inputs(dtype):
    if dtype == torch.bool:
        return torch.arange(SIZE) % 3 == 0
    if dtype.is_floating_point:
        x = 100 * torch.randn(SIZE, generator=torch.Generator().manual_seed(3))
        x[:6] = torch.tensor([0.0, -0.0, 1.0, -1.5, 0.49, 126.9])
        return x.clamp(-127, 127).to(dtype)
    info = torch.iinfo(dtype)
    x = torch.randint(info.min, info.max, (SIZE,), generator=torch.Generator().manual_seed(3))
    x[:4] = torch.tensor([info.min, info.max, 0, 1])
    return x.to(dtype)


@pytest.mark.parametrize("given", DTYPES)
def test_a_type_to_every_other(given):
    x = inputs(DTYPES[given])
    outs = tuple(torch.empty(SIZE, dtype=dtype) for dtype in DTYPES.values())
    to_all_kernel[(1,)](x, outs, B=SIZE)
    for to, out in zip(DTYPES, outs, strict=True):
        defined = x >= 0 if to == "u8" and x.is_floating_point() else torch.ones(SIZE, dtype=torch.bool)
        try:
            assert_equal(out[defined], x.to(DTYPES[to])[defined])
        except AssertionError as error:
            raise AssertionError(f"to {to}: {error}") from error


@pytest.mark.parametrize("to", ["f16", "bf16", "f32"])
def test_narrowing_keeps_what_is_not_finite(to):
    values = [float("inf"), float("-inf"), float("nan"), 1e39, -1e39, 65519.0, 65520.0, 1e-45]
    x = torch.tensor(values, dtype=torch.float64)
    out = torch.empty(8, dtype=DTYPES[to])
    cast_kernel[(1,)](x, out, B=8)
    assert_equal(out, x.to(DTYPES[to]))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
@pytest.mark.parametrize("wide", ["f16", "bf16", "f32"])
def test_eight_bit_floats(dtype, wide):
    x = torch.arange(256).to(torch.uint8).view(dtype)
    out = torch.empty(256, dtype=DTYPES[wide])
    cast_kernel[(1,)](x, out, B=256)
    assert_equal(out, x.to(DTYPES[wide]))
    back = torch.zeros(256, dtype=torch.uint8).view(dtype)
    cast_kernel[(1,)](out, back, B=256)
    limit = torch.finfo(dtype).max  # what is larger, infinity too, becomes the largest number
    assert_equal(back.float(), x.float().clamp(-limit, limit))


@pytest.mark.parametrize(
    ("given", "to"), [("f32", "i32"), ("i32", "f32"), ("bf16", "i16"), ("i16", "f16"), ("f64", "i64"), ("f16", "bf16")]
)
def test_bits_are_kept(given, to):
    x = inputs(DTYPES[given])
    out = torch.empty(SIZE, dtype=DTYPES[to])
    bits_kernel[(1,)](x, out, B=SIZE)
    width = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    assert torch.equal(out.view(width), x.view(width))


@pytest.mark.parametrize("to", ["f16", "bf16"])
def test_rounding_towards_zero(to):
    x = inputs(torch.float32)
    out = torch.empty(SIZE, dtype=DTYPES[to])
    towards_zero_kernel[(1,)](x, out, B=SIZE)
    nearest = x.to(DTYPES[to])
    away = nearest.float().abs() > x.abs()
    expected = torch.where(away, torch.nextafter(nearest, torch.zeros_like(nearest)), nearest)
    assert_equal(out, expected)


def test_scalars():
    out_i, out_f = torch.empty(3, dtype=torch.int64), torch.empty(2)
    scalar_cast_kernel[(1,)](1000, -2.71828, out_i, out_f)
    assert out_i.tolist() == [-2, 1000 - 1024, 1]
    assert_equal(out_f, torch.tensor([1000.0, torch.tensor(-2.71828).bfloat16().item()]))


def test_an_index_widened_before_it_is_multiplied_does_not_wrap():
    out = torch.empty(SIZE, dtype=torch.int64)
    wide_index_kernel[(1,)](2**31 - 1, out, B=SIZE)
    assert torch.equal(out, (torch.arange(SIZE) + 3) * (2**31 - 1))


@pytest.mark.parametrize("first", [0, 100, 250])
def test_indices_that_are_narrowed_wrap_in_the_middle_of_a_chunk(first):
    x, out = torch.arange(256, dtype=torch.int32) * 3, torch.empty(2, SIZE, dtype=torch.int32)
    wrapped_index_kernel[(1,)](x[128:], first, out, B=SIZE)
    wrapped = (torch.arange(SIZE) + first).to(torch.int8).int()
    assert torch.equal(out, torch.stack([wrapped, (wrapped + 128) * 3]))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_constants_of_eight_bit_floats(dtype):
    x, out = torch.linspace(-4, 4, SIZE).to(dtype), torch.empty(3, SIZE)
    eight_bit_constants_kernel[(1,)](x, out, 50, B=SIZE)
    loaded = torch.where(torch.arange(SIZE) < 50, x.float(), -1.75)
    assert_equal(out, torch.stack([loaded, torch.zeros(SIZE), torch.full((SIZE,), float("nan"))]))
