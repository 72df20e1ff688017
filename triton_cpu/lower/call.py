"""Calls of functions: their operations are carried out in place of the call.

Triton inlines before, all but functions marked noinline, and in loops and branches those with an early return.
"""

from __future__ import annotations

from triton_cpu.analysis.materialise import outside_uses
from triton_cpu.errors import UnsupportedOpError
from triton_cpu.lower import access
from triton_cpu.lower.branch import run_blocks
from triton_cpu.lower.context import Context
from triton_cpu.lower.rules import eager
from triton_cpu.ttir.nodes import Node


@eager("tt.call")
def call(cx: Context, node: Node) -> None:
    """Tensors go in and out in memory; scalars come out in memory, of which LLVM makes registers."""
    name = node.attributes["callee"].removeprefix("@").strip('"')
    if name in cx.calls:
        raise UnsupportedOpError(f"{name}, which calls itself,", node.location)
    blocks = cx.functions[name].regions[0]
    for block in blocks:
        for inner in block.nodes:
            for result in (result for each in (inner, *inner.nested()) for result in each.results):
                cx.forms.pop(result, None)  # of another call
    for argument, operand in zip(blocks[0].arguments, node.operands, strict=True):
        cx.forms[argument] = cx.materialise(operand) if operand.type.is_tensor else cx.scalar(operand)
    outs = [cx.new_buffer(result.type.sizes, result.type.elem) for result in node.results]

    def leave(end: Node) -> None:
        for out, value in zip(outs, end.operands, strict=True):
            cx.fill(out, value) if value.type.is_tensor else cx.write(out, (), None, cx.scalar(value))

    cx.kept |= outside_uses(blocks)
    cx.calls.append(name)
    run_blocks(cx, blocks, "tt.return", leave)
    cx.calls.pop()
    for result, out in zip(node.results, outs, strict=True):
        cx.forms[result] = out
        if not result.type.is_tensor:
            cx.forms[result] = access.load(cx.b, out.elem, 0, out.pointer)
