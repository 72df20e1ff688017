"""Reductions. The order of combination depends on the length of the axis alone (and on whether it is the last one)."""

from __future__ import annotations

from collections.abc import Sequence

from triton_cpu.llvm.builder import Index, Value
from triton_cpu.lower.combine import combine
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Place
from triton_cpu.lower.rules import eager
from triton_cpu.ttir.attributes import integer
from triton_cpu.ttir.nodes import Node


@eager("tt.reduce")
def reduce(cx: Context, node: Node) -> None:
    """Combine along an axis: the last axis in chunks and then by halves, another one element by element, in order."""
    axis = integer(node, "axis")
    sizes = node.operands[0].type.sizes
    rest = sizes[:axis] + sizes[axis + 1 :]
    outs = [cx.new_buffer(rest, result.type.elem) for result in node.results] if rest else []
    if axis == len(sizes) - 1:

        def row(at: Place, _: int | None, __: int) -> None:
            totals = _along(cx, node, at, axis)
            for result, total in zip(node.results, totals, strict=True) if not outs else ():
                cx.forms[result] = total
            for out, total in zip(outs, totals, strict=True) if outs else ():
                cx.write(out, at, None, total)

        cx.each(rest, None, row)
    else:

        def column(at: Place, other: int | None, lanes: int) -> None:
            totals = _across(cx, node, at, axis, other, lanes)
            for out, total in zip(outs, totals, strict=True):
                cx.write(out, at, other, total)

        cx.each(rest, len(rest) - 1, column)
    for result, out in zip(node.results, outs, strict=True) if outs else ():
        cx.forms[result] = out


def _along(cx: Context, node: Node, at: Place, axis: int) -> list[Value]:
    """Totals of one row: chunk after chunk, then the lanes by halves."""
    length = node.operands[0].type.sizes[axis]
    lanes = min(length, cx.machine.lanes) if length > 1 else 0

    def chunk(i: Index) -> list[Value]:
        return [cx.evaluate(operand, (*at, i), axis if lanes else None, lanes) for operand in node.operands]

    size = max(lanes, 1)
    totals = cx.fold(size, length, size, chunk(0), lambda i, so_far: combine(cx, node, so_far, chunk(i)))
    while lanes > 1:
        lanes //= 2
        halves = [[cx.b.slice(total, start, lanes) for total in totals] for start in (0, lanes)]
        totals = combine(cx, node, *halves)
    return [cx.b.extract(total, 0) if total.type.lanes else total for total in totals]


def _across(cx: Context, node: Node, at: Place, axis: int, other: int | None, lanes: int) -> Sequence[Value]:
    """Totals of `lanes` neighbouring columns (along dimension `other` of the result)."""
    length = node.operands[0].type.sizes[axis]
    along = None if other is None else other + (other >= axis)

    def chunk(i: Index) -> list[Value]:
        place = (*at[:axis], i, *at[axis:])
        return [cx.evaluate(operand, place, along, lanes) for operand in node.operands]

    return cx.fold(1, length, 1, chunk(0), lambda i, so_far: combine(cx, node, so_far, chunk(i)))
