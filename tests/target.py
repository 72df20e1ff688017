"""What the machine of this test run has: the only place in the tests that asks."""

from __future__ import annotations

import functools

import torch

from triton_cpu.host import host


def has_amx() -> bool:
    """AMX tiles execute here: a tile was multiplied, not only a flag read. False when TRITON_CPU_HIDE hides them."""
    return "amx_bf16" in host().features


def has(feature: str) -> bool:
    """The processor has a feature of host.Host. False when TRITON_CPU_HIDE hides it."""
    return feature in host().features


@functools.cache
def has_gpu() -> bool:
    """PyTorch can use a CUDA device."""
    return torch.cuda.is_available()


def device() -> str:
    """The device on which compiled kernels are tested: "cuda" where there is one, else "cpu"."""
    return "cuda" if has_gpu() else "cpu"
