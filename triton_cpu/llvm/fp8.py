"""8-bit floats, which travel as i8: f8E4M3FN (Triton's fp8e4nv; no infinities) and f8E5M2 (fp8e5)."""

from __future__ import annotations

from typing import NamedTuple

from triton_cpu.llvm.builder import Builder, Value


class Format(NamedTuple):
    """An 8-bit float format.

    Attributes:
        mantissa: bits of the mantissa.
        bias: of the exponent.
        largest: bits of the largest finite value.
        nan: bits of the NaN that conversions give.
    """

    mantissa: int
    bias: int
    largest: int
    nan: int


FORMATS = {"f8E4M3FN": Format(3, 7, 0x7E, 0x7F), "f8E5M2": Format(2, 15, 0x7B, 0x7F)}


def fp8_to_half_or_single(b: Builder, v: Value, source: str) -> Value:
    """i8 that holds `source` to half (f8E5M2) or float (f8E4M3FN), exactly."""
    bits = b.cast("zext", v, "i16")
    if source == "f8E5M2":
        return b.bitcast(b.binary("shl", bits, b.const(bits.type, 8)), v.type.of("half"))
    sign = b.binary("shl", b.binary("and", bits, b.const(bits.type, 0x80)), b.const(bits.type, 8))
    magnitude = b.binary("and", bits, b.const(bits.type, 0x7F))
    # as half bits the value is 2^8 too small, because half's bias is 15; denormals included
    placed = b.binary("or", sign, b.binary("shl", magnitude, b.const(bits.type, 7)))
    single = b.cast("fpext", b.bitcast(placed, v.type.of("half")), "float")
    scaled = b.binary("fmul", single, b.const(single.type, 256.0))
    is_nan = b.compare("icmp eq", magnitude, b.const(bits.type, 0x7F))
    return b.select(is_nan, b.const(single.type, float("nan")), scaled)


def single_to_fp8(b: Builder, v: Value, elem: str, rounding: str) -> Value:
    """f32 to i8 that holds `elem`; overflow and infinities give the largest finite value of their sign."""
    to = FORMATS[elem]
    ints, i = v.type.of("i32"), v.type.of("i32")
    bits = b.bitcast(v, ints)
    magnitude = b.binary("and", bits, b.const(i, 0x7FFFFFFF))
    shift = 23 - to.mantissa
    rounded = magnitude
    if rounding == "rtne":
        last = b.binary("and", b.binary("lshr", magnitude, b.const(i, shift)), b.const(i, 1))
        rounded = b.binary("add", magnitude, b.binary("add", last, b.const(i, (1 << (shift - 1)) - 1)))
    normal = b.binary("lshr", rounded, b.const(i, shift))
    normal = b.binary("sub", normal, b.const(i, (127 - to.bias) << to.mantissa))
    # below the smallest normal value: multiples of the smallest denormal
    small = b.compare("icmp ult", magnitude, b.const(i, (128 - to.bias) << 23))
    value = b.select(small, b.bitcast(magnitude, v.type), b.zero(v.type))
    steps = b.binary("fmul", value, b.const(v.type, 2.0 ** (to.bias + to.mantissa - 1)))
    if rounding == "rtne":
        steps = b.intrinsic("rint", (steps,))
    result = b.select(small, b.cast("fptoui", steps, "i32"), normal)
    largest = b.const(i, to.largest)
    result = b.select(b.compare("icmp sgt", result, largest), largest, result)
    result = b.select(b.compare("fcmp uno", v, v), b.const(i, to.nan), result)
    sign = b.binary("and", b.binary("lshr", bits, b.const(i, 24)), b.const(i, 0x80))
    return b.cast("trunc", b.binary("or", result, sign), "i8")
