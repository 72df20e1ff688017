"""Where in the grid a program is, and hints that need no code."""

from __future__ import annotations

from triton_cpu.lower.context import Context
from triton_cpu.lower.rules import eager
from triton_cpu.ttir.attributes import integer
from triton_cpu.ttir.nodes import Node


@eager("tt.get_program_id")
def program_id(cx: Context, node: Node) -> None:
    """Index of the program along an axis of the grid."""
    cx.forms[node.result] = cx.program[integer(node, "axis")]


@eager("tt.get_num_programs")
def num_programs(cx: Context, node: Node) -> None:
    """Size of the grid along an axis."""
    cx.forms[node.result] = cx.program[3 + integer(node, "axis")]


@eager("llvm.intr.assume", "ttg.barrier", "gpu.barrier")
def no_code(cx: Context, node: Node) -> None:
    """An assumption is not needed, and a program is one thread: there is nobody to wait for."""
