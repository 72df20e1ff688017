"""Conversions among types."""

from __future__ import annotations

from collections.abc import Sequence

from triton_cpu.errors import UnsupportedOpError
from triton_cpu.llvm.builder import Index, Value
from triton_cpu.llvm.convert import fp_to_fp, fp_to_int, int_to_fp
from triton_cpu.llvm.types import SIZES
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Affine, Uniform
from triton_cpu.lower.rules import affine, elementwise
from triton_cpu.ttir.attributes import integer
from triton_cpu.ttir.nodes import Node, Var

_INTEGER = {"arith.extsi": "sext", "arith.extui": "zext", "arith.trunci": "trunc"}
_POINTER = {"tt.ptr_to_int": "ptrtoint", "tt.int_to_ptr": "inttoptr"}
_ROUNDINGS = {0: "rtz", 1: "rtne"}  # Triton's numbering
_EIGHT_BITS = ("f8E4M3FN", "f8E5M2")
_WIDEST_STEP = 1 << 16  # offsets of a chunk with at most this stride do not wrap around 2^31 in a right kernel


@elementwise(*_INTEGER)
def resize_integer(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """Sign or zero extension, or truncation."""
    return cx.b.cast(_INTEGER[node.name], args[0], node.result.type.elem)


@elementwise("arith.index_cast")
def index_cast(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """Between the index type and integers, signed."""
    elem = node.result.type.elem
    return cx.b.cast("sext" if SIZES[args[0].type.elem] < SIZES[elem] else "trunc", args[0], elem)


@affine("arith.extsi", "arith.trunci", "arith.index_cast")
def resize_affine(cx: Context, node: Node, args: Sequence[Uniform | Affine], lanes: int) -> Affine | None:
    """The same steps from a converted base, unless what is widened could wrap inside a chunk."""
    lane = args[0]
    if not isinstance(lane, Affine) or (node.name != "arith.trunci" and may_wrap(node.operands[0], lane.stride)):
        return None
    rule = index_cast if node.name == "arith.index_cast" else resize_integer
    return Affine(rule(cx, node, [lane.base]), lane.stride)


def may_wrap(var: Var, stride: Index) -> bool:
    """Whether affine integers may wrap around inside a chunk: those of up to 16 bits, and of 32 in wide steps."""
    return SIZES[var.type.elem] < 4 or not isinstance(stride, int) or abs(stride) > _WIDEST_STEP


@elementwise("arith.extf", "arith.truncf", "tt.fp_to_fp")
def resize_float(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """To another float format, to nearest even unless the operation says otherwise."""
    rounding = _ROUNDINGS.get(integer(node, "rounding"), "") if "rounding" in node.attributes else "rtne"
    if not rounding:
        raise UnsupportedOpError(f"{node.name} with rounding {node.attributes['rounding']}", node.location)
    given, wanted = node.operands[0].type, node.result.type
    elem = wanted.name if wanted.name in _EIGHT_BITS else wanted.elem
    return fp_to_fp(cx.b, args[0], elem, rounding, given.name if given.name in _EIGHT_BITS else None)


@elementwise("arith.sitofp", "arith.uitofp")
def integer_to_float(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """To the nearest float."""
    return int_to_fp(cx.b, args[0], node.result.type.elem, node.name == "arith.sitofp")


@elementwise("arith.fptosi", "arith.fptoui")
def float_to_integer(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """Truncated towards zero; out of range gives the nearest integer, NaN gives 0."""
    return fp_to_int(cx.b, args[0], node.result.type.elem, node.name == "arith.fptosi")


@elementwise("arith.bitcast", "tt.bitcast")
def reinterpret(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """The same bits as another type."""
    return cx.b.bitcast(args[0], args[0].type.of(node.result.type.elem))


@elementwise(*_POINTER)
def pointer_cast(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """Between pointers and 64-bit addresses."""
    return cx.b.cast(_POINTER[node.name], args[0], node.result.type.elem)
