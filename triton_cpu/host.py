"""What the machine can execute: the one place of the package that asks it.

The features are those LLVM reads from CPUID and the state the operating system saves. AMX needs more than that: a
kernel permission, a palette that the hypervisor may have removed, and a tile that really multiplies. Every check
comes before the first instruction that could trap.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from triton_cpu import knobs

# Our feature name -> the LLVM features it stands for.
_X86_FEATURES = {
    "avx2": ("avx2",),
    "f16c": ("f16c",),
    "fma": ("fma",),
    "avx512": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "avx512_bf16": ("avx512f", "avx512bf16"),
    "avx512_fp16": ("avx512f", "avx512fp16"),
    "avx512_vnni": ("avx512f", "avx512vnni"),
    "amx_bf16": ("amx-tile", "amx-bf16"),
    "amx_fp16": ("amx-tile", "amx-fp16"),
    "amx_int8": ("amx-tile", "amx-int8"),
}
# TRITON_CPU_HIDE name -> the LLVM features to switch off; LLVM then drops everything that implies them as well.
_HIDES = {
    "amx": ("amx-tile",),
    "avx512": ("avx512f", "amx-tile"),
    "avx2": ("avx2", "avx512f", "amx-tile"),
}

_SYS_ARCH_PRCTL = 158  # x86-64
_ARCH_GET_XCOMP_SUPP = 0x1021
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18
_CPUID_TILE_INFORMATION = 0x1D
_PALETTE_BYTES = 8192  # palette 1: eight tiles of 16 rows of 64 bytes


@dataclass(frozen=True)
class Host:
    """The machine as code generation sees it.

    Attributes:
        machine: architecture, e.g. "x86_64".
        features: names of usable instruction sets, sorted, e.g. ("amx_bf16", "avx2", "avx512", "fma").
        llvm_features: the LLVM feature string that code may be generated for.
        absent: feature (or family) that looked available but is not used -> the reason.
    """

    machine: str
    features: tuple[str, ...]
    llvm_features: str
    absent: Mapping[str, str]

    @property
    def arch(self) -> str:
        """The arch string of Triton's target: "<machine>:<comma list of features>"."""
        return f"{self.machine}:{','.join(self.features)}"


class AmxSystem:
    """The questions the AMX check asks the processor and the kernel; each may raise OSError."""

    def supported_components(self) -> int:
        """Bit mask of the processor state components that the operating system can save."""
        mask = ctypes.c_uint64()
        _arch_prctl(_ARCH_GET_XCOMP_SUPP, ctypes.addressof(mask))
        return mask.value

    def request_permission(self) -> None:
        """Ask the kernel to let this process (all its threads, and its children) use tiles."""
        _arch_prctl(_ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA)

    def cpuid(self, leaf: int, subleaf: int) -> tuple[int, int, int, int]:
        """Registers eax, ebx, ecx, edx of the CPUID instruction."""
        from triton_cpu.isa.probe import cpuid

        return cpuid(leaf, subleaf)

    def multiply_tile(self) -> bool:
        """Multiply one tile of ones and say whether the product is right."""
        from triton_cpu.isa.probe import multiply_tile

        return multiply_tile()


def host() -> Host:
    """The machine without the features hidden by TRITON_CPU_HIDE; asked once per process and set of hidden names."""
    return _host(knobs.hidden_features())


@functools.cache
def _host(hidden: frozenset[str]) -> Host:
    import llvmlite.binding as llvm

    return describe(platform.machine(), dict(llvm.get_host_cpu_features()), hidden, AmxSystem())


def processors() -> int:
    """How many processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe(machine: str, reported: Mapping[str, bool], hidden: frozenset[str], amx: AmxSystem) -> Host:
    """Decide what to use of what a machine reports.

    Args:
        machine: architecture name.
        reported: LLVM feature name -> available.
        hidden: names from knobs.HIDEABLE that must not be used.
        amx: answers to the AMX questions; asked only where AMX is reported and not hidden.
    """
    off = {feature: f"hidden by TRITON_CPU_HIDE={name}" for name in sorted(hidden) for feature in _HIDES[name]}
    if reported.get("amx-tile") and "amx-tile" not in off:
        reason = amx_obstacle(amx)
        if reason:
            off["amx-tile"] = reason
    features, absent = [], {}
    for name, needed in _X86_FEATURES.items():
        if not all(reported.get(feature) for feature in needed):
            continue
        reasons = [off[family] for family in _families(needed) if family in off]
        if reasons:
            absent[name] = reasons[0]
        else:
            features.append(name)
    flags = [f"{'+' if on else '-'}{name}" for name, on in sorted(reported.items())]
    # The last word counts, and takes what builds on it along.
    flags += [f"-{name}" for name in sorted(off) if name in reported]
    return Host(machine, tuple(sorted(features)), ",".join(flags), MappingProxyType(absent))


def amx_obstacle(system: AmxSystem) -> str:
    """Why AMX cannot be used although the processor reports it; empty when it can."""
    try:
        if not system.supported_components() >> _XFEATURE_XTILEDATA & 1:
            return "the operating system does not save AMX tile state"
        system.request_permission()
        if system.cpuid(_CPUID_TILE_INFORMATION, 0)[0] < 1:
            return "the processor (or the hypervisor) offers no tile palette"
        if system.cpuid(_CPUID_TILE_INFORMATION, 1)[0] & 0xFFFF != _PALETTE_BYTES:
            return f"tile palette 1 has not the expected {_PALETTE_BYTES} bytes"
        if not system.multiply_tile():
            return "a test multiplication on tiles gave a wrong product"
    except OSError as error:
        return f"the kernel refused AMX: {error}"
    return ""


def _families(needed: tuple[str, ...]) -> list[str]:
    """The switches that would turn these LLVM features off: every 512-bit feature also falls with avx512f."""
    families = list(needed)
    if any(feature.startswith("avx512") for feature in needed):
        families += ["avx512f", "avx2"]
    return families


def _arch_prctl(code: int, argument: int) -> None:
    """The arch_prctl system call, which the C library does not wrap."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(ctypes.c_long(_SYS_ARCH_PRCTL), ctypes.c_long(code), ctypes.c_ulong(argument)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"arch_prctl(0x{code:x}): {os.strerror(number)}")
