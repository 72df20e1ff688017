"""Vector mathematics against f64: accuracy, special values, and the same bits whatever the number of lanes."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from tests.triton_cpu.hand_lowered import spy
from tests.triton_cpu.jit import LANES, ArrayFunction
from triton_cpu.llvm import vecmath
from triton_cpu.llvm.vecmath import UNARY

STRIDE = 4001  # prime: all exponents and both signs, over a million values


@dataclass(frozen=True)
class Function:
    """A function under test.

    Attributes:
        apply: the code under test.
        exact: the function in f64, for arrays.
        ulp: bound on the error of f32, in units of the last place of the f32 nearest to the exact value.
        reason: where the error comes from.
        near: an interval in which the function is interesting, sampled more densely.
    """

    apply: vecmath.Unary
    exact: Callable[[np.ndarray], np.ndarray]
    ulp: float
    reason: str
    near: tuple[float, float]


def of_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: function(torch.from_numpy(x)).numpy()


_ONE_FIT = "a polynomial and the additions around it, each with a rounding of half an ulp"
_ONE_INSTRUCTION = "exactly rounded by the processor"

FUNCTIONS = {
    "exp": Function(vecmath.exp, np.exp, 1.0, _ONE_FIT, (-104, 89)),
    "exp2": Function(vecmath.exp2, np.exp2, 1.0, _ONE_FIT, (-151, 129)),
    "exp10": Function(vecmath.exp10, lambda x: np.power(10.0, x), 1.1, _ONE_FIT, (-46, 39)),
    "expm1": Function(vecmath.expm1, np.expm1, 1.75, "cancellation of 2^n - 1 for n = 1 and -1", (-18, 18)),
    "log": Function(vecmath.log, np.log, 1.0, _ONE_FIT, (0, 4)),
    "log2": Function(vecmath.log2, np.log2, 1.0, _ONE_FIT, (0, 4)),
    "log10": Function(vecmath.log10, np.log10, 1.0, _ONE_FIT, (0, 4)),
    "log1p": Function(vecmath.log1p, np.log1p, 1.0, _ONE_FIT, (-1, 4)),
    "sin": Function(vecmath.sin, np.sin, 1.1, _ONE_FIT, (-1e5, 1e5)),
    "cos": Function(vecmath.cos, np.cos, 1.1, _ONE_FIT, (-1e5, 1e5)),
    "tanh": Function(vecmath.tanh, np.tanh, 2.75, "expm1, an addition and a division: four roundings", (-10, 10)),
    "erf": Function(vecmath.erf, of_torch(torch.erf), 1.25, "1 - exp of a polynomial at |x| = 1", (-4, 4)),
    "sqrt": Function(vecmath.sqrt, np.sqrt, 0.5, _ONE_INSTRUCTION, (0, 4)),
    "rsqrt": Function(vecmath.rsqrt, lambda x: 1 / np.sqrt(x), 1.5, "a square root, then a division", (0, 4)),
    "ceil": Function(UNARY["math.ceil"], np.ceil, 0.0, _ONE_INSTRUCTION, (-9, 9)),
    "floor": Function(UNARY["math.floor"], np.floor, 0.0, _ONE_INSTRUCTION, (-9, 9)),
    "absf": Function(vecmath.absf, np.abs, 0.0, _ONE_INSTRUCTION, (-9, 9)),
}
NAMES = tuple(FUNCTIONS)
SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 1.1754942e-38, -1.1754942e-38, 1.17549435e-38,
     3.4028235e38, -3.4028235e38, 1e30, -1e30, 1e5, 100000.01, -1e5, 16777216.0, 0.5, -0.5, 0.99999994, 1.0000001,
     88.72284, -87.33655, -103.97208, 128.0, -149.0, -126.0, 38.53184, -17.5],
    np.float32,
)  # fmt: skip


@functools.cache
def samples(name: str) -> np.ndarray:
    """f32 arguments, a multiple of 64 of them."""
    low, high = FUNCTIONS[name].near
    everywhere = np.arange(0, 2**32, STRIDE, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = np.random.default_rng(0).uniform(low, high, 300_000).astype(np.float32)
    quarters = (np.arange(-63661, 63662) * (np.pi / 2)).astype(np.float32)  # zeros of sin and cos
    around = [np.nextafter(quarters, np.float32(np.inf)), np.nextafter(quarters, np.float32(-np.inf))]
    values = np.concatenate([SPECIAL, everywhere, near, quarters, *around])
    return values[: len(values) // 64 * 64]


@functools.cache
def compiled(name: str, elem: str, lanes: int) -> ArrayFunction:
    return ArrayFunction(FUNCTIONS[name].apply, [elem], elem, lanes)


def exact_values(name: str, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return FUNCTIONS[name].exact(x.astype(np.float64))


def ulps(got: np.ndarray, exact: np.ndarray, digits: int = 24, least: int = -149) -> np.ndarray:
    """Distance in units of the last place; 0 where both are the same infinity, the same signed zero, or NaN."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        unit = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - digits, least))
        distance = np.abs(got.astype(np.float64) - exact) / unit
    no_number = np.isnan(exact) | np.isinf(rounded) | (exact == 0)
    same = (got == rounded) & (np.signbit(got) == np.signbit(rounded)) | np.isnan(got) & np.isnan(exact)
    distance = np.where(no_number, np.where(same, 0.0, np.inf), distance)
    return np.where(np.isnan(distance), np.inf, distance)


@pytest.mark.parametrize("name", NAMES)
def test_single_precision_is_within_its_bound(name):
    x = samples(name)
    distance = ulps(compiled(name, "float", 16)(x), exact_values(name, x))
    worst = distance.argmax()
    assert distance[worst] <= FUNCTIONS[name].ulp, (distance[worst], x[worst], FUNCTIONS[name].reason)


@pytest.mark.parametrize("name", NAMES)
def test_double_precision_is_within_two_ulp(name):
    random = np.random.default_rng(1)
    low, high = FUNCTIONS[name].near
    values = [SPECIAL.astype(np.float64), random.uniform(low, high, 20_000), random.standard_normal(960)]
    x = np.concatenate(values)
    x = x[: len(x) // 64 * 64]
    bound = 4.0 if name == "exp10" else 2.0  # numpy's power, the reference, is itself off by an ulp or two
    assert ulps(compiled(name, "double", 4)(x), exact_values(name, x), 53, -1074).max() <= bound


def as_single(bits: np.ndarray, elem: str) -> np.ndarray:
    if elem == "half":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(values: np.ndarray, elem: str) -> torch.Tensor:
    return torch.from_numpy(values).float().to(torch.float16 if elem == "half" else torch.bfloat16).double()


@pytest.mark.parametrize("elem", ["half", "bfloat"])
@pytest.mark.parametrize("name", NAMES)
def test_every_half_and_bfloat_is_the_rounded_single_result(name, elem):
    bits = np.arange(65536, dtype=np.uint16)
    x = as_single(bits, elem)
    got = torch.from_numpy(as_single(compiled(name, elem, 16)(bits), elem)).double()
    exact = exact_values(name, x)
    ulp = FUNCTIONS[name].ulp
    smaller, larger = exact * (1 - ulp * 2.0**-23), exact * (1 + ulp * 2.0**-23)
    least = ulp * 2.0**-149  # an ulp of denormals
    low = narrowed(np.minimum(smaller, larger) - least, elem)
    high = narrowed(np.maximum(smaller, larger) + least, elem)
    assert torch.equal(got.isnan(), torch.from_numpy(np.isnan(exact)))
    assert ((low <= got) & (got <= high) | got.isnan()).all()
    zero = torch.from_numpy(exact == 0)
    assert torch.equal(torch.signbit(got)[zero], torch.from_numpy(np.signbit(exact))[zero])


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_depend_on_the_number_of_lanes(name):
    x = samples(name)
    results = [compiled(name, "float", lanes)(x).view(np.uint32) for lanes in (*LANES, 8)]
    numbers = ~np.isnan(results[0].view(np.float32))  # a NaN's sign follows the order of operands the processor met
    for other in results[1:]:
        assert np.array_equal(np.isnan(other.view(np.float32)), ~numbers)
        assert np.array_equal(results[0][numbers], other[numbers])


@pytest.mark.parametrize("name", NAMES)
def test_bits_do_not_depend_on_place_or_neighbours(name):
    x = samples(name)
    function = compiled(name, "float", 16)
    before = function(x)
    for places in (1, 7, 12345):
        moved = np.roll(function(np.roll(x, places)), -places)
        numbers = ~np.isnan(before)
        assert np.array_equal(np.isnan(moved), ~numbers)
        assert np.array_equal(before[numbers].view(np.uint32), moved[numbers].view(np.uint32))


@pytest.mark.parametrize(("name", "sign"), [("sin", -1), ("tanh", -1), ("erf", -1), ("cos", 1)])
def test_symmetry_is_exact(name, sign):
    x = samples(name)
    function = compiled(name, "float", 16)
    assert np.array_equal(function(-x), sign * function(x), equal_nan=True)


@pytest.mark.parametrize("name", ["sin", "cos", "tanh", "erf"])
def test_values_stay_within_one(name):
    results = compiled(name, "float", 16)(samples(name))
    assert (np.abs(results[~np.isnan(results)]) <= 1).all()


def test_whole_powers_of_two_are_exact():
    n = np.arange(-149, 128).astype(np.float32)[:256]
    powers = np.ldexp(np.float32(1), n.astype(np.int32)).astype(np.float32)
    assert np.array_equal(compiled("exp2", "float", 16)(n), powers)
    assert np.array_equal(compiled("log2", "float", 16)(powers), n)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_absolute_value_of_integers(width):
    ints = np.dtype(f"i{width // 8}")
    top = np.iinfo(ints)
    x = np.array([0, 1, -1, 5, -5, top.max, top.min, top.min + 1] * 8, ints)
    got = ArrayFunction(vecmath.absi, [f"i{width}"], f"i{width}", 8)(x).view(ints)
    assert np.array_equal(got, np.where(x == top.min, x, np.abs(x)))


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])
def test_upper_half_of_a_product(width, signed):
    ints = np.dtype(f"{'i' if signed else 'u'}{width // 8}")
    x, y = np.random.default_rng(2).integers(np.iinfo(ints).min, np.iinfo(ints).max, (2, 640), ints, endpoint=True)
    x[:2], y[:2] = np.iinfo(ints).max, (np.iinfo(ints).max, np.iinfo(ints).min)
    function = vecmath.multiply_high_signed if signed else vecmath.multiply_high
    got = ArrayFunction(function, [f"i{width}"] * 2, f"i{width}", 8)(x, y).view(ints)
    assert got.tolist() == [a * b >> width for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def test_division_is_exactly_rounded():
    x, y = np.random.default_rng(3).integers(0, 2**32, (2, 65536), np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        expected = x / y
    assert np.array_equal(ArrayFunction(vecmath.divide, ["float"] * 2, "float", 16)(x, y), expected, equal_nan=True)


@pytest.mark.parametrize("elem", ["float", "half", "bfloat"])
def test_fma_rounds_the_product_and_sum_once(elem):
    one_more = 1 + 2.0 ** -{"float": 23, "half": 10, "bfloat": 7}[elem]
    exact = one_more * one_more - (2 * one_more - 1)  # the square of the last place, which a rounded product lacks
    bits = {"float": np.float32, "half": np.float16, "bfloat": np.float32}[elem]
    x, z = np.full(16, one_more, bits), np.full(16, 1 - 2 * one_more, bits)
    if elem == "bfloat":
        x, z = ((v.view(np.uint32) >> 16).astype(np.uint16) for v in (x, z))
    got = ArrayFunction(vecmath.fma, [elem] * 3, elem, 16)(
        *(v.view(np.uint16) if elem == "half" else v for v in (x, x, z))
    )
    assert ((got if elem == "float" else as_single(got, elem)) == exact).all()


def test_every_operation_of_the_language_has_its_function(lowering):
    """The functions of tl.math become the operations of the table, and three that have more operands."""

    @triton.jit
    def kernel(x, n):
        v, i = tl.load(x), tl.load(n)
        y = tl.math.exp(v) + tl.math.exp2(v) + tl.math.log(v) + tl.math.log2(v) + tl.math.cos(v) + tl.math.sin(v)
        y += tl.math.sqrt(v) + tl.math.sqrt_rn(v) + tl.math.rsqrt(v) + tl.math.abs(v) + tl.math.erf(v)
        y += tl.math.floor(v) + tl.math.ceil(v) + tl.math.fma(v, v, v) + tl.math.div_rn(v, v)
        tl.store(x, y)
        tl.store(n, tl.math.abs(i) + tl.math.umulhi(i, i))

    lowered = lowering(spy(2), ["ptr", "ptr"])
    kernel.warmup(torch.zeros(1), torch.zeros(1, dtype=torch.int32), grid=(1,))
    used = {word.strip('"') for word in lowered.ttir.replace("(", " ").split() if word.startswith('"math.')}
    used |= {f"tt.{name}" for name in ("precise_sqrt", "precise_divf", "mulhiui") if f'"tt.{name}"' in lowered.ttir}
    assert used - {"math.fma", "tt.precise_divf", "tt.mulhiui"} == UNARY.keys() - {"math.tanh"}
