"""Launches on their way into a recording."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from triton.runtime.jit import JITFunction

from triton_cpu.errors import ArgumentError
from triton_cpu.runtime.fit import require_fit
from triton_cpu.runtime.pack import SLOT_BYTES, Packer
from triton_cpu.runtime.relocate import moved, owner, shares_storage
from triton_cpu.runtime.replay import LaunchEntry
from triton_cpu.runtime.watch import WatchTable

# Thread identifier -> recording that this thread makes. Empty nearly always: a launch asks that first.
RECORDING: dict[int, Captured] = {}


def capture(
    source: Any,
    packer: Packer,
    function: Any,
    grid: tuple[int, int, int],
    block: bytes,
    arguments: Sequence[Any],
) -> None:
    """Add a launch to the recording that this thread makes, if it makes one."""
    captured = RECORDING.get(threading.get_ident())
    if captured is not None:
        place = f"launch {len(captured.launches)} of the recording (kernel {source.name!r})"
        launch = CapturedLaunch(place, source, packer, function, grid, block, arguments, captured.watches)
        captured.launches.append(launch)


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Launches of this thread are not captured inside, such as those that time the candidates of an autotuner."""
    thread = threading.get_ident()
    captured = RECORDING.pop(thread, None)
    try:
        yield
    finally:
        if captured is not None:
            RECORDING[thread] = captured


class Captured:
    """What a recording has captured: launches, and their tensors."""

    def __init__(self) -> None:
        self.launches: list[CapturedLaunch] = []
        self.watches = WatchTable()


@dataclass(frozen=True)
class _Pointer:
    """Where a pointer is: argument, positions inside tuples, slot of the block."""

    index: int
    path: tuple[int, ...]
    slot: int


@dataclass  # not frozen, which would take longer to make
class _Change:
    """A new argument, ready to be put in."""

    index: int
    value: Any
    offset: int
    data: bytes


class CapturedLaunch:
    """One launch of a recording: code, grid, arguments. It keeps the code and the tensors alive.

    Attributes:
        function: the compiled function, that of Triton's compiled kernel.
    """

    def __init__(
        self,
        place: str,
        source: Any,
        packer: Packer,
        function: Any,  # a ctypes function, which keeps the code alive
        grid: tuple[int, int, int],
        block: bytes,
        arguments: Sequence[Any],
        watches: WatchTable,
    ) -> None:
        self._place, self._source, self._packer = place, source, packer
        self.function, self._grid = function, grid
        self._arguments = list(arguments)
        self._block = ctypes.create_string_buffer(block, max(len(block), SLOT_BYTES))
        self._pointers = [_Pointer(*pointer) for pointer in packer.pointers()]
        self._table = watches
        self._watches = [self._watch(pointer) for pointer in self._pointers]

    @property
    def name(self) -> str:
        """The kernel's name."""
        return str(self._source.fn.__name__)

    def entry(self) -> LaunchEntry:
        """The launch as native code reads it. What it points at stays in place and belongs to this object."""
        return LaunchEntry(
            ctypes.cast(self.function, ctypes.c_void_p).value, ctypes.addressof(self._block), *self._grid, 0
        )

    def update(self, **values: Any) -> None:
        """Replace arguments by name for the replays to come.

        A value must fit the code that was recorded: the type, the divisibility by 16 where the code relies on it, and
        what is compiled in (constexpr parameters, None, integers that were 1) as it is. The grid stays as recorded.

        Raises:
            ArgumentError: an unknown name, or a value that does not fit; nothing is changed then.
        """
        self.put([self._change(self._position(name), value) for name, value in values.items()])

    def replacements(self, old: Any, new: Any) -> list[_Change]:
        """The changes after which every pointer into the storage of `old` points to the same place beside `new`."""
        arguments: dict[int, Any] = {}
        for pointer in self._pointers:
            value = self._argument(pointer)
            if shares_storage(value, old):
                whole = arguments.get(pointer.index, self._arguments[pointer.index])
                try:
                    arguments[pointer.index] = _with(whole, pointer.path, moved(value, old, new))
                except ArgumentError as error:
                    raise self._error(pointer.index, error) from error
        return [self._change(index, value) for index, value in arguments.items()]

    def put(self, changes: list[_Change]) -> None:
        """Make prepared changes."""
        for change in changes:
            ctypes.memmove(ctypes.addressof(self._block) + change.offset, change.data, len(change.data))
            self._arguments[change.index] = change.value
            for number, pointer in enumerate(self._pointers):
                if pointer.index == change.index:
                    old, self._watches[number] = self._watches[number], self._watch(pointer)
                    if old is not None:
                        self._table.remove(old)

    def stale(self, watch: int) -> str | None:
        """What to say when the tensor in this place of the watch table has moved; None if it is not of this launch."""
        if watch not in self._watches:
            return None
        pointer = self._pointers[self._watches.index(watch)]
        was, now = self._table.expected(watch), self._argument(pointer).data_ptr()
        return (
            f"{self._place}: the memory of argument {self._packer.names[pointer.index]!r} was freed or moved "
            f"(from {was:#x} to {now:#x}); nothing was run. Record anew, or give the launch its new memory with "
            "update() or replace() of the recording"
        )

    def _position(self, name: str) -> int:
        names = self._packer.names
        if name not in names:
            raise ArgumentError(f"{self._place} has no argument {name!r}; it has {', '.join(names)}")
        return names.index(name)

    def _change(self, index: int, value: Any) -> _Change:
        source = self._source
        if not isinstance(getattr(source, "fn", None), JITFunction) or len(source.signature) != len(self._packer.names):
            raise ArgumentError(
                f"{self._place}: its arguments cannot be replaced, for it takes a tensor descriptor or was not "
                "compiled from a @triton.jit function; record anew"
            )
        try:
            require_fit(source, index, value)
        except ArgumentError as error:
            raise self._error(index, error) from error
        offset, data = self._packer.pack_one(index, value)
        return _Change(index, value, offset, data)

    def _watch(self, pointer: _Pointer) -> int | None:
        """Place in the watch table of the tensor of this pointer, which must stay at the address that the block holds.

        None for a pointer that is no tensor (a raw address): its memory is the caller's business.
        """
        tensor = owner(self._argument(pointer))
        if not isinstance(tensor, torch.Tensor):
            return None
        return self._table.add(tensor, ctypes.c_uint64.from_buffer(self._block, pointer.slot * SLOT_BYTES).value)

    def _argument(self, pointer: _Pointer) -> Any:
        return _at(self._arguments[pointer.index], pointer.path)

    def _error(self, index: int, error: ArgumentError) -> ArgumentError:
        return ArgumentError(f"{self._place}, argument {self._packer.names[index]!r}: {error}")


def _at(value: Any, path: tuple[int, ...]) -> Any:
    for position in path:
        value = value[position]
    return value


def _with(value: Any, path: tuple[int, ...], part: Any) -> Any:
    """`value`, a tuple of tuples, with `part` at `path`."""
    if not path:
        return part
    parts = list(value)
    parts[path[0]] = _with(parts[path[0]], path[1:], part)
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
