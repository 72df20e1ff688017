"""tl.map_elementwise: a function of scalars, which may branch and loop, run on each element."""

from __future__ import annotations

from triton_cpu.errors import UnsupportedOpError
from triton_cpu.lower.branch import run_blocks
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Buffer, Place
from triton_cpu.lower.rules import eager
from triton_cpu.ttir.attributes import integer
from triton_cpu.ttir.nodes import Node


@eager("tt.map_elementwise")
def map_elementwise(cx: Context, node: Node) -> None:
    """One call for each `pack` neighbours along the last dimension; arguments and results come operand by operand."""
    pack, sizes = integer(node, "pack"), node.result.type.sizes
    if sizes[-1] % pack:
        raise UnsupportedOpError(f"tt.map_elementwise that packs {pack} of {sizes[-1]} elements", node.location)
    outs = [cx.new_buffer(result.type.sizes, result.type.elem) for result in node.results]

    def call(at: Place, _: int | None, __: int) -> None:
        first = cx.b.mul(at[-1], pack)
        places = [(*at[:-1], cx.b.add(first, k)) for k in range(pack)]
        arguments = [(operand, place) for operand in node.operands for place in places]
        entry = node.regions[0][0]
        for argument, (operand, place) in zip(entry.arguments, arguments, strict=True):
            cx.forms[argument] = cx.evaluate(operand, place, None, 0)
        targets = [(out, place) for out in outs for place in places]
        run_blocks(cx, node.regions[0], "tt.map_elementwise.return", lambda end: _store(cx, targets, end))

    cx.each((*sizes[:-1], sizes[-1] // pack), None, call)
    for result, out in zip(node.results, outs, strict=True):
        cx.forms[result] = out
    cx.forget()


def _store(cx: Context, targets: list[tuple[Buffer, Place]], end: Node) -> None:
    for (out, place), value in zip(targets, end.operands, strict=True):
        cx.write(out, place, None, cx.scalar(value))


@eager("tt.map_elementwise.return")
def end_of_function(cx: Context, node: Node) -> None:
    """The operation around the region takes the values."""
