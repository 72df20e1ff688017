"""Conversions against torch and exact arithmetic, exhaustively where the input is 16 bits or fewer."""

import functools

import numpy as np
import pytest
import torch

from tests.triton_cpu.jit import LANES, ArrayFunction
from triton_cpu.llvm.builder import Builder
from triton_cpu.llvm.convert import fp_to_fp, fp_to_int, int_to_fp
from triton_cpu.llvm.types import F32, Type

TORCH = {
    "half": torch.float16, "bfloat": torch.bfloat16, "float": torch.float32, "double": torch.float64,
    "f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2,
}  # fmt: skip
BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "f8E4M3FN": 8, "f8E5M2": 8}
INTEGER = {8: torch.uint8, 16: torch.int16, 32: torch.int32, 64: torch.int64}
LARGEST = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0}
FORMATS = tuple(BITS)


def storage(elem: str) -> str:
    return "i8" if elem.startswith("f8") else elem


@functools.cache
def conversion(source: str, to: str, rounding: str, lanes: int) -> ArrayFunction:
    def body(b, v):
        return fp_to_fp(b, v, to, rounding, source if source.startswith("f8") else None)

    return ArrayFunction(body, [storage(source)], storage(to), lanes)


def convert(values: torch.Tensor, to: str, rounding: str = "rtne", lanes: int = 16) -> torch.Tensor:
    """`values`, whose number is a multiple of 64, converted by the code under test."""
    source = next(name for name, dtype in TORCH.items() if dtype == values.dtype)
    raw = values.view(INTEGER[BITS[source]]).numpy()
    out = conversion(source, to, rounding, lanes)(raw)
    return torch.from_numpy(out.view(f"u{BITS[to] // 8}").astype(f"i{BITS[to] // 8}", copy=False)).view(TORCH[to])


@functools.cache
def samples(elem: str) -> torch.Tensor:
    """All values of formats up to 16 bits; of wider ones random bits, and values at and beside rounding boundaries."""
    if BITS[elem] <= 16:
        every = np.arange(2 ** BITS[elem], dtype=np.int64).astype(f"u{BITS[elem] // 8}")
        return torch.from_numpy(every.astype(f"i{BITS[elem] // 8}")).view(TORCH[elem])
    random = np.random.default_rng(0)
    unsigned, float_ = (np.uint32, np.float32) if elem == "float" else (np.uint64, np.float64)
    bits = random.integers(0, 2 ** BITS[elem], 200_000, dtype=unsigned).view(float_)
    # every finite value of the narrow formats and the middles between neighbours, and the values next to those
    narrow = []
    for name in ("half", "bfloat", "f8E4M3FN", "f8E5M2"):
        finite = np.unique(samples(name).double().numpy()[torch.isfinite(samples(name).double()).numpy()])
        top = 1.5 * finite[-1] - 0.5 * finite[-2]  # halfway to where the next value would be
        narrow += [finite, (finite[1:] + finite[:-1]) / 2, [top, -top, 2 * top]]
    with np.errstate(over="ignore"):
        edges = np.concatenate(narrow).astype(float_)
        around = [np.nextafter(edges, float_(np.inf)), np.nextafter(edges, float_(-np.inf))]
    values = np.concatenate([bits, edges, *around, np.array([0.0, -0.0, np.inf, -np.inf, np.nan], float_)])
    if elem == "double":
        tiny = random.choice(edges, 100_000) * (
            1 + random.choice([1, -1], 100_000) * 2.0 ** -random.integers(25, 52, 100_000)
        )
        singles = (
            torch.from_numpy(random.integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)).double().numpy()
        )
        values = np.concatenate([values, tiny, singles, singles * (1 + 2.0**-25), singles * (1 + 2.0**-24)])
    return torch.from_numpy(values[: len(values) // 64 * 64].copy())


def same_bits(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Equal bit for bit, except that any NaN equals any NaN."""
    wide, wanted = actual.double(), expected.double()
    assert torch.equal(wide.isnan(), wanted.isnan())
    width = INTEGER[8 * actual.element_size()]
    different = (actual.view(width) != expected.view(width)) & ~wanted.isnan()
    assert not different.any(), (wide[different][:5], wanted[different][:5])


def nearest(values: torch.Tensor, to: str) -> torch.Tensor:
    """The conversion as it should be: one rounding; 8-bit formats saturate."""
    if values.dtype == torch.float64 and BITS[to] < 32:
        values = rounded_to_odd(values)
    if to in LARGEST:
        values = values.float().clamp(-LARGEST[to], LARGEST[to])
    return values.to(TORCH[to])


def rounded_to_odd(values: torch.Tensor) -> torch.Tensor:
    """f64 to f32 so that a second rounding to fewer bits equals a single one."""
    exact = values.numpy()
    with np.errstate(all="ignore"):
        near = exact.astype(np.float32)
        down = np.where(np.abs(near.astype(np.float64)) > np.abs(exact), np.nextafter(near, np.float32(0)), near)
        bits = down.view(np.uint32) | (np.isfinite(exact) & (down.astype(np.float64) != exact))
    return torch.from_numpy(bits.astype(np.uint32).view(np.float32))


PAIRS = [(source, to) for source in FORMATS for to in FORMATS if source != to]
TRUNCATED = [(source, to) for source, to in PAIRS if source not in LARGEST and to != "double"]


@pytest.mark.parametrize(("source", "to"), PAIRS, ids=[f"{source}-{to}" for source, to in PAIRS])
def test_conversion_rounds_once_to_nearest_even(source, to):
    values = samples(source)
    same_bits(convert(values, to), nearest(values, to))


@pytest.mark.parametrize(("source", "to"), TRUNCATED, ids=[f"{source}-{to}" for source, to in TRUNCATED])
def test_conversion_towards_zero_gives_the_largest_value_not_beyond(source, to):
    values = samples(source)
    result = convert(values, to, "rtz")
    exact, got = values.double(), result.double()
    assert torch.equal(got.isnan(), exact.isnan())
    assert torch.equal(torch.signbit(got)[~exact.isnan()], torch.signbit(exact)[~exact.isnan()])
    infinite = exact.isinf()
    finite_top = to in LARGEST
    assert torch.equal(got.isinf(), infinite & (not finite_top))
    inside = ~infinite & ~exact.isnan()
    assert (got.abs() <= exact.abs())[inside].all()
    width = INTEGER[BITS[to]]
    after = (result.view(width) + 1).view(TORCH[to]).double()  # next away from zero; infinity or NaN past the largest
    assert (~(after.abs() <= exact.abs()))[inside & ~(got.abs() == LARGEST.get(to, -1.0))].all()


def test_nan_of_every_payload_stays_a_quiet_nan_in_bfloat():
    bits = np.concatenate([np.arange(0x7F800001, 0x7F800001 + 4096), np.arange(0x7FC00000, 0x7FC00000 + 4096)])
    nans = torch.from_numpy(bits.astype(np.uint32).view(np.float32))
    for rounding in ("rtne", "rtz"):
        result = convert(nans, "bfloat", rounding)
        assert result.isnan().all()
        assert (result.view(torch.int16) & 0x40 != 0).all()


@pytest.mark.parametrize(("source", "to"), [("float", "bfloat"), ("float", "half"), ("double", "bfloat"),
                                            ("double", "half"), ("float", "f8E4M3FN"), ("f8E4M3FN", "float"),
                                            ("bfloat", "float"), ("half", "bfloat")])  # fmt: skip
@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
def test_bits_do_not_depend_on_the_number_of_lanes(source, to, rounding):
    values = samples(source)
    width = INTEGER[BITS[to]]
    results = [convert(values, to, rounding, lanes).view(width) for lanes in LANES]
    assert all(torch.equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("source", ["half", "bfloat", "float", "double"])
def test_float_to_integer_truncates_and_saturates(source, width, signed):
    values = samples(source)
    raw = values.view(INTEGER[BITS[source]]).numpy()
    out = ArrayFunction(lambda b, v: fp_to_int(b, v, f"i{width}", signed), [source], f"i{width}", 16)(raw)
    got = out.view(f"{'i' if signed else 'u'}{width // 8}")
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    exact = values.double().numpy()
    expected = [0 if x != x else low if x <= low else high if x >= high else int(x) for x in exact.tolist()]
    assert np.array_equal(got, np.array(expected, got.dtype))


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("to", ["half", "bfloat", "float", "double"])
def test_integer_to_float_rounds_once(to, width, signed):
    random = np.random.default_rng(1)
    kind = np.dtype(f"{'i' if signed else 'u'}{width // 8}")
    raw = random.integers(0, 2**64, 40_000, dtype=np.uint64)
    shifted = raw >> random.integers(64 - width, 64, 40_000, dtype=np.uint64)  # every magnitude
    near_ties = (np.uint64(1) << random.integers(1, width, 24_000, dtype=np.uint64)).astype(np.int64)
    near_ties = near_ties + (near_ties >> 8) + (near_ties >> 9) + random.integers(-1, 2, 24_000)
    values = np.concatenate([shifted.astype(kind), near_ties.astype(kind)])
    out = ArrayFunction(lambda b, v: int_to_fp(b, v, to, signed), [f"i{width}"], to, 16)(values)
    got = torch.from_numpy(out.view(f"i{BITS[to] // 8}")).view(TORCH[to])
    same_bits(got, torch.tensor([nearest_of_integer(int(x), to) for x in values.tolist()], dtype=TORCH[to]))


def nearest_of_integer(x: int, to: str) -> float:
    """The nearest value of the format, ties to even, in exact integer arithmetic."""
    bits = {"half": 11, "bfloat": 8, "float": 24, "double": 53}[to]
    drop = abs(x).bit_length() - bits
    if drop > 0:
        unit, rest = divmod(abs(x), 1 << drop)
        unit += rest > 1 << (drop - 1) or (rest == 1 << (drop - 1) and unit & 1)
        x = (1 if x > 0 else -1) * (unit << drop)
    return float("inf") * x if to == "half" and abs(x) >= 2**16 else float(x)


def test_booleans_become_zero_and_one():
    def body(b, v):
        return int_to_fp(b, b.compare("icmp sgt", v, b.const(v.type, 0)), "bfloat", signed=False)

    values = np.arange(-32, 32, dtype=np.int32)
    out = ArrayFunction(body, ["i32"], "bfloat", 16)(values)
    assert np.array_equal(out, np.where(values > 0, 0x3F80, 0).astype(np.uint16))


def test_unknown_formats_and_roundings_are_named():
    b = Builder({}, {})
    v = b.const(Type("float"), 1.0)
    assert v.type == F32
    with pytest.raises(ValueError, match="'rtp' is not supported"):
        fp_to_fp(b, v, "half", "rtp")
    with pytest.raises(ValueError, match="'f8E4M3B11FNUZ' is no float format"):
        fp_to_fp(b, v, "f8E4M3B11FNUZ")
