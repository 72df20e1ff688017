"""What the probe makes of Triton's answers, and of its silence."""

import platform
import subprocess
import sys

import pytest
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from dispatch.errors import ProbeError
from dispatch.probe import describe, probe_target
from tests.dispatch.made import Silent
from tests.target import has, has_amx, has_gpu


def test_this_machine():
    target = probe_target()
    assert "triton" in target.features
    if not has_gpu():
        assert target.kind == "cpu"
        assert ("amx_bf16" in target.features, "avx512" in target.features) == (has_amx(), has("avx512"))


@pytest.mark.parametrize(
    ("arch", "features"),
    [("x86_64:avx2,fma", {"avx2", "fma"}), ("x86_64:", set()), ("x86_64", set())],
    ids=["features", "none", "another cpu backend"],
)
def test_the_arch_of_a_cpu_gives_its_features(arch, features):
    target = describe(GPUTarget("cpu", arch, 1), True)
    assert (target.kind, target.name, target.features) == ("cpu", "x86_64", features | {"triton"})


def test_a_gpu():
    target = describe(GPUTarget("cuda", 90, 32), True)
    assert (target.kind, target.name, target.features) == ("cuda", "cuda 90", {"triton"})


def test_a_device_that_no_backend_compiles_for():
    target = describe(GPUTarget("npu", "v1:fast", 1), False)
    assert target.features == {"fast"}
    assert target.absent == {"triton": "no Triton backend compiles for npu"}


@pytest.mark.parametrize("error", [RuntimeError("0 active drivers"), ImportError("no llvmlite"), OSError("no libcuda")])
def test_without_a_driver_the_target_is_a_bare_cpu_that_says_why(monkeypatch, error):
    monkeypatch.setattr(driver, "_active", Silent(error))
    target = probe_target()
    assert (target.kind, target.name, target.features) == ("cpu", platform.machine(), frozenset())
    assert str(error) in target.absent["triton"]


def test_without_triton_the_target_is_a_bare_cpu_that_says_why(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton.backends", None)
    target = probe_target()
    assert (target.kind, target.features) == ("cpu", frozenset())
    assert "triton.backends" in target.absent["triton"]


def test_a_setting_that_the_driver_rejects_is_an_error(monkeypatch):
    monkeypatch.setattr(driver, "_active", Silent(ValueError("TRITON_CPU_HIDE='sse': unknown sse")))
    with pytest.raises(ProbeError, match="TRITON_CPU_HIDE='sse': unknown sse"):
        probe_target()


def test_hidden_instruction_sets_are_no_features(monkeypatch):
    if has_gpu():
        pytest.skip("the active driver is that of the GPU")
    monkeypatch.setenv("TRITON_CPU_HIDE", "avx512")
    features = probe_target().features
    assert "triton" in features
    assert not [name for name in features if name.startswith(("avx512", "amx"))]


def test_importing_the_package_imports_neither_torch_nor_triton():
    code = (
        "import sys, dispatch.__main__, dispatch.discovery, dispatch.probe, dispatch.resolve\n"
        "assert not {'torch', 'triton', 'triton_cpu', 'triton_spec', 'engine'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
