"""The functions of tl.extra.libdevice: each symbol gives its function, in f32 and f64."""

import inspect
import math
import re

import numpy as np
import pytest
import torch
from triton.language.extra.cuda import libdevice

from tests.triton_cpu.jit import ArrayFunction
from triton_cpu.llvm.libdevice import EXTERN

# name -> the function of Python or torch, and an interval of arguments
ONE = {
    "acos": (math.acos, -1, 1), "acosh": (math.acosh, 1, 9), "asin": (math.asin, -1, 1), "asinh": (math.asinh, -9, 9),
    "atan": (math.atan, -9, 9), "atanh": (math.atanh, -0.9, 0.9), "cbrt": (np.cbrt, -9, 9), "ceil": (math.ceil, -9, 9),
    "cos": (math.cos, -9, 9), "cosh": (math.cosh, -9, 9), "erf": (math.erf, -3, 3), "erfc": (math.erfc, -3, 3),
    "exp": (math.exp, -9, 9), "exp10": (lambda x: 10.0**x, -9, 9), "exp2": (np.exp2, -9, 9),
    "expm1": (math.expm1, -9, 9), "fabs": (abs, -9, 9), "floor": (math.floor, -9, 9), "lgamma": (math.lgamma, 3, 9),
    "log": (math.log, 0.1, 9), "log10": (math.log10, 0.1, 9), "log1p": (math.log1p, -0.9, 9),
    "log2": (math.log2, 0.1, 9), "logb": (lambda x: math.frexp(x)[1] - 1, 0.1, 9), "nearbyint": (round, -9, 9),
    "rint": (round, -9, 9), "round": (lambda x: math.copysign(math.floor(abs(x) + 0.5), x), -9, 9),
    "rsqrt": (lambda x: x**-0.5, 0.1, 9), "sin": (math.sin, -9, 9), "sinh": (math.sinh, -9, 9),
    "sqrt": (math.sqrt, 0, 9), "tan": (math.tan, -1, 1), "tanh": (math.tanh, -9, 9), "tgamma": (math.gamma, 1, 9),
    "trunc": (math.trunc, -9, 9),
}  # fmt: skip
TWO = {
    "atan2": math.atan2, "copysign": math.copysign, "fdim": lambda x, y: max(x - y, 0.0), "fmod": math.fmod,
    "hypot": math.hypot, "pow": lambda x, y: abs(x) ** y, "remainder": math.remainder,
}  # fmt: skip
FAST = ("cos", "exp", "exp10", "log", "log10", "log2", "sin", "tan")
HALVES = (0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.0, -3.0)  # where roundings differ
ELEMENTS = {
    "f": ("float", np.float32, 2.0**-21),
    "": ("double", np.float64, 2.0**-48),
}  # f64: what Python's own lgamma is off by


def check(symbol, suffix, reference, *operands):
    elem, dtype, tolerance = ELEMENTS[suffix]
    operands = [operand.astype(dtype) for operand in operands]
    got = ArrayFunction(EXTERN[symbol], [elem] * len(operands), elem, 8)(*operands)
    expected = [reference(*row) for row in zip(*(operand.tolist() for operand in operands), strict=True)]
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=tolerance, atol=tolerance * 2.0**-3)


def arguments(name):
    _, low, high = ONE[name]
    inside = np.array([x for x in HALVES if low <= x <= high])
    return np.concatenate([inside, np.random.default_rng(0).uniform(low, high, 256 - len(inside))])


@pytest.mark.parametrize("suffix", ["f", ""], ids=["f32", "f64"])
@pytest.mark.parametrize("name", ONE)
def test_function_of_one_operand(name, suffix):
    check(f"__nv_{name}{suffix}", suffix, ONE[name][0], arguments(name))


@pytest.mark.parametrize("name", FAST)
def test_fast_variant_is_the_accurate_function(name):
    check(f"__nv_fast_{name}f", "f", ONE[name][0], arguments(name))


@pytest.mark.parametrize("suffix", ["f", ""], ids=["f32", "f64"])
@pytest.mark.parametrize("name", TWO)
def test_function_of_two_operands(name, suffix):
    x, y = np.random.default_rng(1).uniform(-4, 4, (2, 256))
    check(f"__nv_{name}{suffix}", suffix, TWO[name], abs(x) if name == "pow" else x, y)


@pytest.mark.parametrize(("letter", "suffix"), [("f", "f"), ("d", "")], ids=["f32", "f64"])
def test_arithmetic_with_a_rounding_mode(letter, suffix):
    x, y = np.random.default_rng(2).uniform(0.5, 4, (2, 256))
    check(f"__nv_{letter}add_rn", suffix, lambda a, b: a + b, x, y)
    check(f"__nv_{letter}sub_rn", suffix, lambda a, b: a - b, x, y)
    check(f"__nv_{letter}mul_rn", suffix, lambda a, b: a * b, x, y)
    check(f"__nv_{letter}div_rn", suffix, lambda a, b: a / b, x, y)
    check(f"__nv_{letter}sqrt_rn", suffix, math.sqrt, x)
    check(f"__nv_{letter}rcp_rn", suffix, lambda a: 1 / a, x)
    check(f"__nv_fma{suffix}_rn", suffix, lambda a, b, c: a * b + c, x, y, x)
    check(f"__nv_fma{suffix}", suffix, lambda a, b, c: a * b + c, x, y, x)
    check(f"__nv_nextafter{suffix}", suffix, lambda a, b: a, x, y)
    if letter == "f":
        check("__nv_frsqrt_rn", "f", lambda a: a**-0.5, x)
        check("__nv_fast_fdividef", "f", lambda a, b: a / b, x, y)
        check("__nv_fast_powf", "f", pow, x, y)


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45])


@pytest.mark.parametrize(("suffix", "elem", "dtype"), [("f", "float", np.float32), ("d", "double", np.float64)])
def test_questions_about_a_number(suffix, elem, dtype):
    x = SPECIAL.astype(dtype)
    finite = "finitef" if suffix == "f" else "isfinited"
    for name, expected in ((f"isnan{suffix}", np.isnan(x)), (f"isinf{suffix}", np.isinf(x)),
                           (f"signbit{suffix}", np.signbit(x)), (finite, np.isfinite(x))):  # fmt: skip
        got = ArrayFunction(EXTERN[f"__nv_{name}"], [elem], "i32", 8)(x)
        assert np.array_equal(got, expected.astype(np.int32)), name


def test_saturation_keeps_to_zero_and_one():
    x = np.array([-np.inf, -1, 0.25, 1, 7, np.inf, np.nan, 0.0], np.float32)
    got = ArrayFunction(EXTERN["__nv_saturatef"], ["float"], "float", 8)(x)
    assert got.tolist() == [0, 0, 0.25, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(("width", "suffix"), [(32, ""), (64, "ll")])
def test_bits_are_counted_and_reversed(width, suffix):
    x = np.array([0, 1, 2, 255, -1, 1 << (width - 2), 12345, -(1 << (width - 1))], f"i{width // 8}")
    words = [format(v % 2**width, f"0{width}b") for v in x.tolist()]
    count = ArrayFunction(EXTERN[f"__nv_popc{suffix}"], [f"i{width}"], "i32", 8)(x)
    leading = ArrayFunction(EXTERN[f"__nv_clz{suffix}"], [f"i{width}"], "i32", 8)(x)
    mirrored = ArrayFunction(EXTERN[f"__nv_brev{suffix}"], [f"i{width}"], f"i{width}", 8)(x)
    assert count.tolist() == [word.count("1") for word in words]
    assert leading.tolist() == [len(word) - len(word.lstrip("0")) for word in words]
    assert [format(v % 2**width, f"0{width}b") for v in mirrored.tolist()] == [word[::-1] for word in words]


def test_bits_are_taken_as_they_are():
    x = torch.randn(16).numpy()
    for symbol in ("__nv_float_as_int", "__nv_float_as_uint"):
        assert np.array_equal(ArrayFunction(EXTERN[symbol], ["float"], "i32", 8)(x), x.view(np.int32))
    got = ArrayFunction(EXTERN["__nv_double_as_longlong"], ["double"], "i64", 8)(x.astype(np.float64))
    assert np.array_equal(got, x.astype(np.float64).view(np.int64))


def test_symbols_are_those_that_the_language_emits():
    emitted = set(re.findall(r'"(__nv_\w+)"', inspect.getsource(libdevice)))
    assert EXTERN.keys() <= emitted, EXTERN.keys() - emitted
