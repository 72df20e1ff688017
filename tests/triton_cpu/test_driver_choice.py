"""When the CPU driver is the active one."""

from dataclasses import dataclass

import pytest
import torch
import triton.backends

from triton_cpu.driver import CPUDriver
from triton_cpu.host import host


@dataclass(frozen=True)
class Registered:
    driver: type


class WithDevice:
    @classmethod
    def is_active(cls):
        return True


class WithoutDevice:
    @classmethod
    def is_active(cls):
        return False


@pytest.fixture
def others(monkeypatch):
    """others(driver, ...): the drivers registered beside ours."""

    def register(*drivers):
        table = {f"other{number}": Registered(driver) for number, driver in enumerate(drivers)}
        monkeypatch.setattr(triton.backends, "backends", table | {"cpu": Registered(CPUDriver)})

    return register


@pytest.mark.parametrize(
    ("drivers", "chosen", "active"),
    [
        ([], "", True),
        ([WithoutDevice, WithoutDevice], "", True),
        ([WithoutDevice, WithDevice], "", False),
        ([WithDevice], "cpu", True),
        ([WithoutDevice], "other0", False),
        ([WithoutDevice], "no_such_backend", False),
    ],
    ids=["alone", "no GPU", "GPU", "GPU but cpu named", "other named", "unknown named"],
)
def test_choice(others, monkeypatch, drivers, chosen, active):
    others(*drivers)
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", chosen)
    assert CPUDriver.is_active() is active


def test_target_names_machine_and_features():
    target = CPUDriver().get_current_target()
    assert (target.backend, target.arch, target.warp_size) == ("cpu", host().arch, 1)


def test_device_is_the_cpu():
    assert CPUDriver().get_active_torch_device() == torch.device("cpu")


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        ("*fp32", "void*"),
        ("i32", "int32_t"),
        ("u64", "uint64_t"),
        ("fp64", "double"),
        ("bf16", "__bf16"),
        ("i1", "bool"),
    ],
)
def test_c_names_of_types(type_, name):
    assert CPUDriver().map_python_to_cpp_type(type_) == name
