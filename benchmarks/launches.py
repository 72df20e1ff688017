"""What a launch costs: an addition of 16 elements, launched in each way there is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from benchmarks.case import Case
from benchmarks.timer import Run
from examples.tutorials.vector_add import add_kernel
from triton_cpu import bind, record

ELEMENTS = 16


def cases(tiny: bool = False) -> Iterator[Case]:
    """All of the family; `tiny`: a shorter recording."""
    recorded = 3 if tiny else 256
    yield Case("launch/kernel[grid]", "torch.add(out=)", _plain, bars=(0.25, 0.25), serial=True)
    yield Case("launch/bound", "torch.add(out=)", _bound, bars=(1.0, 1.0), serial=True)
    yield Case(
        f"launch/replay of {recorded}", f"{recorded} torch.add(out=)", lambda: _replay(recorded), bars=(20.0, 20.0),
        serial=True,
    )  # fmt: skip


def _plain() -> tuple[Run, Run]:
    x, y, out, expected = torch.randn(4, ELEMENTS).unbind()

    def ours() -> torch.Tensor:
        add_kernel[(1,)](x, y, out, ELEMENTS, BLOCK=ELEMENTS)
        return out

    return ours, partial(torch.add, x, y, out=expected)


def _bound() -> tuple[Run, Run]:
    x, y, out, expected = torch.randn(4, ELEMENTS).unbind()
    return bind(add_kernel, (1,), x, y, out, ELEMENTS, BLOCK=ELEMENTS), partial(torch.add, x, y, out=expected)


def _replay(launches: int) -> tuple[Run, Run]:
    """A chain, each launch on tensors of its own."""
    x, y = torch.randn(2, ELEMENTS).unbind()
    ours, expected = torch.zeros(2, launches + 1, ELEMENTS).unbind()
    links = list(zip(ours.unbind()[:-1], ours.unbind()[1:], strict=True))
    with record() as recording:
        for before, after in links:
            add_kernel[(1,)](before, y, after, ELEMENTS, BLOCK=ELEMENTS)

    adds = [partial(torch.add, a, y, out=b) for a, b in zip(expected.unbind()[:-1], expected.unbind()[1:], strict=True)]
    ours[0], expected[0] = x, x

    def replay() -> torch.Tensor:
        recording.replay()
        return ours

    def baseline() -> torch.Tensor:
        for add in adds:
            add()
        return expected

    return replay, baseline
