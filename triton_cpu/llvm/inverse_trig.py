"""Arc sine, arc cosine and arc tangent of f32 as straight-line IR. Errors are below 2 ulp.

The coefficients are Chebyshev fits made for this file.
"""

from __future__ import annotations

from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.explog import polynomial

_HALF_PI = (1.5707963705062866, -4.371138828673793e-08)  # two f32, their sum pi / 2
_ASIN = (  # (asin(s) - s) / s^3 for s^2 <= 1/4, in s^2
    0.1666666567325592, 0.07500094175338745, 0.04459940269589424, 0.031100662425160408, 0.017149237915873528,
    0.03369084745645523,
)  # fmt: skip
_ATAN = (  # (atan(t) - t) / t^3 for t <= 1, in t^2
    -0.3333333432674408, 0.19999949634075165, -0.14284004271030426, 0.11088261753320694, -0.08931826800107956,
    0.07031914591789246, -0.04896051436662674, 0.026305001229047775, -0.00914462935179472, 0.001488691894337535,
)  # fmt: skip


def asin_f32(b: Builder, x: Value) -> Value:
    """asin x of f32; NaN for |x| > 1."""
    near, core = _arc(b, x)
    far = _from_half_pi(b, b.binary("fadd", core, core))
    return b.intrinsic("copysign", (b.select(near, core, far), x))


def acos_f32(b: Builder, x: Value) -> Value:
    """acos x of f32; NaN for |x| > 1."""
    near, core = _arc(b, x)
    twice = b.binary("fadd", core, core)
    far = b.select(b.compare("fcmp olt", x, b.zero(x.type)), _from_half_pi(b, twice, 2.0), twice)
    return b.select(near, _from_half_pi(b, b.intrinsic("copysign", (core, x))), far)


def atan_f32(b: Builder, x: Value) -> Value:
    """atan x of f32."""
    return atan2_f32(b, x, b.const(x.type, 1.0))


def atan2_f32(b: Builder, y: Value, x: Value) -> Value:
    """Angle of the point (x, y) of f32, between -pi and pi; infinities and zeros count as in C."""
    zero, one = b.zero(x.type), b.const(x.type, 1.0)
    height, width = (b.intrinsic("fabs", (value,)) for value in (y, x))
    steep = b.compare("fcmp ogt", height, width)
    low, high = b.select(steep, width, height), b.select(steep, height, width)
    equal = b.select(b.compare("fcmp oeq", high, zero), zero, one)  # also where both are 0, or both infinite
    t = b.select(b.compare("fcmp oeq", low, high), equal, b.binary("fdiv", low, high))
    square = b.binary("fmul", t, t)
    angle = b.fma(b.binary("fmul", t, square), polynomial(b, square, _ATAN), t)
    angle = b.select(steep, _from_half_pi(b, angle), angle)
    left = b.compare("fcmp olt", b.intrinsic("copysign", (one, x)), zero)  # of -0 as well
    return b.intrinsic("copysign", (b.select(left, _from_half_pi(b, angle, 2.0), angle), y))


def _arc(b: Builder, x: Value) -> tuple[Value, Value]:
    """Whether |x| <= 1/2, and asin(|x|) there; elsewhere asin(sqrt((1 - |x|) / 2)), which is acos(|x|) / 2."""
    half, size = b.const(x.type, 0.5), b.intrinsic("fabs", (x,))
    near = b.compare("fcmp ole", size, half)
    square = b.select(near, b.binary("fmul", x, x), b.fma(size, b.const(x.type, -0.5), half))
    s = b.select(near, size, b.intrinsic("sqrt", (square,)))
    return near, b.fma(b.binary("fmul", s, square), polynomial(b, square, _ASIN), s)


def _from_half_pi(b: Builder, angle: Value, times: float = 1.0) -> Value:
    """times * pi / 2 - angle, for 1 or 2 times."""
    high, low = (b.const(angle.type, times * part) for part in _HALF_PI)
    return b.binary("fadd", b.binary("fsub", high, angle), low)
