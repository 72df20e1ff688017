"""Compile options of a kernel: what Triton's front end asks for, and what the machine code depends on."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triton_cpu.errors import CompileError

_FP8_TYPES = ("fp8e4nv", "fp8e5")
_DOT_PRECISIONS = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")


@dataclass(frozen=True)
class CPUOptions:
    """Options of one compilation; all values can be written as JSON.

    The first group decides the code. The second is read by Triton's front end and runtime. The third are hints for
    GPUs that kernels carry in their configurations: accepted, without effect on a CPU.
    """

    arch: str
    llvm_features: str
    isa: str | None = None
    enable_fp_fusion: bool = True
    debug: bool = False
    sanitize_overflow: bool = False

    backend_name: str = "cpu"
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = _DOT_PRECISIONS
    supported_fp8_dtypes: tuple[str, ...] = _FP8_TYPES
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    max_num_imprecise_acc_default: int = 0
    extern_libs: tuple[tuple[str, str], ...] = ()
    ir_override: str | None = None
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    launch_cooperative_grid: bool = False
    warp_size: int = 1

    num_warps: int = 1
    num_ctas: int = 1
    num_stages: int = 1
    maxnreg: int | None = None
    min_shared_mem: int | None = None
    ptx_version: int | None = None
    ptx_options: str | None = None
    enable_reflect_ftz: bool = False
    sched4reg: bool = False
    launch_pdl: bool = False
    clc: bool = False
    waves_per_eu: int = 0
    matrix_instr_nonkdim: int = 0
    kpack: int = 1
    schedule_hint: str = "none"
    allow_flush_denorm: bool = False

    def hash(self) -> str:
        """Digest of all options: part of the key of Triton's cache."""
        text = "_".join(f"{name}-{value!r}" for name, value in sorted(dataclasses.asdict(self).items()))
        return hashlib.sha256(text.encode()).hexdigest()


_NAMES = frozenset(field.name for field in dataclasses.fields(CPUOptions))


def make_options(given: Mapping[str, Any], arch: str, llvm_features: str) -> CPUOptions:
    """The options of a call: defaults for what is not given, other names left to Triton, which rejects unknown ones.

    Args:
        given: option name -> value, as a launch or an autotuner configuration carries them.
        arch: the target's arch string, see host.Host.arch.
        llvm_features: the LLVM feature string of that target.

    Raises:
        CompileError: an option asks for something a CPU kernel cannot have.
    """
    known = {name: value for name, value in given.items() if name in _NAMES and value is not None}
    known |= {"arch": arch, "llvm_features": llvm_features}
    if known.get("num_ctas", 1) != 1:
        raise CompileError(f"num_ctas={known['num_ctas']}: clusters of blocks do not exist on CPUs; leave it at 1")
    if known.get("instrumentation_mode"):
        raise CompileError(
            f"TRITON_INSTRUMENTATION_MODE={known['instrumentation_mode']!r} has no CPU form; unset the variable"
        )
    if known.get("extern_libs"):
        raise CompileError(f"extern_libs={known['extern_libs']!r}: LLVM bitcode libraries cannot be linked in")
    known.pop("extern_libs", None)
    for name, value in known.items():
        if isinstance(value, list):
            known[name] = tuple(value)
    return CPUOptions(**known)
