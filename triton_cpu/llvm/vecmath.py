"""Element-wise mathematics on scalars and vectors of any number of lanes, as LLVM IR without target intrinsics.

f32 is inline code whose result for a lane does not depend on the number of lanes; half and bfloat compute in f32 and
round once; f64 calls the C library lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable

from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.convert import fp_to_fp
from triton_cpu.llvm.explog import (
    exp2_f32,
    exp10_f32,
    exp_f32,
    expm1_f32,
    log1p_f32,
    log2_f32,
    log10_f32,
    log_f32,
)
from triton_cpu.llvm.libm import per_lane
from triton_cpu.llvm.tanh_erf import erf_f32, tanh_f32
from triton_cpu.llvm.trig import cos_f32, sin_f32
from triton_cpu.llvm.types import Type

Unary = Callable[[Builder, Value], Value]


def by_element(single: Unary, double: Unary) -> Unary:
    """A function for every float element out of those for f32 and f64.

    half and bfloat are computed in f32.
    """

    def apply(b: Builder, x: Value) -> Value:
        if x.type.elem == "double":
            return double(b, x)
        if x.type.elem == "float":
            return single(b, x)
        return fp_to_fp(b, single(b, fp_to_fp(b, x, "float")), x.type.elem)

    return apply


def intrinsic(base: str) -> Unary:
    """LLVM's exactly rounded `base`, one instruction or few for f32 and f64."""

    def apply(b: Builder, x: Value) -> Value:
        return b.intrinsic(base, (x,))

    return by_element(apply, apply)


def from_libm(name: str) -> Unary:
    """The C library's function `name` (f64) for f64."""

    def apply(b: Builder, x: Value) -> Value:
        return per_lane(b, name, (x,))

    return apply


def absf(b: Builder, x: Value) -> Value:
    """|x|: the sign bit cleared, NaN included."""
    ints = Type(f"i{x.type.bits}", x.type.lanes)
    cleared = b.binary("and", b.bitcast(x, ints), b.const(ints, (1 << (x.type.bits - 1)) - 1))
    return b.bitcast(cleared, x.type)


def absi(b: Builder, x: Value) -> Value:
    """|x| of integers; the most negative one stays."""
    return b.select(b.compare("icmp slt", x, b.zero(x.type)), b.binary("sub", b.zero(x.type), x), x)


def _reciprocal_sqrt(b: Builder, x: Value) -> Value:
    return b.binary("fdiv", b.const(x.type, 1.0), b.intrinsic("sqrt", (x,)))


def divide(b: Builder, x: Value, y: Value) -> Value:
    """x / y, exactly rounded."""
    return b.binary("fdiv", x, y)


def fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z with one rounding; for half and bfloat that of f32 and then that to the narrow format."""
    elem = x.type.elem
    if elem not in ("half", "bfloat"):
        return b.fma(x, y, z)
    wide = b.fma(fp_to_fp(b, x, "float"), fp_to_fp(b, y, "float"), fp_to_fp(b, z, "float"))
    return fp_to_fp(b, wide, elem)


def multiply_high(b: Builder, x: Value, y: Value) -> Value:
    """The upper half of the product of unsigned integers."""
    return _upper_half(b, x, y, "zext")


def multiply_high_signed(b: Builder, x: Value, y: Value) -> Value:
    """The upper half of the product of signed integers."""
    return _upper_half(b, x, y, "sext")


def _upper_half(b: Builder, x: Value, y: Value, extend: str) -> Value:
    bits = x.type.bits
    wide = f"i{2 * bits}"
    product = b.binary("mul", b.cast(extend, x, wide), b.cast(extend, y, wide))
    return b.cast("trunc", b.binary("lshr", product, b.const(product.type, bits)), x.type.elem)


sqrt = intrinsic("sqrt")
rsqrt = by_element(_reciprocal_sqrt, _reciprocal_sqrt)
exp = by_element(exp_f32, from_libm("exp"))
exp2 = by_element(exp2_f32, from_libm("exp2"))
exp10 = by_element(exp10_f32, from_libm("exp10"))
expm1 = by_element(expm1_f32, from_libm("expm1"))
log = by_element(log_f32, from_libm("log"))
log2 = by_element(log2_f32, from_libm("log2"))
log10 = by_element(log10_f32, from_libm("log10"))
log1p = by_element(log1p_f32, from_libm("log1p"))
sin = by_element(sin_f32, from_libm("sin"))
cos = by_element(cos_f32, from_libm("cos"))
tanh = by_element(tanh_f32, from_libm("tanh"))
erf = by_element(erf_f32, from_libm("erf"))

# MLIR operation -> its meaning: every one with one operand that triton.language.math emits, and tanh
UNARY: dict[str, Unary] = {
    "math.absf": absf,
    "math.absi": absi,
    "math.ceil": intrinsic("ceil"),
    "math.cos": cos,
    "math.erf": erf,
    "math.exp": exp,
    "math.exp2": exp2,
    "math.floor": intrinsic("floor"),
    "math.log": log,
    "math.log2": log2,
    "math.rsqrt": rsqrt,
    "math.sin": sin,
    "math.sqrt": sqrt,
    "math.tanh": tanh,
    "tt.precise_sqrt": sqrt,
}
