"""A CPU backend for the stock Triton wheel.

Installed, it is found by Triton through the entry point group `triton.backends`; kernels need no import of this
package. `bind` prepares a launch whose repetition costs about a microsecond.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triton_cpu.runtime.bind import bind as bind

__version__ = "0.1.0"
__all__ = ["__version__", "bind"]


def __getattr__(name: str) -> Any:
    """Import `bind` at its first use: Triton imports this package for every user, torch or no torch."""
    if name == "bind":
        from triton_cpu.runtime.bind import bind

        return bind
    raise AttributeError(f"module 'triton_cpu' has no attribute {name!r}")
