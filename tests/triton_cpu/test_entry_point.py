"""How Triton finds the backend, and what importing Triton costs its other users."""

import inspect
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from triton.backends import backends
from triton.backends.compiler import BaseBackend, GPUTarget
from triton.backends.driver import DriverBase

import triton_cpu.compiler
import triton_cpu.driver


def test_entry_point_is_installed():
    (entry,) = [entry for entry in entry_points(group="triton.backends") if entry.name == "cpu"]
    assert entry.value == "triton_cpu"


def test_triton_registers_our_classes():
    assert backends["cpu"].compiler is triton_cpu.compiler.CPUBackend
    assert backends["cpu"].driver is triton_cpu.driver.CPUDriver


@pytest.mark.parametrize(
    ("module", "base"),
    [(triton_cpu.compiler, BaseBackend), (triton_cpu.driver, DriverBase)],
    ids=["compiler", "driver"],
)
def test_each_module_holds_one_concrete_subclass(module, base):
    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, base)]
    assert len([value for value in classes if not inspect.isabstract(value)]) == 1


@pytest.mark.parametrize(
    "statement", ["import triton", "import triton_cpu", "import triton_cpu.compiler", "import triton_cpu.driver"]
)
def test_importing_loads_neither_torch_nor_llvmlite(statement):
    code = f"{statement}\nimport sys\nprint([name for name in ('torch', 'llvmlite') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_only_cpu_targets_are_ours():
    assert triton_cpu.compiler.CPUBackend.supports_target(GPUTarget("cpu", "x86_64:", 1))
    assert not triton_cpu.compiler.CPUBackend.supports_target(GPUTarget("cuda", 90, 32))


def test_compiler_identity_follows_its_sources(monkeypatch, tmp_path):
    first = triton_cpu.compiler._source_digest()
    (tmp_path / "compiler.py").write_text("changed")
    monkeypatch.setattr(triton_cpu.compiler, "__file__", str(tmp_path / "compiler.py"))
    triton_cpu.compiler._source_digest.cache_clear()
    changed = triton_cpu.compiler._source_digest()
    triton_cpu.compiler._source_digest.cache_clear()
    assert changed != first


def test_unknown_attribute_of_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = triton_cpu.no_such_name
