"""Exponentials and logarithms of f32 as straight-line IR: no branch, no table, no call, the same bits for any lanes.

2^n is built from exponent bits and applied in two exact steps, so that overflow, underflow into denormals, infinities
and NaN come out right. Errors, over all inputs: exp, exp2, expm1, log, log2, log10, log1p below 2 ulp.
The coefficients are minimax fits made for this file.
"""

from __future__ import annotations

from collections.abc import Sequence

from triton_cpu.llvm.builder import Builder, Value

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.693359375  # 10 bits, so that a whole exponent times it is exact
_LN2_LOW = -2.1219444005469057e-4
_LOG10_2_HIGH = 0.30078125
_LOG10_2_LOW = 2.4874566398119521e-4
_IN_BASE_2 = (1.4426950216293335, 1.92596298909e-08)  # 1 / log(2) as an f32 and what that lacks
_IN_BASE_10 = (0.4342944920063019, -1.01030501e-08)  # 1 / log(10)
_LOG_10 = (2.302585124969482, -3.1975436344626e-08)
ROUNDER = 12582912.0  # 1.5 * 2^23: adding it rounds to a whole number and leaves that number in the low bits

_EXP = (0.5, 0.166665181517601, 0.04166620597243309, 0.008368957787752151, 0.0013950553257018328)  # (e^r - 1 - r) / r^2
_EXP2 = (  # (2^r - 1) / r
    0.6931471824645996, 0.24022650718688965, 0.055503275245428085,
    0.00961801502853632, 0.0013400395400822163, 0.00015473418170586228,
)  # fmt: skip
_LOG = (  # (log(1 + r) - r + r^2 / 2) / r^3
    0.3333333134651184, -0.250008225440979, 0.2000122219324112, -0.1662333607673645,
    0.14201869070529938, -0.1316048949956894, 0.12760914862155914, -0.07632862776517868,
)  # fmt: skip


def polynomial(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's scheme with fused multiply-adds; the constant coefficient comes first."""
    result = b.const(x.type, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = b.fma(result, x, b.const(x.type, coefficient))
    return result


def clamp_keeping_nan(b: Builder, x: Value, low: float, high: float) -> Value:
    """x limited to [low, high]; NaN stays NaN."""
    top = b.const(x.type, high)
    x = b.select(b.compare("fcmp ogt", x, top), top, x)
    bottom = b.const(x.type, low)
    return b.select(b.compare("fcmp olt", x, bottom), bottom, x)


def exp_f32(b: Builder, x: Value) -> Value:
    """e^x of f32."""
    x = clamp_keeping_nan(b, x, -104.0, 89.0)
    shifted, n = _nearest_whole(b, x, _LOG2_E)
    r = _minus_multiple_of_ln2(b, x, n)
    tail = b.fma(polynomial(b, r, _EXP), r, b.const(x.type, 1.0))
    return _times_power_of_two(b, b.fma(tail, r, b.const(x.type, 1.0)), shifted)


def exp2_f32(b: Builder, x: Value) -> Value:
    """2^x of f32; whole powers are exact."""
    x = clamp_keeping_nan(b, x, -151.0, 129.0)
    shifted, n = _nearest_whole(b, x, 1.0)
    r = b.binary("fsub", x, n)
    return _times_power_of_two(b, b.fma(polynomial(b, r, _EXP2), r, b.const(x.type, 1.0)), shifted)


def exp10_f32(b: Builder, x: Value) -> Value:
    """10^x of f32."""
    x = clamp_keeping_nan(b, x, -46.0, 39.0)
    shifted, n = _nearest_whole(b, x, 3.321928094887362)
    r = b.fma(n, b.const(x.type, -_LOG10_2_HIGH), x)
    r = b.fma(n, b.const(x.type, -_LOG10_2_LOW), r)
    # r * log(10) in two parts, the rounding error of the first repaired to first order
    high = b.binary("fmul", r, b.const(x.type, _LOG_10[0]))
    low = b.fma(r, b.const(x.type, _LOG_10[0]), b.neg(high))
    low = b.fma(r, b.const(x.type, _LOG_10[1]), low)
    tail = b.fma(polynomial(b, high, _EXP), b.binary("fmul", high, high), low)
    one = b.const(x.type, 1.0)
    return _times_power_of_two(b, b.binary("fadd", b.binary("fadd", tail, high), one), shifted)


def expm1_f32(b: Builder, x: Value) -> Value:
    """e^x - 1 of f32, accurate near zero."""
    original = x
    x = clamp_keeping_nan(b, x, -18.0, 89.0)
    shifted, n = _nearest_whole(b, x, _LOG2_E)
    r = _minus_multiple_of_ln2(b, x, n)
    small = b.fma(polynomial(b, r, _EXP), b.binary("fmul", r, r), r)  # e^r - 1
    # 2^n (small + 1) - 1 with half of 2^n, because 2^128 is no f32
    bits = b.binary("sub", _whole_bits(b, shifted), b.const(shifted.type.of("i32"), 1))
    half = _power_of_two(b, bits)
    result = b.fma(small, half, b.binary("fsub", half, b.const(x.type, 0.5)))
    result = b.binary("fadd", result, result)
    tiny = b.compare("fcmp olt", b.intrinsic("fabs", (original,)), b.const(x.type, 2.0**-25))
    return b.select(tiny, original, result)  # keeps -0 and denormals


def exp_bounded(b: Builder, x: Value) -> Value:
    """e^x for |x| <= 60 (or NaN): a building block that leaves the extremes out."""
    shifted, n = _nearest_whole(b, x, _LOG2_E)
    r = _minus_multiple_of_ln2(b, x, n)
    tail = b.fma(polynomial(b, r, _EXP), r, b.const(x.type, 1.0))
    p = b.fma(tail, r, b.const(x.type, 1.0))
    return b.binary("fmul", p, _power_of_two(b, _whole_bits(b, shifted)))


def expm1_bounded(b: Builder, x: Value) -> Value:
    """e^x - 1 for 0 <= x <= 60 (or NaN), accurate near zero: a building block that leaves the extremes out."""
    shifted, n = _nearest_whole(b, x, _LOG2_E)
    r = _minus_multiple_of_ln2(b, x, n)
    small = b.fma(polynomial(b, r, _EXP), b.binary("fmul", r, r), r)
    scale = _power_of_two(b, _whole_bits(b, shifted))
    return b.fma(small, scale, b.binary("fsub", scale, b.const(x.type, 1.0)))


def log_f32(b: Builder, x: Value) -> Value:
    """Natural logarithm of f32."""
    e, r, y = _split_log(b, x)
    y = b.fma(e, b.const(x.type, _LN2_LOW), y)
    y = b.binary("fadd", y, r)
    return _log_specials(b, x, b.fma(e, b.const(x.type, _LN2_HIGH), y))


def log2_f32(b: Builder, x: Value) -> Value:
    """Logarithm to base 2 of f32; exact for powers of two."""
    e, r, y = _split_log(b, x)
    return _log_specials(b, x, b.binary("fadd", _scaled(b, r, y, _IN_BASE_2), e))


def log10_f32(b: Builder, x: Value) -> Value:
    """Logarithm to base 10 of f32."""
    e, r, y = _split_log(b, x)
    low = b.fma(e, b.const(x.type, _LOG10_2_LOW), _scaled(b, r, y, _IN_BASE_10))
    return _log_specials(b, x, b.fma(e, b.const(x.type, _LOG10_2_HIGH), low))


def log1p_f32(b: Builder, x: Value) -> Value:
    """log(1 + x) of f32, accurate near zero."""
    one = b.const(x.type, 1.0)
    u = b.binary("fadd", x, one)
    # what the addition lost, the larger operand first
    large = b.compare("fcmp ogt", b.intrinsic("fabs", (x,)), one)
    big, little = b.select(large, x, one), b.select(large, one, x)
    lost = b.binary("fsub", little, b.binary("fsub", u, big))
    e, r, y = _split_log(b, u)
    y = b.fma(e, b.const(x.type, _LN2_LOW), y)
    y = b.binary("fadd", y, b.binary("fdiv", lost, u))
    y = b.binary("fadd", y, r)
    result = _log_specials(b, u, b.fma(e, b.const(x.type, _LN2_HIGH), y))
    tiny = b.compare("fcmp olt", b.intrinsic("fabs", (x,)), b.const(x.type, 2.0**-25))
    return b.select(tiny, x, result)  # keeps -0 and denormals


def _nearest_whole(b: Builder, x: Value, factor: float) -> tuple[Value, Value]:
    """x * factor rounded to a whole number n: (n + ROUNDER, n). NaN gives NaN."""
    rounder = b.const(x.type, ROUNDER)
    shifted = b.fma(x, b.const(x.type, factor), rounder)
    return shifted, b.binary("fsub", shifted, rounder)


def _minus_multiple_of_ln2(b: Builder, x: Value, n: Value) -> Value:
    r = b.fma(n, b.const(x.type, -_LN2_HIGH), x)
    return b.fma(n, b.const(x.type, -_LN2_LOW), r)


def _whole_bits(b: Builder, shifted: Value) -> Value:
    """Integers whose low 9 bits are n; the rest belongs to ROUNDER and is shifted out by _power_of_two."""
    return b.bitcast(shifted, shifted.type.of("i32"))


def _power_of_two(b: Builder, n: Value) -> Value:
    """2^n, for -126 <= n <= 127, from integers of which the low 9 bits count."""
    exponent = b.binary("shl", n, b.const(n.type, 23))
    return b.bitcast(b.binary("add", exponent, b.const(n.type, 127 << 23)), n.type.of("float"))


def _times_power_of_two(b: Builder, p: Value, shifted: Value) -> Value:
    """p * 2^n with a single rounding, for |n| <= 252 and p near 1."""
    n = _whole_bits(b, shifted)
    half = b.binary("lshr", n, b.const(n.type, 1))
    scaled = b.binary("fmul", p, _power_of_two(b, half))
    return b.binary("fmul", scaled, _power_of_two(b, b.binary("sub", n, half)))


def _split_log(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """e, r, y with x = 2^e (1 + r), sqrt(1/2) <= 1 + r < sqrt(2), and log(1 + r) = r + y; for positive finite x."""
    denormal = b.compare("fcmp olt", x, b.const(x.type, 2.0**-126))
    normal = b.select(denormal, b.binary("fmul", x, b.const(x.type, 2.0**24)), x)
    ints = x.type.of("i32")
    bits = b.bitcast(normal, ints)
    # counted from sqrt(1/2), so that the mantissa's range is centred at 1
    e = b.binary("ashr", b.binary("sub", bits, b.const(ints, 0x3F3504F3)), b.const(ints, 23))
    mantissa = b.bitcast(b.binary("sub", bits, b.binary("shl", e, b.const(ints, 23))), x.type)
    r = b.binary("fsub", mantissa, b.const(x.type, 1.0))
    square = b.binary("fmul", r, r)
    y = b.binary("fmul", b.binary("fmul", square, r), polynomial(b, r, _LOG))
    y = b.fma(square, b.const(x.type, -0.5), y)
    e = b.cast("sitofp", e, "float")
    return b.select(denormal, b.binary("fsub", e, b.const(x.type, 24.0)), e), r, y


def _scaled(b: Builder, r: Value, y: Value, factor: tuple[float, float]) -> Value:
    """(r + y) * factor, given in two parts because r is the larger."""
    high, low = factor
    part = b.fma(r, b.const(r.type, low), b.binary("fmul", y, b.const(y.type, high)))
    return b.fma(r, b.const(r.type, high), part)


def _log_specials(b: Builder, x: Value, y: Value) -> Value:
    """The logarithm's values at zero, negatives, infinity and NaN."""
    zero = b.zero(x.type)
    infinity = b.const(x.type, float("inf"))
    pole = b.select(b.compare("fcmp oeq", x, zero), b.const(x.type, float("-inf")), b.const(x.type, float("nan")))
    y = b.select(b.compare("fcmp oeq", x, infinity), infinity, y)
    return b.select(b.compare("fcmp ule", x, zero), pole, y)
