"""The environment variables of the backend; no other file of the package reads the environment."""

from __future__ import annotations

import os

HIDEABLE = ("amx", "avx512", "avx2")


def hidden_features() -> frozenset[str]:
    """Instruction sets named in TRITON_CPU_HIDE (comma-separated), which the backend must not use.

    Raises:
        ValueError: a name that is not one of HIDEABLE.
    """
    text = os.environ.get("TRITON_CPU_HIDE", "")
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    unknown = sorted(names.difference(HIDEABLE))
    if unknown:
        raise ValueError(f"TRITON_CPU_HIDE={text!r}: unknown {', '.join(unknown)}; known are {', '.join(HIDEABLE)}")
    return names


def default_backend() -> str:
    """Triton's own TRITON_DEFAULT_BACKEND: the backend the user asked for, "" when none was named."""
    return os.environ.get("TRITON_DEFAULT_BACKEND", "")
