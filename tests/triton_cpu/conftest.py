"""Fixtures of the backend's tests: the CPU driver active, an empty cache, the lowering replaceable."""

import pytest
import triton
from triton.backends import backends
from triton.runtime import driver

import triton_cpu.lower
from tests.triton_cpu.emulated_amx import emulated_amx
from tests.triton_cpu.hand_lowered import HandLowering


@pytest.fixture(scope="session", autouse=True)
def cpu_driver():
    """Triton's active driver is ours, on machines with a GPU as well."""
    driver.set_active(backends["cpu"].driver())
    yield driver.active
    driver.reset_active()


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    """An empty folder that Triton's cache uses during the test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def lowering(monkeypatch, cache_folder):
    """lowering(llvm_ir, types, name="kernel"): every kernel of the test compiles to that IR."""

    def replace(llvm_ir, types, name="kernel"):
        fake = HandLowering(llvm_ir, name, tuple(types))
        monkeypatch.setattr(triton_cpu.lower, "lower_module", fake, raising=False)
        return fake

    return replace


@pytest.fixture
def hooks():
    """Triton's runtime knobs, restored after the test, and their chains of hooks, which stay the same objects."""
    chains = [getattr(triton.knobs.runtime, f"launch_{way}_hook") for way in ("enter", "exit")]
    before = [list(chain.calls) for chain in chains]
    with triton.knobs.runtime.scope():
        yield triton.knobs.runtime
    for chain, calls in zip(chains, before, strict=True):
        chain.calls[:] = calls


@pytest.fixture
def tile_machine(tmp_path):
    """Kernels of the test are compiled for AMX and AVX-512; the tile unit is emulated, and is this fixture's value."""
    with emulated_amx(tmp_path / "emulated cache") as machine:
        yield machine
