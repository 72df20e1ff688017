"""Sine and cosine of f32: inline up to |x| = 1e5, the C library for lanes beyond that.

The argument is reduced by multiples of pi/2 in three parts (Cody and Waite) and kept as a sum of two f32. Errors are
below 1.5 ulp. The coefficients are minimax fits made for this file.
"""

from __future__ import annotations

from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.explog import ROUNDER, polynomial
from triton_cpu.llvm.libm import per_lane
from triton_cpu.llvm.types import I1

_LARGEST = 1e5
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100059e-15)  # each an f32, their sum pi / 2
_SIN = (-0.16666655242443085, 0.00833216868340969, -0.0001951598678715527)  # (sin(r) - r) / r^3, in r^2
_COS = (0.04166664555668831, -0.001388735487125814, 2.4436963940388523e-05)  # (cos(r) - 1 + r^2 / 2) / r^4, in r^2


def sin_f32(b: Builder, x: Value) -> Value:
    """sin x of f32, x in radians."""
    size = b.intrinsic("fabs", (x,))
    result = _quarter_waves(b, x, 0)
    result = b.select(b.compare("fcmp olt", size, b.const(x.type, 2.0**-12)), x, result)  # keeps -0
    return _beyond(b, size, x, result, "sinf")


def cos_f32(b: Builder, x: Value) -> Value:
    """cos x of f32, x in radians."""
    return _beyond(b, b.intrinsic("fabs", (x,)), x, _quarter_waves(b, x, 1), "cosf")


def _quarter_waves(b: Builder, x: Value, ahead: int) -> Value:
    """sin(x + ahead * pi / 2) for |x| <= 1e5."""
    rounder = b.const(x.type, ROUNDER)
    shifted = b.fma(x, b.const(x.type, 0.6366197723675814), rounder)
    n = b.binary("fsub", shifted, rounder)
    high, middle, low = (b.const(x.type, -part) for part in _HALF_PI)
    exact = b.fma(n, high, x)
    part = b.binary("fmul", n, middle)
    r = b.binary("fadd", exact, part)
    lost = b.binary("fsub", part, b.binary("fsub", r, exact))  # exactly: `part` has no bit above the lowest of `exact`
    rest = b.binary("fadd", b.fma(n, low, b.fma(n, middle, b.neg(part))), lost)  # what r lacks
    square = b.binary("fmul", r, r)
    cube = b.binary("fmul", square, r)
    sine = b.binary("fadd", b.fma(cube, polynomial(b, square, _SIN), rest), r)
    tail = b.binary("fmul", b.binary("fmul", square, square), polynomial(b, square, _COS))
    tail = b.fma(b.neg(r), rest, tail)
    cosine = b.binary("fadd", b.fma(square, b.const(x.type, -0.5), tail), b.const(x.type, 1.0))
    ints = x.type.of("i32")
    quarter = b.binary("add", b.bitcast(shifted, ints), b.const(ints, ahead))
    odd = b.compare("icmp ne", b.binary("and", quarter, b.const(ints, 1)), b.zero(ints))
    sign = b.binary("shl", b.binary("and", quarter, b.const(ints, 2)), b.const(ints, 30))
    return b.bitcast(b.binary("xor", b.bitcast(b.select(odd, cosine, sine), ints), sign), x.type)


def _beyond(b: Builder, size: Value, x: Value, inside: Value, name: str) -> Value:
    """`inside`, with the lanes that are larger than it allows (or no numbers) from the C library."""
    outside = b.compare("fcmp ugt", size, b.const(x.type, _LARGEST))
    any_outside = b.intrinsic("vector.reduce.or", (outside,), I1) if x.type.lanes else outside
    before, call, after = b.block, b.name("outside"), b.name("inside")
    b.branch_if(any_outside, call, after)
    b.start(call)
    mixed = b.select(outside, per_lane(b, name, (x,)), inside)
    b.branch(after)
    b.start(after)
    return b.value(x.type, f"phi {x.type} [ {inside.text}, %{before} ], [ {mixed.text}, %{call} ]")
