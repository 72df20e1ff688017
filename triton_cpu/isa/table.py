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
    """`fits` says whether it can do a product on this machine; `emit` writes it."""

    fits: Callable[[Context, Node], bool]
    emit: Callable[[Context, Product], None]


MICRO_KERNELS = (
    MicroKernel(tiles.fits, tiles.emit),
    MicroKernel(rows.fits, rows.emit),
    MicroKernel(panels.fits, panels.emit),
    MicroKernel(columns.fits, columns.emit),
)


def choose(cx: Context, node: Node) -> Callable[[Context, Product], None]:
    """The first micro-kernel that fits a tt.dot. Raises UnsupportedOpError if none does."""
    for kernel in MICRO_KERNELS:
        if kernel.fits(cx, node):
            return kernel.emit
    a, b, c = (operand.type.name for operand in node.operands[:3])
    raise UnsupportedOpError(f"tt.dot of {a} and {b} into {c}", node.location)
