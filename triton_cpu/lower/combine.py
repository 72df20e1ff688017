"""The function that a reduction or a scan combines elements with: a region of scalar operations, run on vectors."""

from __future__ import annotations

from collections.abc import Sequence

from triton_cpu.errors import UnsupportedOpError
from triton_cpu.llvm.builder import Value
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Uniform
from triton_cpu.lower.rules import ELEMENTWISE, LAZY
from triton_cpu.ttir.nodes import Node, Var


def combine(cx: Context, node: Node, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
    """Combine elements (one per operand of the node) with those after them; all values have equal lanes.

    Raises UnsupportedOpError if the region branches or touches memory.
    """
    (block,) = node.regions[0]
    lanes = left[0].type.lanes
    values: dict[Var, Value] = dict(zip(block.arguments, (*left, *right), strict=True))

    def value(var: Var) -> Value:
        return values[var] if var in values else cx.b.splat(cx.scalar(var), lanes)

    for inner in block.nodes[:-1]:
        if inner.name in ELEMENTWISE:
            values[inner.result] = ELEMENTWISE[inner.name](cx, inner, [value(operand) for operand in inner.operands])
        elif inner.name == "arith.constant":
            lane = LAZY[inner.name](cx, inner, (), None, 0)
            assert isinstance(lane, Uniform)
            values[inner.result] = cx.b.splat(lane.value, lanes)
        else:
            raise UnsupportedOpError(f"{inner.name} in {node.name}", inner.location)
    return [value(operand) for operand in block.terminator.operands]
