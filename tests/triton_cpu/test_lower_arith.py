"""Lowering of arithmetic and comparison, against PyTorch: integers wrap, division truncates, shifts keep the sign."""

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal

SIZE = 64
INTEGERS = {"i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}
FLOATS = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
SPECIAL_FLOATS = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0, -1.0, 0.5]
INTEGER_OPS = ("add", "sub", "mul", "and", "or", "xor", "max", "min", "neg", "invert")
FLOAT_OPS = ("add", "sub", "mul", "div", "max", "min", "max all", "min all", "neg")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@triton.jit
def integer_kernel(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + 0 * B + i, a + b)
    tl.store(out + 1 * B + i, a - b)
    tl.store(out + 2 * B + i, a * b)
    tl.store(out + 3 * B + i, a & b)
    tl.store(out + 4 * B + i, a | b)
    tl.store(out + 5 * B + i, a ^ b)
    tl.store(out + 6 * B + i, tl.maximum(a, b))
    tl.store(out + 7 * B + i, tl.minimum(a, b))
    tl.store(out + 8 * B + i, -a)
    tl.store(out + 9 * B + i, ~a)


@triton.jit
def divide_kernel(x, y, quotient, remainder, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(quotient + i, a // b)
    tl.store(remainder + i, a % b)


@triton.jit
def divide_by_constant_kernel(x, quotient, remainder, D: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    tl.store(quotient + i, a // D)
    tl.store(remainder + i, a % D)


@triton.jit
def shift_kernel(x, y, left, right, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(left + i, a << b)
    tl.store(right + i, a >> b)


@triton.jit
def float_kernel(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + 0 * B + i, a + b)
    tl.store(out + 1 * B + i, a - b)
    tl.store(out + 2 * B + i, a * b)
    tl.store(out + 3 * B + i, a / b)
    tl.store(out + 4 * B + i, tl.maximum(a, b))
    tl.store(out + 5 * B + i, tl.minimum(a, b))
    tl.store(out + 6 * B + i, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 7 * B + i, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 8 * B + i, -a)


@triton.jit
def compare_kernel(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + 0 * B + i, a == b)
    tl.store(out + 1 * B + i, a != b)
    tl.store(out + 2 * B + i, a < b)
    tl.store(out + 3 * B + i, a <= b)
    tl.store(out + 4 * B + i, a > b)
    tl.store(out + 5 * B + i, a >= b)


@triton.jit
def remainder_kernel(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) % tl.load(y + i))


@triton.jit
def clamp_kernel(x, low, high, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    tl.store(out + i, tl.clamp(a, low, high))
    tl.store(out + B + i, tl.clamp(a, low, high, propagate_nan=tl.PropagateNan.ALL))


@triton.jit
def multiply_high_kernel(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.umulhi(tl.load(x + i), tl.load(y + i)))


@triton.jit
def scalars_kernel(x, y, f, out_i, out_f, out_b):
    tl.store(out_i + 0, x + y)
    tl.store(out_i + 1, x * y - 7)
    tl.store(out_i + 2, x // y)
    tl.store(out_i + 3, x % y)
    tl.store(out_i + 4, tl.cdiv(x, 5))
    tl.store(out_i + 5, tl.where(x < y, x, y))
    tl.store(out_f + 0, f * 0.5 + x)
    tl.store(out_f + 1, f / y)
    tl.store(out_b + 0, x < y)
    tl.store(out_b + 1, (x > 0) & (y > 0))
    tl.store(out_b + 2, (x > 0) | (y > 0))
    tl.store(out_b + 3, not (x > 0))


@triton.jit
def chain_of_booleans_kernel(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.load(y + i)
    m = ((a > 0) & (b > 0)) | ~(a == b) ^ (b < a)
    tl.store(out + i, m)
    tl.store(out + B + i, tl.where(m, a, b))
    tl.store(out + 2 * B + i, m + a)


def integer_inputs(dtype):
    info = torch.iinfo(dtype)
    special = [info.min, info.max, -1, 0, 1, 2, info.min + 1, 7]
    x = torch.randint(info.min, info.max, (SIZE,), generator=torch.Generator().manual_seed(1), dtype=torch.int64)
    y = torch.randint(-9, 9, (SIZE,), generator=torch.Generator().manual_seed(2))
    x[:8], y[:8] = torch.tensor(special), torch.tensor(special[::-1])
    return x.to(dtype), y.to(dtype)


def float_inputs(dtype):
    x = torch.randn(128, generator=torch.Generator().manual_seed(1))
    y = torch.randn(128, generator=torch.Generator().manual_seed(2))
    pairs = torch.tensor([[a, b] for a in SPECIAL_FLOATS for b in SPECIAL_FLOATS])
    x[: len(pairs)], y[: len(pairs)] = pairs[:, 0], pairs[:, 1]
    return x.to(dtype), y.to(dtype)


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_arithmetic_wraps(name):
    x, y = integer_inputs(INTEGERS[name])
    out = torch.empty(len(INTEGER_OPS), SIZE, dtype=x.dtype)
    integer_kernel[(1,)](x, y, out, B=SIZE)
    expected = [x + y, x - y, x * y, x & y, x | y, x ^ y, x.maximum(y), x.minimum(y), -x, ~x]
    for row, (op, value) in enumerate(zip(INTEGER_OPS, expected, strict=True)):
        assert torch.equal(out[row], value), op


@pytest.mark.parametrize("name", INTEGERS)
def test_division_truncates_and_never_traps(name):
    x, y = integer_inputs(INTEGERS[name])
    quotient, remainder = torch.empty_like(x), torch.empty_like(x)
    divide_kernel[(1,)](x, y, quotient, remainder, B=SIZE)
    fine = (y != 0) & ~((y == -1) & (x == torch.iinfo(x.dtype).min))
    a, b = x[fine].tolist(), y[fine].tolist()
    expected = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(a, b, strict=True)]
    assert quotient[fine].tolist() == expected
    assert remainder[fine].tolist() == [p - q * d for p, q, d in zip(a, expected, b, strict=True)]


@pytest.mark.parametrize("divisor", [1, 2, 3, 8, -1, -5])
def test_division_by_a_constant(divisor):
    x, _ = integer_inputs(torch.int32)
    x[0] += 1  # the least number divided by -1 has no meaning
    quotient, remainder = torch.empty_like(x), torch.empty_like(x)
    divide_by_constant_kernel[(1,)](x, quotient, remainder, D=divisor, B=SIZE)
    assert torch.equal(quotient, torch.div(x, divisor, rounding_mode="trunc"))
    assert torch.equal(remainder, torch.fmod(x, divisor))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.uint32, torch.uint64], ids=str)
def test_unsigned_division_and_comparison(dtype):
    bits = 8 * dtype.itemsize
    a = [2**bits - 1, 2 ** (bits - 1), 7, 0, 100, 2**bits - 3, 9, 1]
    b = [2, 3, 2**bits - 1, 5, 2 ** (bits - 1), 2**bits - 5, 9, 1]
    x, y = torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype)
    quotient, remainder = torch.zeros(8, dtype=dtype), torch.zeros(8, dtype=dtype)
    divide_kernel[(1,)](x, y, quotient, remainder, B=8)
    assert quotient.tolist() == [p // q for p, q in zip(a, b, strict=True)]
    assert remainder.tolist() == [p % q for p, q in zip(a, b, strict=True)]
    out = torch.empty(len(COMPARISONS), 8, dtype=torch.bool)
    compare_kernel[(1,)](x, y, out, B=8)
    assert out[2].tolist() == [p < q for p, q in zip(a, b, strict=True)]
    assert out[5].tolist() == [p >= q for p, q in zip(a, b, strict=True)]
    shifts = torch.ones(8, dtype=dtype)
    left, right = torch.zeros(8, dtype=dtype), torch.zeros(8, dtype=dtype)
    shift_kernel[(1,)](x, shifts, left, right, B=8)
    assert right.tolist() == [p >> 1 for p in a]
    assert left.tolist() == [(p << 1) % 2**bits for p in a]


@pytest.mark.parametrize("name", INTEGERS)
def test_shifts_keep_the_sign(name):
    x, _ = integer_inputs(INTEGERS[name])
    bits = 8 * x.dtype.itemsize
    y = (torch.arange(SIZE) % bits).to(x.dtype)
    left, right = torch.empty_like(x), torch.empty_like(x)
    shift_kernel[(1,)](x, y, left, right, B=SIZE)
    assert torch.equal(left, x << y)
    assert torch.equal(right, x >> y)


@pytest.mark.parametrize("name", FLOATS)
def test_float_arithmetic_is_rounded_once(name):
    x, y = float_inputs(FLOATS[name])
    out = torch.empty(len(FLOAT_OPS), len(x), dtype=x.dtype)
    float_kernel[(1,)](x, y, out, B=len(x))
    either = torch.fmax(x, y), torch.fmin(x, y)
    # Triton rounds a quotient of 16-bit floats in f32 first
    expected = [x + y, x - y, x * y, x / y, *either, x.maximum(y), x.minimum(y), -x]
    for op, got, value in zip(FLOAT_OPS, out, expected, strict=True):
        if op in ("max", "min", "max all", "min all"):  # the sign of a zero is open
            got, value = got + 0.0, value + 0.0
            zero = (x == 0) & (y == 0)
            got, value = got[~zero], value[~zero]
        assert_equal(got, value)


@pytest.mark.parametrize("name", [*FLOATS, "i8", "i32", "i64"])
def test_comparisons(name):
    x, y = float_inputs(FLOATS[name]) if name in FLOATS else integer_inputs(INTEGERS[name])
    y[40:50] = x[40:50]
    out = torch.empty(len(COMPARISONS), len(x), dtype=torch.bool)
    compare_kernel[(1,)](x, y, out, B=len(x))
    for op, got in zip(COMPARISONS, out, strict=True):
        assert torch.equal(got, getattr(torch, op)(x, y)), op


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
def test_float_remainder_has_the_sign_of_the_dividend(name):
    x, y = float_inputs(FLOATS[name])
    out = torch.empty_like(x)
    remainder_kernel[(1,)](x, y, out, B=len(x))
    assert_equal(out, torch.fmod(x.double(), y.double()).to(x.dtype))


@pytest.mark.parametrize("name", ["bf16", "f32"])
def test_clamp(name):
    x, _ = float_inputs(FLOATS[name])
    out = torch.empty(2, len(x), dtype=x.dtype)
    clamp_kernel[(1,)](x, -0.5, 0.75, out, B=len(x))
    assert_equal(out[1], x.clamp(-0.5, 0.75))
    number = ~x.isnan()
    assert_equal(out[0][number], x[number].clamp(-0.5, 0.75))
    assert (out[0][~number] == -0.5).all()


@pytest.mark.parametrize("dtype", [torch.uint32, torch.uint64], ids=str)
def test_upper_half_of_a_product(dtype):
    bits = 8 * dtype.itemsize
    a, b = [2**bits - 1, 2 ** (bits - 1), 12345, 0], [2**bits - 1, 6, 2 ** (bits - 2), 9]
    x, y, out = torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype), torch.zeros(4, dtype=dtype)
    multiply_high_kernel[(1,)](x, y, out, B=4)
    assert out.tolist() == [(p * q) >> bits for p, q in zip(a, b, strict=True)]


@pytest.mark.parametrize(("x", "y"), [(17, 5), (-17, 5), (3, 100), (-1, -4)])
def test_scalars(x, y):
    out_i, out_f = torch.empty(6, dtype=torch.int32), torch.empty(2)
    out_b = torch.empty(4, dtype=torch.bool)
    scalars_kernel[(1,)](x, y, 2.75, out_i, out_f, out_b)
    quotient = int(x / y)
    assert out_i.tolist() == [x + y, x * y - 7, quotient, x - quotient * y, int((x + 4) / 5), min(x, y)]
    assert_equal(out_f, torch.tensor([2.75 * 0.5 + x, 2.75 / y]))
    assert out_b.tolist() == [x < y, x > 0 and y > 0, x > 0 or y > 0, x <= 0]


def test_booleans_combine():
    x, y = integer_inputs(torch.int32)
    out = torch.empty(3, SIZE, dtype=torch.int32)
    chain_of_booleans_kernel[(1,)](x, y, out, B=SIZE)
    m = ((x > 0) & (y > 0)) | (~(x == y) ^ (y < x))
    assert torch.equal(out, torch.stack([m.int(), torch.where(m, x, y), m.int() + x]))
