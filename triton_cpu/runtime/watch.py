"""The tensors of a recording, with the addresses that they must keep."""

from __future__ import annotations

import ctypes
from typing import Any

from triton_cpu.runtime.replay import TensorHandle, WatchArray, WatchEntry

_FIRST_SIZE = 64


class WatchTable:
    """A table for native code in which each tensor stands once, however many launches take it.

    Attributes:
        address: where native code finds the WatchArray of the table, now and later.
    """

    def __init__(self) -> None:
        self._handles: list[TensorHandle | None] = []
        self._users: list[int] = []
        self._places: dict[tuple[int, int], int] = {}  # (id of the tensor, address) -> place in the table
        self._free: list[int] = []
        self._entries = (WatchEntry * _FIRST_SIZE)()
        self._array = WatchArray(ctypes.addressof(self._entries), 0)
        self.address = ctypes.addressof(self._array)

    def add(self, tensor: Any, address: int) -> int:
        """Keep `tensor` and watch that its data stays at `address`; the place in the table. One remove per add."""
        key = (id(tensor), address)
        place = self._places.get(key)
        if place is None:
            place = self._enter(TensorHandle(tensor), address)
            self._places[key] = place
        self._users[place] += 1
        return place

    def remove(self, place: int) -> None:
        """Undo one add."""
        self._users[place] -= 1
        handle = self._handles[place]
        if self._users[place] == 0 and handle is not None:
            del self._places[id(handle.tensor), self.expected(place)]
            self._entries[place] = WatchEntry(None, None)
            self._handles[place] = None
            self._free.append(place)

    def expected(self, place: int) -> int:
        """The address at which the tensor in this place must be."""
        return self._entries[place].expected or 0

    def _enter(self, handle: TensorHandle, address: int) -> int:
        if self._free:
            place = self._free.pop()
        else:
            place = len(self._handles)
            if place == len(self._entries):
                self._grow()
            self._handles.append(None)
            self._users.append(0)
        self._handles[place] = handle
        self._entries[place] = WatchEntry(handle.value, address)
        self._array.length = len(self._handles)
        return place

    def _grow(self) -> None:
        entries = (WatchEntry * (2 * len(self._entries)))()
        ctypes.memmove(entries, self._entries, ctypes.sizeof(self._entries))
        self._array.entries = ctypes.addressof(entries)
        self._entries = entries
