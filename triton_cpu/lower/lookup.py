"""Operations whose elements say which other element they mean: gather and histogram."""

from __future__ import annotations

from triton_cpu.analysis.axis import vector_axis
from triton_cpu.llvm.builder import Value
from triton_cpu.llvm.types import I32, SIZES, Type, stored
from triton_cpu.lower import access
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Place
from triton_cpu.lower.rules import eager
from triton_cpu.ttir.attributes import integer
from triton_cpu.ttir.nodes import Node


@eager("tt.gather")
def gather(cx: Context, node: Node) -> None:
    """out[.., i, ..] = source[.., index[.., i, ..], ..]; indices outside of the source have no meaning."""
    b, axis, index = cx.b, integer(node, "axis"), node.operands[1]
    source = cx.materialise(node.operands[0])
    strides = source.strides()
    cx.forms[node.result] = out = cx.new_buffer(node.result.type.sizes, node.result.type.elem)

    def body(at: Place, along: int | None, lanes: int) -> None:
        which = b.cast("zext", cx.evaluate(index, at, along, lanes), "i64")
        places = b.binary("mul", which, b.const(which.type, strides[axis]))
        if along is not None and along != axis:
            places = b.binary("add", places, cx.multiples(strides[along], lanes))
        base = cx.place_of(source, (*at[:axis], 0, *at[axis + 1 :]))
        if not lanes:
            value = access.load(b, source.elem, 0, b.gep(base, places, stored(source.elem)))
        else:
            every, nothing = b.const(Type("i1", lanes), True), b.poison(Type(stored(source.elem), lanes))
            value = access.gather(b, source.elem, access.pointers(b, base, places, source.elem), every, nothing)
        cx.write(out, at, along, value)

    cx.each(out.shape, vector_axis(cx.forms, index), body)


@eager("tt.histogram")
def histogram(cx: Context, node: Node) -> None:
    """How many elements (of those with mask) have each value 0, 1, ...; other values are not counted."""
    b, bins = cx.b, node.result.type.sizes[0]
    mask = node.operands[1] if len(node.operands) > 1 else None
    values = cx.materialise(node.operands[0])
    cx.forms[node.result] = out = cx.new_buffer((bins,), node.result.type.elem)
    b.memset(out.pointer, bins * SIZES[out.elem])

    def body(at: Place, _: int | None, __: int) -> None:
        value = access.load(b, values.elem, 0, cx.place_of(values, at))
        counted: Value = b.compare("icmp ult", value, b.const(value.type, bins))
        if mask is not None:
            counted = b.binary("and", counted, cx.evaluate(mask, at, None, 0))
        with b.guarded(counted):
            place = b.gep(out.pointer, b.value(Type("i64"), f"zext {value.type} {value.text} to i64"), out.elem)
            b.store(b.binary("add", b.load(I32, place), b.const(I32, 1)), place)

    cx.each(values.shape, None, body)
