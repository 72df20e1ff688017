"""Arithmetic and comparison of integers and floats.

16-bit floats are computed in f32 and rounded once, which is the correctly rounded result of one operation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from triton_cpu.llvm import vecmath
from triton_cpu.llvm.builder import Value
from triton_cpu.llvm.convert import fp_to_fp
from triton_cpu.llvm.libm import per_lane
from triton_cpu.lower.context import Context
from triton_cpu.lower.rules import elementwise
from triton_cpu.ttir.attributes import integer
from triton_cpu.ttir.nodes import Node

_INTEGER = {
    "arith.addi": "add", "arith.subi": "sub", "arith.muli": "mul", "arith.andi": "and", "arith.ori": "or",
    "arith.xori": "xor", "arith.shli": "shl", "arith.shrsi": "ashr", "arith.shrui": "lshr",
}  # fmt: skip
_DIVISION = {"arith.divsi": "sdiv", "arith.divui": "udiv", "arith.remsi": "srem", "arith.remui": "urem"}
_FLOAT = {
    "arith.addf": "fadd", "arith.subf": "fsub", "arith.mulf": "fmul", "arith.divf": "fdiv", "tt.precise_divf": "fdiv",
}  # fmt: skip
_INTEGER_CHOICE = {"arith.maxsi": "smax", "arith.minsi": "smin", "arith.maxui": "umax", "arith.minui": "umin"}
_FLOAT_CHOICE = {
    "arith.maxnumf": "maxnum", "arith.minnumf": "minnum", "arith.maximumf": "maximum", "arith.minimumf": "minimum",
}  # fmt: skip
# MLIR's numbering of predicates
_ICMP = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FCMP = ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
         "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true")  # fmt: skip
_NARROW = ("half", "bfloat")
_CONSTANT = re.compile(r"^(?:splat \(i\d+ )?(-?\d+)\)?$")


@elementwise(*_INTEGER)
def integer_operation(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """Two's complement; overflow wraps."""
    return cx.b.binary(_INTEGER[node.name], args[0], args[1])


@elementwise(*_DIVISION)
def division(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """Truncated towards zero. Lanes that would trap, x / 0 and the most negative number / -1, divide by 1."""
    b, (a, d) = cx.b, args
    constant = _CONSTANT.search(d.text)
    if constant is None or int(constant[1]) <= 0:
        bad = b.compare("icmp eq", d, b.zero(d.type))
        if node.name in ("arith.divsi", "arith.remsi"):
            least = b.compare("icmp eq", a, b.const(a.type, -(1 << (a.type.bits - 1))))
            least = b.binary("and", least, b.compare("icmp eq", d, b.const(d.type, -1)))
            bad = b.binary("or", bad, least)
        d = b.select(bad, b.const(d.type, 1), d)
    return b.binary(_DIVISION[node.name], a, d)


@elementwise(*_FLOAT)
def float_operation(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """IEEE arithmetic, rounded to nearest even."""
    flags = "contract" if cx.machine.fuse else ""
    return in_single(cx, args, lambda wide: cx.b.binary(_FLOAT[node.name], wide[0], wide[1], flags))


@elementwise("arith.remf")
def float_remainder(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """C's fmod."""
    return in_single(cx, args, lambda wide: per_lane(cx.b, "fmod" if wide[0].type.elem == "double" else "fmodf", wide))


@elementwise(*_INTEGER_CHOICE)
def integer_choice(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """The larger or smaller of two integers."""
    return cx.b.intrinsic(_INTEGER_CHOICE[node.name], args)


@elementwise(*_FLOAT_CHOICE)
def float_choice(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """The larger or smaller of two floats: maxnumf passes over a NaN, maximumf gives it back."""
    return in_single(cx, args, lambda wide: cx.b.intrinsic(_FLOAT_CHOICE[node.name], wide))


@elementwise("tt.clampf")
def clamp(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """min(max(x, low), high); with propagateNan (bit 16 of the attribute) a NaN stays."""
    kind = "imum" if integer(node, "propagateNan") else "num"

    def limit(wide: Sequence[Value]) -> Value:
        raised = cx.b.intrinsic("max" + kind, (wide[0], wide[1]))
        return cx.b.intrinsic("min" + kind, (raised, wide[2]))

    return in_single(cx, args, limit)


@elementwise("arith.cmpi")
def compare_integers(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """Comparison by predicate."""
    return cx.b.compare("icmp " + _ICMP[integer(node, "predicate")], args[0], args[1])


@elementwise("arith.cmpf")
def compare_floats(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """Comparison by predicate; an ordered one is false for NaN."""
    wide = [fp_to_fp(cx.b, arg, "float") if arg.type.elem in _NARROW else arg for arg in args]
    return cx.b.compare("fcmp " + _FCMP[integer(node, "predicate")], wide[0], wide[1])


@elementwise("arith.select")
def select(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """The second operand where the first is true, else the third."""
    return cx.b.select(args[0], args[1], args[2])


@elementwise("arith.negf")
def negate(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """The sign bit flipped."""
    x = args[0]
    if x.type.elem != "bfloat":
        return cx.b.neg(x)
    return cx.b.binary("xor", x, cx.b.const(x.type.of("i16"), 1 << 15))


@elementwise("tt.mulhiui")
def multiply_high(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """The upper half of the unsigned product."""
    return vecmath.multiply_high(cx.b, args[0], args[1])


def in_single(cx: Context, args: Sequence[Value], operation: Callable[[Sequence[Value]], Value]) -> Value:
    """Apply an operation of f32 or f64; 16-bit floats are widened before and rounded after."""
    elem = args[0].type.elem
    if elem not in _NARROW:
        return operation(args)
    return fp_to_fp(cx.b, operation([fp_to_fp(cx.b, arg, "float") for arg in args]), elem)
