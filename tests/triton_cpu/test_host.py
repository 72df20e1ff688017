"""What the machine can do, decided from injected answers."""

import errno
import platform

import llvmlite.binding as llvm
import pytest

from triton_cpu import knobs
from triton_cpu.host import AmxSystem, amx_obstacle, describe, host
from triton_cpu.isa import probe
from triton_cpu.llvm.optimize import compile_to_object, target_machine

AVX512 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
EVERYTHING = dict.fromkeys(
    ("avx2", "fma", "f16c", *AVX512, "avx512bf16", "avx512vnni", "avx512fp16", "amx-tile", "amx-bf16", "amx-int8"), True
)
TILE_STATE = 1 << 18


class Amx(AmxSystem):
    """A machine whose AMX works, except for what the test breaks."""

    def __init__(self, state=TILE_STATE, permission=0, palettes=1, palette_bytes=8192, product=True):
        self.state, self.permission, self.palettes, self.bytes, self.product = (
            state, permission, palettes, palette_bytes, product,
        )  # fmt: skip
        self.executed = False

    def supported_components(self):
        return self.state

    def request_permission(self):
        if self.permission:
            raise OSError(self.permission, "refused")

    def cpuid(self, leaf, subleaf):
        assert leaf == 0x1D
        return (self.palettes, 0, 0, 0) if subleaf == 0 else (self.bytes | 1024 << 16, 0, 0, 0)

    def multiply_tile(self):
        self.executed = True
        return self.product


class Unasked(AmxSystem):
    """Fails the test when any AMX question is asked."""

    def supported_components(self):
        raise AssertionError("AMX was asked for where it is not reported or hidden")


BROKEN = {
    "no tile state": (Amx(state=0), "does not save"),
    "permission EINVAL": (Amx(permission=errno.EINVAL), "refused"),
    "permission EPERM": (Amx(permission=errno.EPERM), "refused"),
    "no palettes": (Amx(palettes=0), "no tile palette"),
    "odd palette": (Amx(palette_bytes=4096), "8192"),
}


def test_everything_is_used_when_everything_works():
    machine = describe("x86_64", EVERYTHING, frozenset(), Amx())
    assert {"amx_bf16", "amx_int8", "avx2", "avx512", "avx512_bf16", "fma"} <= set(machine.features)
    assert machine.arch == "x86_64:" + ",".join(sorted(machine.features))
    assert not machine.absent
    assert "+amx-tile" in machine.llvm_features.split(",")


@pytest.mark.parametrize("case", BROKEN)
def test_broken_amx_is_absent_with_a_reason_and_no_tile_runs(case):
    amx, reason = BROKEN[case]
    machine = describe("x86_64", EVERYTHING, frozenset(), amx)
    assert not amx.executed
    assert not [name for name in machine.features if name.startswith("amx")]
    assert "avx512" in machine.features
    assert reason in machine.absent["amx_bf16"]
    assert machine.llvm_features.split(",")[-1] == "-amx-tile"


def test_wrong_product_means_no_amx():
    assert "wrong product" in amx_obstacle(Amx(product=False))


def test_amx_is_not_asked_where_it_is_not_reported():
    machine = describe("x86_64", {"avx2": True, "fma": True, "amx-tile": False}, frozenset(), Unasked())
    assert machine.features == ("avx2", "fma")


@pytest.mark.parametrize(
    ("hidden", "gone", "kept"),
    [
        ("amx", ("amx_bf16", "amx_int8"), ("avx512", "avx512_bf16", "avx2")),
        ("avx512", ("amx_bf16", "avx512", "avx512_bf16", "avx512_vnni", "avx512_fp16"), ("avx2", "fma")),
        ("avx2", ("amx_bf16", "avx512", "avx512_bf16", "avx2"), ("fma",)),
    ],
)
def test_hiding_takes_what_builds_on_it(hidden, gone, kept):
    machine = describe("x86_64", EVERYTHING, frozenset({hidden}), Unasked())
    assert not set(gone) & set(machine.features)
    assert set(kept) <= set(machine.features)
    assert all(f"TRITON_CPU_HIDE={hidden}" in machine.absent[name] for name in gone)


def test_partial_avx512_is_not_avx512():
    reported = dict(EVERYTHING) | {"avx512vl": False, "amx-tile": False}
    assert "avx512" not in describe("x86_64", reported, frozenset(), Unasked()).features


def test_other_architectures_get_no_x86_flags():
    machine = describe("aarch64", {"neon": True, "sve": False}, frozenset({"avx2"}), Unasked())
    assert (machine.arch, machine.llvm_features) == ("aarch64:", "+neon,-sve")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs an x86 processor")
def test_cpuid_instruction_answers():
    highest, *vendor = probe.cpuid(0, 0)
    assert highest > 0
    assert b"".join(part.to_bytes(4, "little") for part in (vendor[0], vendor[2], vendor[1])).isascii()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs an x86 processor")
def test_real_amx_questions_end_without_a_trap():
    reported = llvm.get_host_cpu_features().get("amx-tile", False)
    obstacle = amx_obstacle(AmxSystem())
    assert obstacle or reported


@pytest.mark.amx
@pytest.mark.skipif("amx_bf16" not in host().features, reason="needs a processor with AMX")
def test_tiles_multiply():
    assert probe.multiply_tile()


def test_unknown_name_to_hide_is_refused(monkeypatch):
    monkeypatch.setenv("TRITON_CPU_HIDE", "amx, sse9")
    with pytest.raises(ValueError, match="sse9"):
        knobs.hidden_features()


def test_this_machine_can_be_described(monkeypatch):
    monkeypatch.delenv("TRITON_CPU_HIDE", raising=False)
    machine = host()
    assert machine.arch.startswith(f"{machine.machine}:")
    assert machine is host()


def test_hidden_features_are_gone_from_this_machine(monkeypatch):
    monkeypatch.setenv("TRITON_CPU_HIDE", "avx2,amx")
    assert not [name for name in host().features if name.startswith(("avx2", "avx512", "amx"))]


def test_llvm_honours_the_hidden_features(monkeypatch):
    monkeypatch.setenv("TRITON_CPU_HIDE", "avx512")
    features = host().llvm_features
    ir = """define <16 x float> @f(<16 x float> %a, <16 x float> %b) {
      %c = fadd <16 x float> %a, %b
      ret <16 x float> %c
    }"""
    compile_to_object(ir, features)
    assembly = target_machine(features).emit_assembly(llvm.parse_assembly(ir))
    assert "zmm" not in assembly
