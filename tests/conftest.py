"""Every test: uninitialised memory shows, and tests that need other hardware are skipped, and counted at the end."""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils._device import _device_constructors

from tests import target

NEEDS = {  # marker -> is it here?
    "amx": target.has_amx,
    "gpu": target.has_gpu,
    **{name: functools.partial(target.has, name) for name in ("avx2", "avx512", "avx512_bf16", "avx512_vnni")},
}
_ABSENT = re.compile(r"no (\w+) on this machine")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def pytest_configure(config: pytest.Config) -> None:
    """Processes that share the machine (pytest -n) share its threads: teams that outnumber the cores wait for turns."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    torch.set_num_threads(max(1, torch.get_num_threads() // processes))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse a name that holds an address: it differs between the processes of pytest -n, which then run nothing."""
    if _ADDRESS.search(item.nodeid):
        raise pytest.UsageError(f"{item.nodeid}: a parameter's id shows an address; give it a name")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose hardware is absent."""
    for marker, present in NEEDS.items():
        if item.get_closest_marker(marker) and not present():
            pytest.skip(f"no {marker} on this machine")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests did not run for want of hardware."""
    reasons = (_ABSENT.search(str(report.longrepr)) for report in terminalreporter.stats.get("skipped", []))
    skipped = Counter(reason.group(1) for reason in reasons if reason)
    if skipped:
        counts = ", ".join(f"{marker} {count}" for marker, count in sorted(skipped.items()))
        terminalreporter.write_line(f"not run for want of hardware: {counts}", yellow=True)


@pytest.fixture(scope="session", autouse=True)
def uninitialised_memory_shows() -> Iterator[None]:
    """``torch.empty`` and its kin return NaN, True, or a large odd integer, so that no test passes by luck."""
    with pytest.MonkeyPatch.context() as patch:
        _device_constructors()  # ``with torch.device()`` remembers the functions it acts on: the originals
        for holder, name in (
            (torch, "empty"),
            (torch, "empty_like"),
            (torch, "empty_strided"),
            (torch.Tensor, "new_empty"),
            (torch.Tensor, "new_empty_strided"),
        ):
            patch.setattr(holder, name, _filled(getattr(holder, name)))
        yield


def _filled(create: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(create)
    def filled(*args: Any, **kwargs: Any) -> torch.Tensor:
        tensor = create(*args, **kwargs)
        # Subclasses (fake, functional, quantised tensors) and meta tensors have no memory of their own to show.
        if type(tensor) is torch.Tensor and not tensor.is_meta and tensor.numel() and "out" not in kwargs:
            with torch.no_grad():
                tensor.fill_(_garbage(tensor.dtype))
        return tensor

    return filled


def _garbage(dtype: torch.dtype) -> float | int | bool:
    if dtype.is_floating_point or dtype.is_complex:
        return float("nan")
    if dtype == torch.bool:
        return True
    return torch.iinfo(dtype).max - 2  # odd, and outside of every table
