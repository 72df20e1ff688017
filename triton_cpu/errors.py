"""The errors of the backend. Each message names what was wrong, with its value, and the remedy."""

from __future__ import annotations


class TritonCpuError(Exception):
    """Base of every error that this backend raises on purpose."""


class CompileError(TritonCpuError):
    """A kernel could not be turned into machine code."""


class UnsupportedOpError(CompileError):
    """An operation of Triton's IR that this backend does not lower.

    Args:
        op: name of the operation, e.g. "tt.histogram", or a description of the unsupported form of it.
        location: place in the kernel's source, e.g. "kernel.py:12:8"; empty when the IR carries none.
    """

    def __init__(self, op: str, location: str = "") -> None:
        super().__init__(op, location)
        self.op = op
        self.location = location

    def __str__(self) -> str:
        place = f" at {self.location}" if self.location else ""
        return f"{self.op}{place} is not supported by the triton_cpu backend; rewrite the kernel without it"


class LoadError(TritonCpuError):
    """Machine code could not be loaded into this process."""


class LaunchError(TritonCpuError):
    """A compiled kernel could not be started: a wrong grid, a missing thread pool."""


class ArgumentError(LaunchError, TypeError):
    """A kernel argument has the wrong name, type, range or device."""
