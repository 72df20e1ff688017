"""The micro-kernels of tl.dot in order of preference. Which one runs depends on types, layout and machine, not on M."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from triton_cpu.errors import UnsupportedOpError
from triton_cpu.isa import columns, panels, rows, tiles
from triton_cpu.isa.product import Product

if TYPE_CHECKING:
    from triton_cpu.lower.context import Context
    from triton_cpu.ttir.nodes import Node


class MicroKernel(NamedTuple):
    """`obstacle` says why it cannot do a product on this machine, "" if it can; `emit` writes it."""

    name: str
    obstacle: Callable[[Context, Node], str]
    emit: Callable[[Context, Product], None]


MICRO_KERNELS = (
    MicroKernel("tiles", tiles.obstacle, tiles.emit),
    MicroKernel("rows", rows.obstacle, rows.emit),
    MicroKernel("panels", panels.obstacle, panels.emit),
    MicroKernel("columns", columns.obstacle, columns.emit),
)


def choose(cx: Context, node: Node) -> Callable[[Context, Product], None]:
    """The first micro-kernel that fits a tt.dot. Raises UnsupportedOpError if none does."""
    rejected: list[str] = []
    for name, obstacle, emit in MICRO_KERNELS:
        reason = obstacle(cx, node)
        if not reason:
            cx.note(node, f"by {name}" + f", because {', '.join(rejected)}" * bool(rejected))
            return emit
        rejected.append(f"{name} {reason}")
    a, b, c = (operand.type.name for operand in node.operands[:3])
    raise UnsupportedOpError(f"tt.dot of {a} and {b} into {c}", node.location)
