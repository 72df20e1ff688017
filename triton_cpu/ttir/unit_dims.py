"""Reshapes that only add dimensions of size 1, written as tt.expand_dims, through which offsets stay affine.

Tensor descriptors become pointers by way of such reshapes.
"""

from __future__ import annotations

from collections.abc import Sequence

from triton_cpu.ttir.nodes import Node
from triton_cpu.ttir.rewrite import Emitter, rewrite, shaped


def expand_unit_dims(functions: list[Node]) -> list[Node]:
    """Replace such reshapes in place, in all regions of the functions; the functions."""
    return rewrite(functions, {"tt.reshape": _expansions})


def _expansions(node: Node) -> list[Node]:
    """One tt.expand_dims for each dimension that a reshape adds; none if it does anything else."""
    var, e = node.operands[0], Emitter(node)
    axes = _added(var.type.sizes, node.result.type.sizes)
    for axis in axes or ():
        sizes = var.type.sizes
        var = e.op("tt.expand_dims", [var], shaped(var.type, *sizes[:axis], 1, *sizes[axis:]), axis=axis)
    return e.finish() if axes else []


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
