"""Memory whose neighbours show, or forbid, every access outside of it."""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
from collections.abc import Callable

import torch

_LIBC = ctypes.CDLL(None, use_errno=True)
_CANARY = 0x5A


class Canary:
    """A tensor inside of a larger one whose other bytes must stay as they are."""

    def __init__(self, tensor: torch.Tensor, room: int = 256) -> None:
        size = tensor.numel() * tensor.element_size()
        self._bytes = torch.full((room + size + room,), _CANARY, dtype=torch.uint8)
        self._inside = slice(room, room + size)
        self.tensor = self._bytes[self._inside].view(tensor.dtype).view(tensor.shape)
        self.tensor.copy_(tensor)

    def outside_is_untouched(self) -> bool:
        """Whether the bytes before and after the tensor have kept their value."""
        outside = torch.cat([self._bytes[: self._inside.start], self._bytes[self._inside.stop :]])
        return bool((outside == _CANARY).all())


class Walled:
    """A copy of a tensor that ends where memory may not be touched: an access behind it kills the process."""

    def __init__(self, tensor: torch.Tensor) -> None:
        size = tensor.numel() * tensor.element_size()
        page = mmap.PAGESIZE
        room = (size + page - 1) // page * page
        self._memory = mmap.mmap(-1, room + page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        if _LIBC.mprotect(ctypes.c_void_p(start + room), page, 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
        every = torch.frombuffer(self._memory, dtype=torch.uint8, count=room)
        self.tensor = every[room - size :].view(tensor.dtype).view(tensor.shape)
        self.tensor.copy_(tensor)


def survives(run: Callable[[], bool]) -> bool:
    """Whether a forked child in which `run` returns true ends well; a child that touches forbidden memory does not."""
    child = os.fork()
    if child == 0:
        status = 1
        faulthandler.disable()  # the parent reports
        try:
            status = 0 if run() else 2
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0
