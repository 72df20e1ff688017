"""How fast this machine reads memory: the limit of plain decoding, which reads every weight for each token."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

BUFFER_BYTES = 1 << 29  # far more than any cache holds
PASSES = 5
LANES, STEPS = 256, 512  # numbers a step, steps a program of the kernel


@dataclass(frozen=True)
class Bandwidth:
    """The best rate of several ways to read one buffer, in 10^9 bytes per second, and the way that gave it."""

    gb_per_s: float
    method: str


def read_bandwidth() -> Bandwidth:
    """Read a buffer with all of PyTorch's threads, five times in each of several ways, and keep the best pass."""
    numbers = torch.ones(BUFFER_BYTES // 4)
    words = numbers.view(torch.int64)
    sums = torch.empty(BUFFER_BYTES // (4 * LANES * STEPS))
    methods: dict[str, Callable[[], object]] = {
        "vector loads of a Triton kernel": lambda: _read_kernel[(len(sums),)](numbers, sums, LANES, STEPS),
        "torch.sum of int64": words.sum,
        "torch.sum of float32": numbers.sum,
        "torch.amax of float32": numbers.amax,
        "torch.mv of float32": lambda: torch.mv(numbers.view(-1, 4096), numbers[:4096]),
    }
    rates = {name: BUFFER_BYTES / min(_seconds(read) for _ in range(PASSES)) / 1e9 for name, read in methods.items()}
    best = max(rates, key=lambda name: rates[name])
    return Bandwidth(rates[best], f"{best}, {BUFFER_BYTES >> 20} MiB, best of {PASSES}")


@triton.jit
def _read_kernel(numbers, sums, LANES: tl.constexpr, STEPS: tl.constexpr):
    program = tl.program_id(0)
    places = numbers + program.to(tl.int64) * (LANES * STEPS) + tl.arange(0, LANES)
    total = tl.zeros((LANES,), tl.float32)
    for step in range(STEPS):
        total += tl.load(places + step * LANES)
    tl.store(sums + program, tl.sum(total, 0))


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
