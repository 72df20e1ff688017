"""A case: ours and what one would use instead, on the same operands; and the row of the table that it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from benchmarks.timer import Run, in_turn
from triton_cpu.host import host


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes:
        name: family/what/size, which `--only` looks at.
        baseline: what ours is compared with; "" if there is nothing.
        make: operands once, and then (ours, baseline): two functions without arguments.
        tolerance: by how much the tensors that both return may differ, relative to the largest element.
        bars: least ratios wanted on one thread and on more, None for no bar.
        serial: it uses one thread whatever is allowed, and is measured once.
    """

    name: str
    baseline: str
    make: Callable[[], tuple[Run, Run | None]]
    tolerance: float = 1e-5
    bars: tuple[float, float] | None = None
    serial: bool = False


@dataclass(frozen=True)
class Row:
    """A case on a number of threads: microseconds a call, medians.

    ratio is the baseline's time over ours, above 1 where ours is faster; None where there is no baseline. bar is the
    least ratio wanted.
    """

    name: str
    ours_us: float
    baseline: str
    baseline_us: float | None
    ratio: float | None
    bar: float | None
    threads: int
    isa: str


def measure(case: Case, threads: int, seconds: float) -> Row:
    """Check that both sides agree and time them in turn.

    Raises AssertionError if they do not agree.
    """
    torch.set_num_threads(threads)
    ours, baseline = case.make()
    runs = [ours] if baseline is None else [ours, baseline]
    _assert_agreement(case, *(run() for run in runs))
    times = [1e6 * taken for taken in in_turn(runs, seconds)]
    compared = len(times) == 2
    return Row(
        case.name,
        times[0],
        case.baseline,
        times[1] if compared else None,
        times[1] / times[0] if compared else None,
        case.bars[threads > 1] if case.bars else None,
        threads,
        isa(),
    )


def isa() -> str:
    """The instruction sets of this machine that kernels may use, the widest family first."""
    features = host().features
    family = next((name for name in ("amx", "avx512", "avx2") if any(name in feature for feature in features)), "")
    parts = [feature.partition("_")[2] for feature in features if feature.startswith(f"{family}_")]
    return "+".join([family or host().machine, *parts])


def _assert_agreement(case: Case, ours: object, theirs: object = None) -> None:
    if not isinstance(ours, torch.Tensor) or not isinstance(theirs, torch.Tensor):
        return
    difference = (ours.double() - theirs.double()).abs().max().item()
    allowed = case.tolerance * theirs.double().abs().max().item()
    assert difference <= allowed, f"{case.name}: results differ by {difference}, {allowed} is allowed"
