"""Lowering of mathematical functions: tl.math and libdevice reach the functions of llvm/ at every type and shape."""

import math

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime.interpreter import InterpretedFunction

import tests.interpreted  # noqa: F401  # lets the interpreter call Triton's own library
from tests.compare import assert_equal

FUNCTIONS = ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "floor", "ceil", "abs")
UNITS = {torch.float32: 2.0**-22, torch.float64: 2.0**-48}  # relative error, or absolute for values up to 1


@triton.jit
def functions_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    tl.store(out + 0 * B + i, tl.exp(a))
    tl.store(out + 1 * B + i, tl.exp2(a))
    tl.store(out + 2 * B + i, tl.log(a))
    tl.store(out + 3 * B + i, tl.log2(a))
    tl.store(out + 4 * B + i, tl.sin(a))
    tl.store(out + 5 * B + i, tl.cos(a))
    tl.store(out + 6 * B + i, tl.sqrt(a))
    tl.store(out + 7 * B + i, tl.rsqrt(a))
    tl.store(out + 8 * B + i, tl.erf(a))
    tl.store(out + 9 * B + i, tl.floor(a))
    tl.store(out + 10 * B + i, tl.ceil(a))
    tl.store(out + 11 * B + i, tl.abs(a))


@triton.jit
def rounded_once_kernel(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, tl.math.sqrt_rn(a))
    tl.store(out + B + i, tl.math.div_rn(a, b))
    tl.store(out + 2 * B + i, tl.fma(a, b, a))
    tl.store(out + 3 * B + i, tl.fdiv(a, b))


@triton.jit
def scalar_kernel(x, out):
    a = tl.load(x)
    tl.store(out, tl.exp(a))
    tl.store(out + 1, tl.sqrt(tl.abs(a)))
    tl.store(out + 2, tl.sigmoid(a))


@triton.jit
def libdevice_kernel(x, y, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + 0 * B + i, libdevice.tanh(a))
    tl.store(out + 1 * B + i, libdevice.pow(a, b))
    tl.store(out + 2 * B + i, libdevice.atan2(a, b))
    tl.store(out + 3 * B + i, libdevice.log1p(a))
    tl.store(out + 4 * B + i, libdevice.expm1(a))
    tl.store(out + 5 * B + i, libdevice.rint(a))
    tl.store(out + 6 * B + i, libdevice.isnan(a).to(tl.float32))
    tl.store(out + 7 * B + i, libdevice.copysign(a, b - 1))


@triton.jit
def integer_functions_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    tl.store(out + i, libdevice.popc(a))
    tl.store(out + B + i, libdevice.clz(a))
    tl.store(out + 2 * B + i, libdevice.brev(a))
    tl.store(out + 3 * B + i, tl.abs(a))


@triton.jit
def random_kernel(out, seed, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.rand(seed, i))
    tl.store(out + B + i, tl.randn(seed, i))
    tl.store(out + 2 * B + i, tl.randint(seed, i).to(tl.float32))


@triton.jit
def fused_kernel(x, y, z, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) * tl.load(y + i) + tl.load(z + i))


@triton.jit
def matrix_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    row = tl.exp(tl.load(x + tl.arange(0, M)))
    tl.store(out + i * N + j, tl.exp(-j.to(tl.float32)) * row[:, None])


@pytest.mark.parametrize("dtype", UNITS, ids=str)
def test_functions(dtype):
    x = torch.rand(64, dtype=dtype) * 4 + 0.01
    x[:4] = torch.tensor([0.0, float("inf"), float("nan"), 1.0], dtype=dtype)
    out = torch.empty(len(FUNCTIONS), 64, dtype=dtype)
    functions_kernel[(1,)](x, out, B=64)
    for name, got in zip(FUNCTIONS, out, strict=True):
        exact = getattr(torch, name)(x.double()).to(dtype)
        finite = exact.isfinite()
        assert_equal(got[~finite], exact[~finite])
        error = (got - exact).abs() / exact.abs().clamp(min=1)
        assert error[finite].max() <= UNITS[dtype], name


def test_what_is_rounded_once():
    x, y, out = torch.rand(256) + 0.5, torch.rand(256) + 0.5, torch.empty(4, 256)
    rounded_once_kernel[(1,)](x, y, out, B=256)
    a, b = x.double(), y.double()
    assert_equal(out, torch.stack([a.sqrt(), a / b, a * b + a, a / b]).float())


def test_scalars():
    x, out = torch.tensor([-1.25]), torch.empty(3)
    scalar_kernel[(1,)](x, out)
    expected = torch.tensor([math.exp(-1.25), math.sqrt(1.25), 1 / (1 + math.exp(1.25))])
    assert torch.allclose(out, expected, rtol=1e-6)


def test_libdevice():
    x, y = torch.rand(64) * 3, torch.rand(64) * 2
    x[0] = float("nan")
    out = torch.empty(8, 64)
    libdevice_kernel[(1,)](x, y, out, B=64)
    a, b = x.double(), y.double()
    expected = [a.tanh(), a**b, torch.atan2(a, b), a.log1p(), a.expm1(), a.round(), a.isnan(), a.copysign(b - 1)]
    expected = torch.stack([value.float() for value in expected])
    assert torch.allclose(out, expected, rtol=1e-6, atol=1e-7, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_libdevice_of_integers(dtype):
    bits = 8 * dtype.itemsize
    values = [0, 1, -1, 5, -(2 ** (bits - 1)) + 1, 2 ** (bits - 1) - 1, 1 << (bits - 2), 1000]
    x, out = torch.tensor(values, dtype=dtype), torch.empty(4, 8, dtype=dtype)
    integer_functions_kernel[(1,)](x, out, B=8)
    words = [value % 2**bits for value in values]
    assert out[0].tolist() == [word.bit_count() for word in words]
    assert out[1].tolist() == [bits - word.bit_length() for word in words]
    assert [v % 2**bits for v in out[2].tolist()] == [int(f"{word:0{bits}b}"[::-1], 2) for word in words]
    assert out[3].tolist() == [abs(value) for value in values]


@pytest.mark.parametrize("seed", [0, 123, 2**40 + 1])
def test_random_numbers(seed):
    out = torch.empty(3, 1024)
    random_kernel[(1,)](out, seed, B=1024)
    same = torch.empty(3, 1024)
    InterpretedFunction(random_kernel.fn)[(1,)](same, seed, B=1024)
    assert_equal(out[::2], same[::2])
    assert torch.allclose(out[1], same[1], atol=1e-5)
    assert ((out[0] >= 0) & (out[0] < 1)).all()
    assert abs(out[1].std() - 1) < 0.1


@pytest.mark.parametrize("fused", [False, True])
def test_fusion_is_an_option(fused):
    x, y, z = torch.randn(256), torch.randn(256), torch.randn(256)
    out = torch.empty(256)
    fused_kernel[(1,)](x, y, z, out, B=256, enable_fp_fusion=fused)
    if not fused:
        assert_equal(out, x * y + z)
    assert torch.allclose(out.double(), x.double() * y.double() + z.double(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("M", "N"), [(4, 16), (1, 64), (16, 1)])
def test_functions_of_broadcast_values(M, N):
    x, out = torch.randn(M), torch.empty(M, N)
    matrix_kernel[(1,)](x, out, M=M, N=N)
    assert torch.allclose(out, (-torch.arange(N)).exp() * x.exp()[:, None], rtol=1e-6)
