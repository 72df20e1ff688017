"""Operations that move elements without changing them, and constants."""

from __future__ import annotations

from triton_cpu.errors import UnsupportedOpError
from triton_cpu.llvm.builder import Index
from triton_cpu.llvm.convert import fp_to_fp
from triton_cpu.llvm.fp8 import FORMATS
from triton_cpu.llvm.types import F32, Type
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Affine, Buffer, Lane, Place, Uniform, Vector
from triton_cpu.lower.rules import eager, lazy
from triton_cpu.ttir.attributes import integer, integers, number
from triton_cpu.ttir.nodes import Node


@lazy("arith.constant")
def constant(cx: Context, node: Node, at: Place, axis: int | None, lanes: int) -> Lane:
    """A scalar, or a tensor of equal elements."""
    value = number(node)
    if value is None:
        raise UnsupportedOpError(f"arith.constant {node.attributes['value']}", node.location)
    kind = node.result.type
    if kind.name in FORMATS and isinstance(value, float):
        return Uniform(fp_to_fp(cx.b, cx.b.const(F32, value), kind.name))
    return Uniform(cx.b.const(Type(kind.elem), value))


@lazy("ub.poison")
def poison(cx: Context, node: Node, at: Place, axis: int | None, lanes: int) -> Lane:
    """Any value."""
    return Uniform(cx.b.zero(Type(node.result.type.elem)))


@lazy("tt.splat")
def splat(cx: Context, node: Node, at: Place, axis: int | None, lanes: int) -> Lane:
    """A scalar as a tensor."""
    return Uniform(cx.scalar(node.operands[0]))


@lazy("tt.make_range")
def make_range(cx: Context, node: Node, at: Place, axis: int | None, lanes: int) -> Lane:
    """start, start + 1, ... as i32."""
    first = cx.b.index(cx.b.add(at[0], integer(node, "start")))
    base = cx.b.const(Type("i32"), int(first.text)) if isinstance(at[0], int) else cx.b.cast("trunc", first, "i32")
    return Uniform(base) if axis is None else Affine(base, 1)


@lazy("tt.expand_dims")
def expand_dims(cx: Context, node: Node, at: Place, axis: int | None, lanes: int) -> Lane:
    """A new dimension of size 1."""
    new = integer(node, "axis")
    inner = at[:new] + at[new + 1 :]
    if axis is None or axis == new:
        return cx.chunk(node.operands[0], inner, None, 0)
    return cx.chunk(node.operands[0], inner, axis - (axis > new), lanes)


@lazy("tt.broadcast")
def broadcast(cx: Context, node: Node, at: Place, axis: int | None, lanes: int) -> Lane:
    """Dimensions of size 1 repeated."""
    source, sizes = node.operands[0].type.sizes, node.result.type.sizes
    repeated = [have == 1 and want != 1 for have, want in zip(source, sizes, strict=True)]
    inner = tuple(0 if again else i for again, i in zip(repeated, at, strict=True))
    if axis is None or repeated[axis]:
        return cx.chunk(node.operands[0], inner, None, 0)
    return cx.chunk(node.operands[0], inner, axis, lanes)


@lazy("tt.trans")
def transpose(cx: Context, node: Node, at: Place, axis: int | None, lanes: int) -> Lane:
    """Dimensions permuted: dimension d of the result is dimension order[d] of the operand."""
    order = integers(node, "order")
    inner: list[Index] = [0] * len(order)
    for dim, source in enumerate(order):
        inner[source] = at[dim]
    return cx.chunk(node.operands[0], tuple(inner), None if axis is None else order[axis], lanes)


@lazy("triton_cpu.repeat")
def repeat(cx: Context, node: Node, at: Place, axis: int | None, lanes: int) -> Lane:
    """Each index of a dimension several times in a row; sizes are powers of two, and chunks aligned to their length."""
    dim, times = integer(node, "axis"), integer(node, "times")
    inner = (*at[:dim], cx.b.shift_right(at[dim], times.bit_length() - 1), *at[dim + 1 :])
    if axis != dim:
        return cx.chunk(node.operands[0], inner, axis, lanes)
    if lanes <= times:
        return cx.chunk(node.operands[0], inner, None, 0)
    few = cx.evaluate(node.operands[0], inner, axis, lanes // times)
    return Vector(cx.b.shuffle(few, None, [lane // times for lane in range(lanes)]))


@eager("tt.unsplat")
def unsplat(cx: Context, node: Node) -> None:
    """The element of a tensor that has one."""
    cx.forms[node.result] = cx.evaluate(node.operands[0], (0,) * len(node.operands[0].type.sizes), None, 0)


@eager("tt.reshape")
def reshape(cx: Context, node: Node) -> None:
    """The same elements in row-major order under another shape."""
    source = cx.materialise(node.operands[0])
    cx.forms[node.result] = Buffer(source.pointer, node.result.type.sizes, source.elem)


@eager("tt.join")
def join(cx: Context, node: Node) -> None:
    """Two tensors side by side along a new last dimension."""
    cx.forms[node.result] = out = cx.new_buffer(node.result.type.sizes, node.result.type.elem)

    def body(at: Place, axis: int | None, lanes: int) -> None:
        for which, operand in enumerate(node.operands):
            cx.write(out, (*at, which), axis, cx.evaluate(operand, at, axis, lanes))

    cx.each(node.operands[0].type.sizes, _last(node.operands[0].type.sizes), body)


@eager("tt.split")
def split(cx: Context, node: Node) -> None:
    """The two halves along the last dimension, which has size 2."""
    source = cx.materialise(node.operands[0])
    for which, result in enumerate(node.results):
        cx.forms[result] = out = cx.new_buffer(result.type.sizes, result.type.elem)

        def body(at: Place, axis: int | None, lanes: int, which: int = which, out: Buffer = out) -> None:
            lane = cx.read(source, (*at, which), axis, lanes)
            cx.write(out, at, axis, cx.vector(node.operands[0], lane, lanes))

        cx.each(result.type.sizes, _last(result.type.sizes), body)


@eager("tt.cat")
def concatenate(cx: Context, node: Node) -> None:
    """The elements of one tensor after those of another."""
    cx.forms[node.result] = out = cx.new_buffer(node.result.type.sizes, node.result.type.elem)
    size = node.operands[0].type.sizes[0]
    for which, operand in enumerate(node.operands):

        def body(at: Place, axis: int | None, lanes: int, start: int = which * size) -> None:
            value = cx.evaluate(node.operands[start // size], at, axis, lanes)
            cx.write(out, (cx.b.add(at[0], start), *at[1:]), axis, value)

        cx.each(operand.type.sizes, _last(operand.type.sizes), body)


def _last(sizes: tuple[int, ...]) -> int | None:
    return len(sizes) - 1 if sizes else None
