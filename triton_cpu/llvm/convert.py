"""Conversions among floats, integers and 8-bit floats, each with a single rounding and denormals kept.

f32 to bf16 is integer arithmetic: LLVM would use vcvtneps2bf16 where there is one, which flushes denormals to zero.
half needs F16C on x86, which every processor with AVX2 has.
"""

from __future__ import annotations

from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.fp8 import FORMATS, fp8_to_half_or_single, single_to_fp8
from triton_cpu.llvm.types import Type

_WIDTH = {"half": 16, "bfloat": 16, "float": 32, "double": 64}


def fp_to_fp(b: Builder, v: Value, elem: str, rounding: str = "rtne", source: str | None = None) -> Value:
    """Convert floats to another format.

    Args:
        v: half, bfloat, float or double; or i8 that holds the 8-bit format `source`.
        elem: "half", "bfloat", "float", "double", or an 8-bit format "f8E4M3FN" or "f8E5M2", which gives i8.
        rounding: "rtne" to nearest, ties to even; "rtz" towards zero. NaN stays a quiet NaN. Overflow gives infinity
            under rtne and the largest finite value under rtz; 8-bit formats saturate to it under both, as the
            conversions of NVIDIA GPUs that Triton emits do.

    Raises:
        ValueError: a rounding or format that is not one of these.
    """
    if rounding not in ("rtne", "rtz"):
        raise ValueError(f"rounding {rounding!r} is not supported; use 'rtne' or 'rtz'")
    for name in (elem, source or v.type.elem):
        if name not in _WIDTH and name not in FORMATS:
            raise ValueError(f"{name!r} is no float format of this backend; use one of {[*_WIDTH, *FORMATS]}")
    if source in FORMATS:
        if source == elem:
            return v
        v = fp8_to_half_or_single(b, v, source)
    if elem in FORMATS:
        return single_to_fp8(b, _to_single_for_rounding(b, v), elem, rounding)
    if v.type.elem == elem:
        return v
    if _WIDTH[v.type.elem] < _WIDTH[elem]:
        return _widen(b, v, elem)
    if elem == "float":
        near = b.cast("fptrunc", v, "float")
        return near if rounding == "rtne" else _towards_zero(b, v, near)
    single = _to_single_for_rounding(b, v)
    if elem == "bfloat":
        return _single_to_bfloat(b, single, rounding)
    near = b.cast("fptrunc", single, "half")
    return near if rounding == "rtne" else _towards_zero(b, single, near)


def fp_to_int(b: Builder, v: Value, elem: str, signed: bool) -> Value:
    """Truncate floats towards zero to integers.

    Values out of range, which the language leaves undefined, give the nearest integer of the type, and NaN gives 0;
    so does CUDA for 32 bits.

    Args:
        v: half, bfloat, float or double.
        elem: integer element, e.g. "i32".
    """
    if v.type.elem in ("half", "bfloat"):
        v = _widen(b, v, "float")
    result = v.type.of(elem)
    name = f"llvm.fpto{'s' if signed else 'u'}i.sat.{result.suffix}.{v.type.suffix}"
    return b.call(name, result, (v,))


def int_to_fp(b: Builder, v: Value, elem: str, signed: bool) -> Value:
    """Convert integers to the nearest floats, ties to even, with a single rounding.

    Args:
        v: integers; i1 counts as 0 and 1 (or -1 when signed).
        elem: "half", "bfloat", "float" or "double".
    """
    op = "sitofp" if signed else "uitofp"
    bits = v.type.bits
    if elem in ("float", "double"):
        return b.cast(op, v, elem)
    if bits <= 16:
        return fp_to_fp(b, b.cast(op, v, "float"), elem)
    if bits == 64:
        v = _fit_double(b, v, signed)
    return fp_to_fp(b, b.cast(op, v, "double"), elem)


def _widen(b: Builder, v: Value, elem: str) -> Value:
    """An exact conversion to more bits."""
    if v.type.elem == "bfloat":
        bits = b.cast("zext", b.bitcast(v, v.type.of("i16")), "i32")
        v = b.bitcast(b.binary("shl", bits, b.const(bits.type, 16)), v.type.of("float"))
    return b.cast("fpext", v, elem)


def _to_single_for_rounding(b: Builder, v: Value) -> Value:
    """f32 whose rounding to a narrower format equals that of `v`: exact, or from f64 rounded to odd."""
    if v.type.elem != "double":
        return _widen(b, v, "float")
    near = b.cast("fptrunc", v, "float")
    inexact = b.compare("fcmp one", b.cast("fpext", near, "double"), v)
    bits = b.bitcast(_towards_zero(b, v, near), v.type.of("i32"))
    odd = b.binary("or", bits, b.cast("zext", inexact, "i32"))
    return b.bitcast(odd, v.type.of("float"))


def _towards_zero(b: Builder, exact: Value, near: Value) -> Value:
    """`near`, the rounded `exact`, moved one step towards zero where the rounding went away from it."""
    back = b.intrinsic("fabs", (b.cast("fpext", near, exact.type.elem),))
    away = b.compare("fcmp ogt", back, b.intrinsic("fabs", (exact,)))
    ints = Type(f"i{near.type.bits}", near.type.lanes)
    bits = b.binary("sub", b.bitcast(near, ints), b.cast("zext", away, ints.elem))
    return b.bitcast(bits, near.type)


def _single_to_bfloat(b: Builder, v: Value, rounding: str) -> Value:
    bits = b.bitcast(v, v.type.of("i32"))
    high = b.binary("lshr", bits, b.const(bits.type, 16))
    quiet = b.binary("or", high, b.const(bits.type, 0x40))
    if rounding == "rtne":
        up = b.binary("add", b.binary("and", high, b.const(bits.type, 1)), b.const(bits.type, 0x7FFF))
        high = b.binary("lshr", b.binary("add", bits, up), b.const(bits.type, 16))
    result = b.select(b.compare("fcmp uno", v, v), quiet, high)
    return b.bitcast(b.cast("trunc", result, "i16"), v.type.of("bfloat"))


def _fit_double(b: Builder, v: Value, signed: bool) -> Value:
    """i64 that f64 holds exactly and that rounds to fewer bits as `v` does: 53 leading bits, the last one sticky."""
    dropped = b.binary("and", v, b.const(v.type, 0x7FF))
    sticky = b.cast("zext", b.compare("icmp ne", dropped, b.const(v.type, 0)), "i64")
    shift = b.const(v.type, 11)
    leading = b.binary("or", b.binary("ashr" if signed else "lshr", v, shift), sticky)
    # |v| < 2^53 is exact already
    moved = b.binary("add", v, b.const(v.type, 2**53)) if signed else v
    small = b.compare("icmp ult", moved, b.const(v.type, 2**54 if signed else 2**53))
    return b.select(small, v, b.binary("shl", leading, shift))
