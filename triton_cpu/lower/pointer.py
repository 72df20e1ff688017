"""Pointer arithmetic, and the index arithmetic that keeps a chunk affine."""

from __future__ import annotations

from collections.abc import Sequence

from triton_cpu.analysis.axis import REMAINDERS, constant
from triton_cpu.llvm.builder import Index, Value
from triton_cpu.llvm.types import stored
from triton_cpu.lower import access
from triton_cpu.lower.arith import division
from triton_cpu.lower.cast import may_wrap
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Affine, Guess, Uniform
from triton_cpu.lower.rules import affine, elementwise
from triton_cpu.ttir.nodes import Node


@elementwise("tt.addptr")
def add_pointer(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """Pointers moved by signed offsets in elements."""
    pointer, offset = args
    wide = cx.b.cast("sext", offset, "i64")
    if offset.type.lanes:
        return access.pointers(cx.b, pointer, wide, node.result.type.pointee)
    return cx.b.gep(pointer, cx.b.to_index(offset), stored(node.result.type.pointee))


@affine("tt.addptr")
def add_pointer_affine(cx: Context, node: Node, args: Sequence[Uniform | Affine], lanes: int) -> Affine | None:
    """A base moved by the offset's base."""
    pointer, offset = args
    stride = _stride(offset)
    if node.operands[1].type.elem != "i64" and may_wrap(node.operands[1], stride):
        return None
    base = cx.b.to_index(_base(offset))
    moved = cx.b.gep(_base(pointer), base, stored(node.result.type.pointee))
    return Affine(moved, cx.b.add(_stride(pointer), stride))


@affine("arith.addi")
def add_affine(cx: Context, node: Node, args: Sequence[Uniform | Affine], lanes: int) -> Affine | None:
    """Bases and strides added."""
    x, y = args
    return Affine(cx.b.binary("add", _base(x), _base(y)), cx.b.add(_stride(x), _stride(y)))


@affine("arith.subi")
def subtract_affine(cx: Context, node: Node, args: Sequence[Uniform | Affine], lanes: int) -> Affine | None:
    """Bases and strides subtracted."""
    x, y = args
    stride = cx.b.add(_stride(x), cx.b.mul(_stride(y), -1))
    return Affine(cx.b.binary("sub", _base(x), _base(y)), stride)


@affine("arith.muli")
def multiply_affine(cx: Context, node: Node, args: Sequence[Uniform | Affine], lanes: int) -> Affine | None:
    """Base and stride multiplied by a uniform factor."""
    for lane, factor in (args, args[::-1]):
        if isinstance(lane, Affine) and isinstance(factor, Uniform):
            stride = cx.b.mul(lane.stride, cx.b.to_index(factor.value))
            return Affine(cx.b.binary("mul", lane.base, factor.value), stride)
    return None


@affine(*REMAINDERS)
def remainder_affine(cx: Context, node: Node, args: Sequence[Uniform | Affine], lanes: int) -> Guess | None:
    """Neighbours modulo one number stay neighbours unless they wrap around in this chunk, which is seen at run time."""
    x, divisor = args
    known = constant(node.operands[1])
    if not isinstance(x, Affine) or x.stride != 1 or not isinstance(divisor, Uniform) or (known or lanes) < lanes:
        return None
    end = cx.b.binary("add", x.base, cx.b.const(x.base.type, lanes - 1))
    first, last = (division(cx, node, [value, divisor.value]) for value in (x.base, end))

    def exact() -> Value:
        return division(cx, node, [cx.vector(node.result, x, lanes), cx.b.splat(divisor.value, lanes)])

    return cx.neighbours(first, last, lanes, exact)


def _base(lane: Uniform | Affine) -> Value:
    if isinstance(lane, Affine):
        return lane.base
    return lane.value


def _stride(lane: Uniform | Affine) -> Index:
    return lane.stride if isinstance(lane, Affine) else 0
