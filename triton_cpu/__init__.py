"""A CPU backend for the stock Triton wheel.

Installed, it is found by Triton through the entry point group `triton.backends`; kernels need no import of this
package. `bind` prepares a launch whose repetition costs about a microsecond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# First of all: Triton imports our plug-in modules in the middle of its own start, and must find them complete, which
# they would not be if the import of one of them were what starts Triton.
import triton  # noqa: F401

if TYPE_CHECKING:
    from triton_cpu.runtime.bind import bind as bind

__version__ = "0.1.0"
__all__ = ["__version__", "bind"]


def __getattr__(name: str) -> Any:
    """Import `bind` at its first use: it needs torch and llvmlite, and Triton imports this package for every user."""
    if name == "bind":
        from triton_cpu.runtime.bind import bind

        return bind
    raise AttributeError(f"module 'triton_cpu' has no attribute {name!r}")
