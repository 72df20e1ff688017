"""Recorded sequences: launches captured while they run, then run again in one native call."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from triton_cpu.errors import ArgumentError, LaunchError
from triton_cpu.runtime.capture import RECORDING, Captured, CapturedLaunch
from triton_cpu.runtime.relocate import require_same_layout
from triton_cpu.runtime.replay import LaunchEntry, replayer
from triton_cpu.runtime.team import TEAM
from triton_cpu.runtime.watch import WatchTable


@contextlib.contextmanager
def record() -> Iterator[Recording]:
    """Run the block as usual and capture every kernel that this thread launches on the CPU in it.

    Kernels started as `kernel[grid](...)` and through handles of `bind` are captured, launches of an empty grid, of
    other threads and of an autotuner that tries candidates are not. Nor is anything but kernels: operations of PyTorch
    and Python code between them are not repeated by a replay.

    Returns:
        The recording, which can be replayed after the block. It stays empty for good if the block raises.

    Raises:
        LaunchError: this thread is recording already.
    """
    thread = threading.get_ident()
    if thread in RECORDING:
        raise LaunchError("this thread is recording already: record() cannot be nested")
    recording = Recording()
    RECORDING[thread] = recording._captured
    try:
        yield recording
        recording._finish()
    except BaseException as error:
        recording._abandon(error)
        raise
    finally:
        RECORDING.pop(thread, None)


class Recording:
    """A sequence of launches, made by `record`: `len` tells how many, indexing gives one, `replay` runs all.

    Grids and compiled code are those of the recording. The code and the tensors among the arguments are kept alive,
    buffers made inside the block included. Launch hooks of Triton (profilers) do not see replays.
    """

    def __init__(self) -> None:
        self._captured = Captured()
        self._launches = self._captured.launches
        self._start: Callable[[int], int] = functools.partial(_refuse, "it is still being made")

    def replay(self) -> None:
        """Run the launches in order, with the thread count of the moment, and return when they are done.

        Raises:
            LaunchError: the memory of a tensor was freed or moved since the recording (nothing is run then), the
                recording is not finished, or this thread is recording, which would not capture the replay.
        """
        if RECORDING and threading.get_ident() in RECORDING:
            _refuse("this thread is recording, and a replay is not captured", 0)
        stale = self._start(TEAM.size())
        if stale >= 0:
            raise LaunchError(next(words for launch in self._launches if (words := launch.stale(stale))))

    def replace(self, old: Any, new: Any) -> None:
        """Let every pointer into the storage of `old` point to the same place relative to `new`, in all launches.

        Args:
            old: a tensor. Views of its storage are moved along, at their distance from it.
            new: a tensor of the same dtype, shape and strides.

        Raises:
            ArgumentError: no launch has such a pointer, or the new place does not fit the layout or the code (see
                CapturedLaunch.update); nothing is changed then.
        """
        require_same_layout(old, new)
        changes = [(launch, launch.replacements(old, new)) for launch in self._launches]
        if not any(found for _, found in changes):
            raise ArgumentError(f"no launch of the recording has a pointer into the storage of the {old.shape} tensor")
        for launch, found in changes:
            launch.put(found)

    def __len__(self) -> int:
        return len(self._launches)

    def __getitem__(self, index: int) -> CapturedLaunch:
        return self._launches[index]

    def _finish(self) -> None:
        """Make the table that native code runs."""
        self._table = (LaunchEntry * len(self._launches))(*[launch.entry() for launch in self._launches])
        count = len(self._launches)
        watches = self._captured.watches.address
        self._start = functools.partial(replayer(), watches, ctypes.addressof(self._table), count)

    def _abandon(self, error: BaseException) -> None:
        self._launches.clear()
        self._captured.watches = WatchTable()
        self._start = functools.partial(_refuse, f"its block raised {type(error).__name__}: {error}")


def _refuse(reason: str, threads: int) -> int:
    raise LaunchError(f"the recording cannot be replayed: {reason}")
