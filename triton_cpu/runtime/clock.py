"""The part of a torch device interface that `triton.testing.do_bench` uses, for a device that runs synchronously."""

from __future__ import annotations

import time


class Event:
    """A point in time.

    Args:
        enable_timing: as for torch.cuda.Event; events here always keep time.
    """

    def __init__(self, enable_timing: bool = True) -> None:
        self._nanoseconds = 0

    def record(self) -> None:
        """Note the current time."""
        self._nanoseconds = time.perf_counter_ns()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to `end`."""
        return (end._nanoseconds - self._nanoseconds) / 1e6


class HostInterface:
    """Stands where torch.cuda stands for a GPU driver."""

    Event = Event

    @staticmethod
    def synchronize() -> None:
        """Launches return when they are done; nothing is outstanding."""

    @staticmethod
    def current_device() -> int:
        """The processor is device 0."""
        return 0
