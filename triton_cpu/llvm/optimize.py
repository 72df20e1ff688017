"""LLVM text IR to verified, optimised machine code."""

from __future__ import annotations

import functools
import re

import llvmlite.binding as llvm

from triton_cpu.errors import CompileError
from triton_cpu.llvm.fork import guard_forks

_SPEED_LEVEL = 1  # measured: same run time as level 3 for kernels that are already vector code, 0.6 of the compile time
_CODEGEN_LEVEL = 2

guard_forks()


@functools.cache
def target_machine(features: str) -> llvm.TargetMachine:
    """Code generator for this machine's architecture with exactly `features`.

    The features are given and the CPU name is not: on some virtual machines the name promises instructions
    that the machine does not have.

    Args:
        features: LLVM feature string, e.g. "+avx2,-avx512f".
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu="",
        features=features,
        opt=_CODEGEN_LEVEL,
        reloc="pic",
        codemodel="small",  # the default for in-memory code addresses every constant and function with 64 bits
        jit=True,
    )


def compile_to_object(llvm_ir: str, features: str) -> bytes:
    """Verify, optimise and compile a module.

    Args:
        llvm_ir: LLVM text IR.
        features: LLVM feature string the code may use.

    Returns:
        A relocatable object file.

    Raises:
        CompileError: LLVM rejects the text; the message quotes the line.
    """
    machine = target_machine(features)
    context = llvm.create_context()
    try:
        module = llvm.parse_assembly(llvm_ir, context=context)
        module.verify()
    except RuntimeError as error:
        raise CompileError(_explain(llvm_ir, str(error))) from error
    options = llvm.create_pipeline_tuning_options(speed_level=_SPEED_LEVEL)
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


def _explain(llvm_ir: str, message: str) -> str:
    """LLVM's message with the line it points at."""
    match = re.search(r":(\d+):\d+: error", message)
    lines = llvm_ir.splitlines()
    quoted = ""
    if match and 0 < int(match.group(1)) <= len(lines):
        quoted = f"\nline {match.group(1)}: {lines[int(match.group(1)) - 1]}"
    return f"the generated LLVM IR is invalid (a fault of triton_cpu, please report it): {message.strip()}{quoted}"
