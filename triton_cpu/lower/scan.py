"""Scans: running combinations along an axis."""

from __future__ import annotations

from triton_cpu.llvm.builder import Index, Value
from triton_cpu.lower.combine import combine
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Place
from triton_cpu.lower.rules import eager
from triton_cpu.ttir.attributes import flag, integer
from triton_cpu.ttir.nodes import Node


@eager("tt.scan")
def scan(cx: Context, node: Node) -> None:
    """Each element combined with all before it along an axis (after it, if reversed), in order."""
    axis, backwards = integer(node, "axis"), flag(node, "reverse")
    sizes = node.operands[0].type.sizes
    rest = sizes[:axis] + sizes[axis + 1 :]
    outs = [cx.new_buffer(sizes, result.type.elem) for result in node.results]

    def column(at: Place, other: int | None, lanes: int) -> None:
        along = None if other is None else other + (other >= axis)

        def place(i: Index) -> Place:
            where = cx.b.add(sizes[axis] - 1, cx.b.mul(i, -1)) if backwards else i
            return (*at[:axis], where, *at[axis:])

        def chunk(i: Index) -> list[Value]:
            return [cx.evaluate(operand, place(i), along, lanes) for operand in node.operands]

        def keep(i: Index, values: list[Value]) -> list[Value]:
            for out, value in zip(outs, values, strict=True):
                cx.write(out, place(i), along, value)
            return values

        first = keep(0, chunk(0))
        cx.fold(1, sizes[axis], 1, first, lambda i, so_far: keep(i, combine(cx, node, so_far, chunk(i))))

    cx.each(rest, len(rest) - 1 if rest else None, column)
    for result, out in zip(node.results, outs, strict=True):
        cx.forms[result] = out
