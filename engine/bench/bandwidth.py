"""How fast this machine reads memory: the limit of plain decoding, which reads every weight for each token."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

BUFFER_BYTES = 1 << 29  # far more than any cache holds
PASSES = 5


@dataclass(frozen=True)
class Bandwidth:
    """The best rate of several ways to read one buffer, in 10^9 bytes per second, and the way that gave it."""

    gb_per_s: float
    method: str


def read_bandwidth() -> Bandwidth:
    """Read a buffer of 512 MiB with PyTorch's threads, five times in each of several ways, and keep the best pass."""
    numbers = torch.ones(BUFFER_BYTES // 4)
    words = numbers.view(torch.int64)
    methods: dict[str, Callable[[], torch.Tensor]] = {
        "torch.sum of int64": words.sum,
        "torch.sum of float32": numbers.sum,
        "torch.amax of float32": numbers.amax,
        "torch.dot of float32": lambda: torch.dot(numbers, numbers),
    }
    rates = {name: BUFFER_BYTES / min(_seconds(read) for _ in range(PASSES)) / 1e9 for name, read in methods.items()}
    best = max(rates, key=lambda name: rates[name])
    return Bandwidth(rates[best], f"{best}, {BUFFER_BYTES >> 20} MiB, best of {PASSES}")


def _seconds(run: Callable[[], torch.Tensor]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
