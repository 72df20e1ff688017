"""The functions of `triton.language.extra.libdevice` by the symbol that tt.extern_elementwise names.

What vecmath has is inline vector code; the rest calls the C library lane by lane. The fast variants of CUDA are the
accurate functions here, and the functions with a rounding mode exist for the nearest one.
"""

from __future__ import annotations

from collections.abc import Callable

from triton_cpu.llvm import inverse_trig, vecmath
from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.libm import per_lane
from triton_cpu.llvm.types import Type

Elementwise = Callable[..., Value]  # (builder, operands...) -> result

# libdevice name -> our function, for f32 (name + "f") and f64
_VECTOR: dict[str, vecmath.Unary] = {
    "ceil": vecmath.intrinsic("ceil"),
    "cos": vecmath.cos,
    "erf": vecmath.erf,
    "exp": vecmath.exp,
    "exp10": vecmath.exp10,
    "exp2": vecmath.exp2,
    "expm1": vecmath.expm1,
    "fabs": vecmath.absf,
    "floor": vecmath.intrinsic("floor"),
    "log": vecmath.log,
    "log10": vecmath.log10,
    "log1p": vecmath.log1p,
    "log2": vecmath.log2,
    "nearbyint": vecmath.intrinsic("nearbyint"),
    "rint": vecmath.intrinsic("rint"),
    "round": vecmath.intrinsic("round"),
    "rsqrt": vecmath.rsqrt,
    "sin": vecmath.sin,
    "sqrt": vecmath.sqrt,
    "tanh": vecmath.tanh,
    "trunc": vecmath.intrinsic("trunc"),
}
# libdevice names that the C library has under the same name, for f32 (name + "f") and f64
_C_LIBRARY = (
    "acosh", "asinh", "atanh", "cbrt", "cosh", "erfc", "fdim", "fmod", "hypot", "lgamma", "logb", "nextafter", "pow",
    "remainder", "sinh", "tan", "tgamma",
)  # fmt: skip
_C_LIBRARY_F64 = ("acos", "asin", "atan", "atan2")  # of which f32 is inline code


def _library(name: str) -> Elementwise:
    return lambda b, *args: per_lane(b, name, args)


def _arithmetic(op: str) -> Elementwise:
    return lambda b, x, y: b.binary(op, x, y)


def _copysign(b: Builder, x: Value, y: Value) -> Value:
    return b.intrinsic("copysign", (x, y))


def _reciprocal(b: Builder, x: Value) -> Value:
    return b.binary("fdiv", b.const(x.type, 1.0), x)


def _saturate(b: Builder, x: Value) -> Value:
    """x limited to [0, 1]; NaN gives 0."""
    zero, one = b.const(x.type, 0.0), b.const(x.type, 1.0)
    positive = b.select(b.compare("fcmp ogt", x, zero), x, zero)
    return b.select(b.compare("fcmp olt", positive, one), positive, one)


def _bits(b: Builder, x: Value) -> Value:
    return b.bitcast(x, Type(f"i{x.type.bits}", x.type.lanes))


def _truth(b: Builder, holds: Value) -> Value:
    return b.cast("zext", holds, "i32")


def _is_nan(b: Builder, x: Value) -> Value:
    return _truth(b, b.compare("fcmp uno", x, x))


def _is_infinite(b: Builder, x: Value) -> Value:
    return _truth(b, b.compare("fcmp oeq", vecmath.absf(b, x), b.const(x.type, float("inf"))))


def _is_finite(b: Builder, x: Value) -> Value:
    return _truth(b, b.compare("fcmp olt", vecmath.absf(b, x), b.const(x.type, float("inf"))))


def _sign_bit(b: Builder, x: Value) -> Value:
    bits = _bits(b, x)
    return _truth(b, b.compare("icmp slt", bits, b.zero(bits.type)))


def _count(base: str) -> Elementwise:
    """Bits counted by an intrinsic; the result is i32 for i64 as well."""

    def apply(b: Builder, x: Value) -> Value:
        extra = (b.const(Type("i1"), False),) if base == "ctlz" else ()  # clz(0) is the width
        counted = b.intrinsic(base, (x, *extra))
        return b.cast("trunc", counted, "i32")

    return apply


def _reversed(b: Builder, x: Value) -> Value:
    return b.intrinsic("bitreverse", (x,))


def _both(names: dict[str, Elementwise]) -> dict[str, Elementwise]:
    """Symbols for f32 and f64 of functions that take either."""
    return {f"__nv_{name}{suffix}": function for name, function in names.items() for suffix in ("f", "")}


# symbol of tt.extern_elementwise -> function(builder, operands...); half and bfloat operands do not occur there
EXTERN: dict[str, Elementwise] = {
    **_both(dict(_VECTOR)),
    **_both({"copysign": _copysign, "fma": vecmath.fma}),
    **{f"__nv_{name}{suffix}": _library(name + suffix) for name in _C_LIBRARY for suffix in ("f", "")},
    **{f"__nv_{name}": _library(name) for name in _C_LIBRARY_F64},
    "__nv_acosf": inverse_trig.acos_f32,
    "__nv_asinf": inverse_trig.asin_f32,
    "__nv_atanf": inverse_trig.atan_f32,
    "__nv_atan2f": inverse_trig.atan2_f32,
    **{f"__nv_fast_{name}f": _VECTOR[name] for name in ("cos", "exp", "exp10", "log", "log10", "log2", "sin")},
    "__nv_fast_tanf": _library("tanf"),
    "__nv_fast_powf": _library("powf"),
    "__nv_fast_fdividef": vecmath.divide,
    **{f"__nv_{letter}{op}_rn": _arithmetic(f"f{op}") for letter in "fd" for op in ("add", "sub", "mul", "div")},
    **{f"__nv_{letter}sqrt_rn": vecmath.sqrt for letter in "fd"},
    **{f"__nv_{letter}rcp_rn": _reciprocal for letter in "fd"},
    "__nv_frsqrt_rn": vecmath.rsqrt,
    "__nv_fmaf_rn": vecmath.fma,
    "__nv_fma_rn": vecmath.fma,
    "__nv_saturatef": _saturate,
    **{f"__nv_{name}": _is_nan for name in ("isnanf", "isnand")},
    **{f"__nv_{name}": _is_infinite for name in ("isinff", "isinfd")},
    **{f"__nv_{name}": _is_finite for name in ("finitef", "isfinited")},
    **{f"__nv_{name}": _sign_bit for name in ("signbitf", "signbitd")},
    **{f"__nv_{name}": _bits for name in ("float_as_int", "float_as_uint", "double_as_longlong")},
    **{f"__nv_{name}": vecmath.absi for name in ("abs", "llabs")},
    **{f"__nv_{name}": _count("ctlz") for name in ("clz", "clzll")},
    **{f"__nv_{name}": _count("ctpop") for name in ("popc", "popcll")},
    **{f"__nv_{name}": _reversed for name in ("brev", "brevll")},
    **{f"__nv_{name}": vecmath.multiply_high_signed for name in ("mulhi", "mul64hi")},
    **{f"__nv_{name}": vecmath.multiply_high for name in ("umulhi", "umul64hi")},
}
