"""A CPU backend for the stock Triton wheel.

Installed, it is found by Triton through the entry point group `triton.backends`; kernels need no import of this
package. `bind` prepares a launch whose repetition costs about a microsecond, `record` a sequence of launches that costs
tens of nanoseconds for each, `explain` says what became of a kernel.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# First of all: Triton imports our plug-in modules in the middle of its own start, and must find them complete, which
# they would not be if the import of one of them were what starts Triton.
import triton  # noqa: F401

if TYPE_CHECKING:
    from triton_cpu.explanation import explain as explain
    from triton_cpu.runtime.bind import bind as bind
    from triton_cpu.runtime.record import record as record

__version__ = "0.1.0"
__all__ = ["__version__", "bind", "explain", "record"]

_HOMES = {"bind": "runtime.bind", "explain": "explanation", "record": "runtime.record"}


def __getattr__(name: str) -> Any:
    """Import a function at its first use: it needs torch and llvmlite, and Triton imports us for every user."""
    if name not in _HOMES:
        raise AttributeError(f"module 'triton_cpu' has no attribute {name!r}")
    return getattr(importlib.import_module(f"triton_cpu.{_HOMES[name]}"), name)
