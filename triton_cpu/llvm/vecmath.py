"""Element-wise mathematics on scalars and vectors of any number of lanes, as LLVM IR without target intrinsics.

f32 is inline code whose result for a lane does not depend on the number of lanes; half and bfloat compute in f32 and
round once; f64 calls the C library lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable

from triton_cpu.llvm import explog
from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.convert import fp_to_fp
from triton_cpu.llvm.libm import per_lane
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


sqrt = intrinsic("sqrt")
rsqrt = by_element(_reciprocal_sqrt, _reciprocal_sqrt)
exp = by_element(explog.exp_f32, from_libm("exp"))
exp2 = by_element(explog.exp2_f32, from_libm("exp2"))
log = by_element(explog.log_f32, from_libm("log"))
log2 = by_element(explog.log2_f32, from_libm("log2"))

# MLIR operation -> its meaning; every operation with one operand of the math dialect that triton.language emits
UNARY: dict[str, Unary] = {
    "math.absf": absf,
    "math.absi": absi,
    "math.ceil": intrinsic("ceil"),
    "math.exp": exp,
    "math.exp2": exp2,
    "math.floor": intrinsic("floor"),
    "math.log": log,
    "math.log2": log2,
    "math.rsqrt": rsqrt,
    "math.sqrt": sqrt,
    "tt.precise_sqrt": sqrt,
}
