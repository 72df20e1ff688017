"""Two ways to do one thing, timed in turn, so that what disturbs the machine disturbs both."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence

Run = Callable[[], object]

SAMPLE_SECONDS = 2e-3  # a sample repeats short calls until it takes as long: far more than the clock's resolution
LEAST_ROUNDS = 3
MOST_ROUNDS = 201
WARM_UP_CALLS = 1


def in_turn(runs: Sequence[Run], seconds: float) -> list[float]:
    """Median seconds of one call of each of `runs`.

    After a warm-up every round takes one sample of each; rounds go on for `seconds`, but there are at least
    LEAST_ROUNDS and at most MOST_ROUNDS.
    """
    for run in runs:
        _sample(run, WARM_UP_CALLS)
    calls = [max(1, math.ceil(SAMPLE_SECONDS / _sample(run, 1))) for run in runs]
    samples: list[list[float]] = [[] for _ in runs]
    end = time.perf_counter() + seconds
    while len(samples[0]) < LEAST_ROUNDS or (len(samples[0]) < MOST_ROUNDS and time.perf_counter() < end):
        for run, count, taken in zip(runs, calls, samples, strict=True):
            taken.append(_sample(run, count))
    return [statistics.median(taken) for taken in samples]


def _sample(run: Run, calls: int) -> float:
    """Seconds a call, of `calls` in a row."""
    started = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - started) / calls
