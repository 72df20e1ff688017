"""What is this machine? The one place of the package that asks, through Triton's own driver interface."""

from __future__ import annotations

import platform
from typing import Any

from dispatch.errors import ProbeError
from dispatch.target import Target


def probe_target() -> Target:
    """The device of the active Triton driver, with "triton" and its instruction sets as features.

    Where Triton is not installed, or no driver of it is active, the target is the bare CPU, and its `absent` says why
    "triton" is missing.

    Raises:
        ProbeError: the driver rejects a setting, e.g. an unknown name in TRITON_CPU_HIDE.
    """
    try:
        from triton.backends import backends
        from triton.runtime import driver

        current = driver.active.get_current_target()
    except (ImportError, RuntimeError, OSError) as error:  # no Triton, no active driver, a broken installation
        return Target("cpu", platform.machine(), frozenset(), {"triton": f"{type(error).__name__}: {error}"})
    except ValueError as error:
        raise ProbeError(f"Triton's driver cannot say what this machine is: {error}") from error
    compilers = [backend.compiler for backend in backends.values() if backend.compiler.supports_target(current)]
    return describe(current, bool(compilers))


def describe(current: Any, compiles: bool) -> Target:
    """A Triton target (backend, arch, warp size) as ours; `compiles`: a Triton backend compiles for it.

    The arch of a CPU is "<machine>:<comma list of instruction sets>", or the machine alone; that of a GPU is a number.
    """
    machine, _, listed = str(current.arch).partition(":")
    features = frozenset(name for name in listed.split(",") if name)
    name = machine if current.backend == "cpu" else f"{current.backend} {machine}"
    if compiles:
        return Target(current.backend, name, features | {"triton"})
    return Target(current.backend, name, features, {"triton": f"no Triton backend compiles for {current.backend}"})
