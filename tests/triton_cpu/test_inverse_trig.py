"""Arc sine, cosine and tangent, and the angle of a point, in f32: errors in ulp, and the values that C prescribes."""

import numpy as np
import pytest

from tests.triton_cpu.jit import LANES, ArrayFunction
from triton_cpu.llvm.libdevice import EXTERN

ONE = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan}
SPECIAL = np.array([0.0, 1, 0.5, 2, 7, np.inf, 1e-45, 1e-38, 3e38, np.nan], np.float32)
SPECIAL = np.concatenate([SPECIAL, -SPECIAL, np.nextafter(np.float32(1), np.array([0, 2], np.float32))])


def every_so_often(step):
    """f32 of every size and sign, and NaN; a multiple of 64 of them."""
    bits = np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32)
    return bits[: len(bits) // 64 * 64].view(np.float32)


def apply(name, *operands, lanes=16):
    return ArrayFunction(EXTERN[f"__nv_{name}f"], ["float"] * len(operands), "float", lanes)(*operands)


def check(got, expected):
    """Less than 2 ulp off, with NaN, infinities and signs of zeros where they belong."""
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(got[~finite], expected[~finite].astype(np.float32))
    got, expected = got[finite], expected[finite]
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
    ulp = np.maximum(np.spacing(np.abs(expected.astype(np.float32))), np.float32(1e-45))
    assert (np.abs(got.astype(np.float64) - expected) < 2 * ulp).all()


@pytest.mark.parametrize("name", ONE)
def test_function_of_one_operand(name):
    x = np.concatenate([every_so_often(10007), np.random.default_rng(0).uniform(-1, 1, 4096).astype(np.float32)])
    with np.errstate(invalid="ignore"):
        check(apply(name, x), ONE[name](x.astype(np.float64)))


@pytest.mark.parametrize("name", ONE)
def test_special_values(name):
    x = np.resize(SPECIAL, 32)
    with np.errstate(invalid="ignore"):
        check(apply(name, x), ONE[name](x.astype(np.float64)))


def test_angle():
    generator, sizes = np.random.default_rng(0), every_so_often(10007)
    near = generator.normal(size=(2, 1 << 16)).astype(np.float32)
    y, x = (np.concatenate([generator.permutation(sizes), part]) for part in near)
    with np.errstate(invalid="ignore"):
        check(apply("atan2", y, x), np.arctan2(y.astype(np.float64), x.astype(np.float64)))


def test_angle_of_special_points():
    count = len(SPECIAL) ** 2 // 16 * 16
    y, x = np.repeat(SPECIAL, len(SPECIAL))[:count], np.tile(SPECIAL, len(SPECIAL))[:count]
    check(apply("atan2", y, x), np.arctan2(y.astype(np.float64), x.astype(np.float64)))


@pytest.mark.parametrize("name", [*ONE, "atan2"])
def test_bits_do_not_depend_on_the_number_of_lanes(name):
    x = np.random.default_rng(0).uniform(-1, 1, 64).astype(np.float32)
    operands = (x, x[::-1]) if name == "atan2" else (x,)
    results = [apply(name, *operands, lanes=lanes).view(np.uint32) for lanes in LANES]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
