"""How many threads a launch may use, in this process and after a fork.

The worker threads of an OpenMP pool do not survive fork(), and the runtime of GNU does not notice: a child that enters
a parallel region of more than one thread waits for ever. So a child of a process that may have had such a pool runs its
kernels on one thread, which gives the same bits, and so do PyTorch's operations between them, which use the same pool.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

_PF_FORKNOEXEC = 0x40  # include/linux/sched.h: the process was forked and has not called exec since
_POOL_LIBRARIES = ("libgomp", "libiomp5", "libomp")


class Team:
    """The thread count of launches.

    Args:
        pool_may_be_dead: this process was forked, before now, from one that may have started OpenMP threads.

    Attributes:
        size: a function giving the number of threads for the next launch (torch's, or 1 in a forked child). It replaces
            itself after the first call, so read the attribute for every launch.
    """

    def __init__(self, pool_may_be_dead: bool) -> None:
        self.size: Callable[[], int] = self._choose
        self._pool_may_be_dead = pool_may_be_dead
        self._threads_before_fork = 1

    def watch_forks(self) -> None:
        """Ask Python to report forks of this process from now on."""
        os.register_at_fork(before=self._before_fork, after_in_child=self._after_fork_in_child)

    def _before_fork(self) -> None:
        self._threads_before_fork = _native_threads()

    def _after_fork_in_child(self) -> None:
        if self._threads_before_fork > 1:
            self._pool_may_be_dead = True
            self.size = self._choose

    def _choose(self) -> int:
        import torch

        if not self._pool_may_be_dead:
            self.size = torch.get_num_threads
        else:
            self.size = _one
            if torch.get_num_threads() > 1:
                warnings.warn(
                    "this process was forked from one that had started threads. An OpenMP pool does not survive that, "
                    "so Triton kernels and PyTorch run on 1 thread here. Start workers with the multiprocessing method "
                    "'spawn' to use all threads",
                    RuntimeWarning,
                    stacklevel=4,
                )
                torch.set_num_threads(1)
        return self.size()


def forked_from_pool() -> bool:
    """Whether this process was forked, not started anew, from one that has an OpenMP runtime loaded."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        if not int(fields[6]) & _PF_FORKNOEXEC:
            return False
        mapped = Path(f"/proc/{os.getppid()}/maps").read_text()
    except FileNotFoundError:  # no /proc on this system: the fork hooks are all there is
        return False
    except PermissionError:  # the parent is gone and another user's process has adopted this one
        return True
    return any(library in mapped for library in _POOL_LIBRARIES)


def _native_threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 2  # unknown: assume that there are some


def _one() -> int:
    return 1


TEAM = Team(forked_from_pool())
TEAM.watch_forks()
