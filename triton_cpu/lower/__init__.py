"""TTIR to LLVM IR: one rule per operation, tensors evaluated late and in chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triton_cpu.options import CPUOptions


@dataclass(frozen=True)
class Lowered:
    """A kernel as LLVM IR.

    Attributes:
        llvm_ir: a module that exports ``void launch(ptr arguments, i32 x, i32 y, i32 z, i32 threads)``: it runs the
            grid x * y * z, whose dimensions are at least 1, on up to `threads` threads of the OpenMP pool.
        name: the kernel's name.
        uses_tiles: whether AMX tiles are multiplied.
        argument_types: LLVM type of each argument, 8 bytes apart in the argument block.
    """

    llvm_ir: str
    name: str
    uses_tiles: bool
    argument_types: tuple[str, ...]


def lower_module(ttir: str, options: CPUOptions) -> Lowered:
    """Lower a module printed in MLIR's generic form with source locations.

    Raises:
        UnsupportedOpError: an operation, or a form of it, that has no rule; names the place in the kernel's source.
        CompileError: the text cannot be read.
    """
    from triton_cpu.lower.function import lower_function  # imports the analysis, which imports this package
    from triton_cpu.ttir.read import read_module
    from triton_cpu.ttir.unit_dims import expand_unit_dims

    return lower_function(expand_unit_dims(read_module(ttir)), options)
