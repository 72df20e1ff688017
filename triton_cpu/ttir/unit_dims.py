"""Reshapes that only add dimensions of size 1, written as tt.expand_dims, through which offsets stay affine.

Tensor descriptors become pointers by way of such reshapes.
"""

from __future__ import annotations

from collections.abc import Sequence

from triton_cpu.ttir.nodes import Block, Node, Var
from triton_cpu.ttir.types import TensorType


def expand_unit_dims(functions: list[Node]) -> list[Node]:
    """Replace such reshapes in place, in all regions of the functions; the functions."""
    for function in functions:
        for region in function.regions:
            for block in region:
                _in_block(block)
    return functions


def _in_block(block: Block) -> None:
    nodes: list[Node] = []
    for node in block.nodes:
        expand_unit_dims([node])
        nodes += _expansions(node) or [node]
    block.nodes = nodes


def _expansions(node: Node) -> list[Node]:
    """One tt.expand_dims for each dimension that a reshape adds; none if it does anything else."""
    if node.name != "tt.reshape":
        return []
    last, var = node.result, node.operands[0]
    axes = _added(var.type.sizes, last.type.sizes)
    chain: list[Node] = []
    for axis in axes or ():
        sizes = var.type.sizes
        new = Node("tt.expand_dims", [var], [], {"axis": f"{axis} : i32"}, [], [], node.location)
        var = Var(TensorType((*sizes[:axis], 1, *sizes[axis:]), last.type.elem, last.type.name), new)
        new.results = [var]
        chain.append(new)
    if chain:
        last.node, chain[-1].results = chain[-1], [last]
    return chain


def _added(sizes: Sequence[int], wanted: Sequence[int]) -> list[int] | None:
    """Dimensions of `wanted` to add, in order, to have it from `sizes`; None if that is not enough."""
    axes, matched = [], 0
    for axis, size in enumerate(wanted):
        if matched < len(sizes) and sizes[matched] == size:
            matched += 1
        elif size == 1:
            axes.append(axis)
        else:
            return None
    return axes if matched == len(sizes) else None
