"""TTIR to LLVM IR: one rule per operation, tensors evaluated late and in chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from triton_cpu.options import CPUOptions


class Note(NamedTuple):
    """What the lowering decided about an operation.

    Attributes:
        location: "file:line:column" in the kernel's source, or "".
        operation: its name in TTIR.
        text: the decision.
    """

    location: str
    operation: str
    text: str


@dataclass(frozen=True)
class Decisions:
    """What the lowering decided, for people to read: see triton_cpu.explain.

    Attributes:
        notes: about single operations, in the order of the code; each once.
        lanes: elements of a chunk at most.
        programs_per_fork: smaller grids run on the calling thread.
        stack_bytes: of tensors on the stack of a program.
        arena_bytes: of tensors in the memory that each thread gets for a launch.
    """

    notes: tuple[Note, ...]
    lanes: int
    programs_per_fork: int
    stack_bytes: int
    arena_bytes: int


@dataclass(frozen=True)
class Lowered:
    """A kernel as LLVM IR.

    Attributes:
        llvm_ir: a module that exports ``void launch(ptr arguments, i32 x, i32 y, i32 z, i32 threads)``: it runs the
            grid x * y * z, whose dimensions are at least 1, on up to `threads` threads of the OpenMP pool.
        name: the kernel's name.
        uses_tiles: whether AMX tiles are multiplied.
        argument_types: LLVM type of each argument, 8 bytes apart in the argument block.
        decisions: what was decided on the way.
    """

    llvm_ir: str
    name: str
    uses_tiles: bool
    argument_types: tuple[str, ...]
    decisions: Decisions


def lower_module(ttir: str, options: CPUOptions) -> Lowered:
    """Lower a module printed in MLIR's generic form with source locations.

    Raises:
        UnsupportedOpError: an operation, or a form of it, that has no rule; names the place in the kernel's source.
        CompileError: the text cannot be read.
    """
    from triton_cpu.lower.function import lower_function  # imports the analysis, which imports this package
    from triton_cpu.ttir.read import read_module
    from triton_cpu.ttir.small_floats import widen_small_floats
    from triton_cpu.ttir.unit_dims import expand_unit_dims

    return lower_function(widen_small_floats(expand_unit_dims(read_module(ttir))), options)
