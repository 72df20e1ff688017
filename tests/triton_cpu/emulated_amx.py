"""Whole kernels compiled for AMX and run on an emulated tile unit, on a machine without one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from triton.runtime import driver

import triton_cpu.host
import triton_cpu.llvm.optimize
from tests.triton_cpu.tile_machine import TileMachine
from triton_cpu.driver import CPUDriver
from triton_cpu.host import AmxSystem, Host, describe
from triton_cpu.runtime import bind, launch
from triton_cpu.runtime.start import starter

AMX = ("amx-tile", "amx-bf16", "amx-int8")
AVX512 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")  # every processor with AMX has these
_devices = itertools.count(1000)  # Triton keeps compiled kernels per device number: each machine is a device of its own
_DOT_PAIRS = "llvm.x86.avx512bf16.dpbf16ps.512"
_DOT_PAIRS_PORTABLE = """
define internal <16 x float> @portable.dpbf16ps(<16 x float> %sum, <32 x bfloat> %x, <32 x bfloat> %y) {
  %xi = bitcast <32 x bfloat> %x to <16 x i32>
  %yi = bitcast <32 x bfloat> %y to <16 x i32>
  %xe = shl <16 x i32> %xi, splat (i32 16)
  %ye = shl <16 x i32> %yi, splat (i32 16)
  %xo = and <16 x i32> %xi, splat (i32 -65536)
  %yo = and <16 x i32> %yi, splat (i32 -65536)
  %xef = bitcast <16 x i32> %xe to <16 x float>
  %yef = bitcast <16 x i32> %ye to <16 x float>
  %xof = bitcast <16 x i32> %xo to <16 x float>
  %yof = bitcast <16 x i32> %yo to <16 x float>
  %odd = call <16 x float> @llvm.fma.v16f32(<16 x float> %xof, <16 x float> %yof, <16 x float> %sum)
  %both = call <16 x float> @llvm.fma.v16f32(<16 x float> %xef, <16 x float> %yef, <16 x float> %odd)
  ret <16 x float> %both
}
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
"""
_AVX512_INTRINSIC = re.compile(r"@llvm\.x86\.avx512[\w.]*")


class _Granted(AmxSystem):
    """A system that permits AMX and on which tiles work."""

    def supported_components(self) -> int:
        return 1 << 18

    def request_permission(self) -> None:
        """Permission is given."""

    def cpuid(self, leaf: int, subleaf: int) -> tuple[int, int, int, int]:
        return 8192, 0, 0, 0

    def multiply_tile(self) -> bool:
        return True


def pretended_host(real: Host, llvm_features: tuple[str, ...] = AMX + AVX512) -> Host:
    """`real` with more features, decided upon by the same code."""
    reported = {flag[1:]: flag[0] == "+" for flag in real.llvm_features.split(",") if flag}
    return describe(real.machine, reported | dict.fromkeys(llvm_features, True), frozenset(), _Granted())


@contextmanager
def emulated_amx(cache: Path, llvm_features: tuple[str, ...] = AMX + AVX512) -> Iterator[TileMachine]:
    """Triton's active device is this machine with `llvm_features` more, tiles emulated, until the end of the block.

    Kernels are lowered for those features and turned into machine code for the real ones: vectors of 512 bits are taken
    apart where they do not exist. A fault on tiles raises from the launch, and at the end at the latest.

    Args:
        cache: an empty folder for Triton's cache.
        llvm_features: LLVM's names of the features added.
    """
    machine = TileMachine()
    real = triton_cpu.host.host()
    pretended = pretended_host(real, llvm_features)
    compile_to_object = triton_cpu.llvm.optimize.compile_to_object

    def compile_for_emulation(llvm_ir: str, features: str) -> bytes:
        if features != pretended.llvm_features:
            return compile_to_object(llvm_ir, features)
        llvm_ir = _with_portable_pairs(llvm_ir)
        intrinsic = _AVX512_INTRINSIC.search(llvm_ir)
        if intrinsic and "avx512" not in real.features:
            raise NotImplementedError(f"{intrinsic.group()} needs AVX-512, which this machine lacks")
        return compile_to_object(machine.rewrite(llvm_ir), real.llvm_features)

    def start_and_check(block: bytes | int, threads: int) -> None:
        starter()(block, threads)
        machine.check()

    previous = driver.active
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(cache))  # the code has addresses of this process in it
        patch.setattr(triton_cpu.host, "host", lambda: pretended)
        patch.setattr(triton_cpu.llvm.optimize, "compile_to_object", compile_for_emulation)
        for module in (bind, launch):
            patch.setattr(module, "starter", lambda: start_and_check)
        driver.set_active(_driver())
        try:
            yield machine
        finally:
            driver.set_active(previous)
    machine.check()


def _with_portable_pairs(llvm_ir: str) -> str:
    """The bf16 pair product of AVX-512 as plain IR (order and denormals apart, which tests of values do not see)."""
    if _DOT_PAIRS not in llvm_ir:
        return llvm_ir
    lines = [
        line
        for line in llvm_ir.splitlines()
        if not line.startswith(("declare <16 x float> @llvm.fma.v16f32", f"declare <16 x float> @{_DOT_PAIRS}"))
    ]
    return "\n".join(lines).replace(_DOT_PAIRS, "portable.dpbf16ps") + _DOT_PAIRS_PORTABLE


def _driver() -> CPUDriver:
    number = next(_devices)

    class EmulatedDriver(CPUDriver):
        def get_current_device(self) -> int:
            return number

    return EmulatedDriver()
