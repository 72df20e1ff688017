"""Launches on their way into a recording."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from triton.runtime.jit import JITFunction

from triton_cpu.errors import ArgumentError
from triton_cpu.runtime.fit import require_fit
from triton_cpu.runtime.pack import SLOT_BYTES, Packer
from triton_cpu.runtime.relocate import moved, owner, shares_storage
from triton_cpu.runtime.replay import LaunchEntry, TensorHandle, WatchEntry

# Thread identifier -> launches of the recording that this thread makes. Empty nearly always: a launch asks that first.
RECORDING: dict[int, list[CapturedLaunch]] = {}


def capture(
    source: Any,
    packer: Packer,
    function: Any,
    grid: tuple[int, int, int],
    block: bytes,
    arguments: Sequence[Any],
) -> None:
    """Add a launch to the recording that this thread makes, if it makes one."""
    launches = RECORDING.get(threading.get_ident())
    if launches is not None:
        place = f"launch {len(launches)} of the recording (kernel {source.name!r})"
        launches.append(CapturedLaunch(place, source, packer, function, grid, block, arguments))


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Launches of this thread are not captured inside, such as those that time the candidates of an autotuner."""
    thread = threading.get_ident()
    launches = RECORDING.pop(thread, None)
    try:
        yield
    finally:
        if launches is not None:
            RECORDING[thread] = launches


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
    handles: dict[int, TensorHandle]  # number of the pointer -> its new tensor


class CapturedLaunch:
    """One launch of a recording: code, grid, arguments. It keeps the code and the tensors alive."""

    def __init__(
        self,
        place: str,
        source: Any,
        packer: Packer,
        function: Any,  # a ctypes function, which keeps the code alive
        grid: tuple[int, int, int],
        block: bytes,
        arguments: Sequence[Any],
    ) -> None:
        self._place, self._source, self._packer = place, source, packer
        self._function, self._grid = function, grid
        self._arguments = list(arguments)
        self._block = ctypes.create_string_buffer(block, max(len(block), SLOT_BYTES))
        self._pointers = [_Pointer(*pointer) for pointer in packer.pointers()]
        self._handles = [TensorHandle(owner(self._argument(pointer))) for pointer in self._pointers]
        self._watches = (WatchEntry * len(self._pointers))()
        for number, handle in enumerate(self._handles):
            self._watch(number, handle)

    def entry(self) -> LaunchEntry:
        """The launch as native code reads it. What it points at stays in place and belongs to this object."""
        return LaunchEntry(
            ctypes.cast(self._function, ctypes.c_void_p).value, ctypes.addressof(self._block), *self._grid, 0,
            ctypes.addressof(self._watches), len(self._watches),
        )  # fmt: skip

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
            for number, handle in change.handles.items():
                self._watch(number, handle)

    def stale(self) -> str:
        """What to say when a tensor has moved: which, and from where to where."""
        for number, pointer in enumerate(self._pointers):
            was = self._watches[number].expected or 0
            if self._handles[number].value and (now := self._argument(pointer).data_ptr()) != was:
                return (
                    f"{self._place}: the memory of argument {self._packer.names[pointer.index]!r} was freed or moved "
                    f"(from {was:#x} to {now:#x}); nothing was run. Record anew, or give the launch its new memory "
                    "with recording[...].update() or recording.replace()"
                )
        return f"{self._place}: the memory of an argument was freed or moved while the replay began; nothing was run"

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
        handles = {
            number: TensorHandle(owner(_at(value, pointer.path)))
            for number, pointer in enumerate(self._pointers)
            if pointer.index == index
        }
        return _Change(index, value, offset, data, handles)

    def _watch(self, number: int, handle: TensorHandle) -> None:
        """From now on the tensor of this pointer must stay at the address that the block holds."""
        start = self._pointers[number].slot * SLOT_BYTES
        address = ctypes.c_uint64.from_buffer(self._block, start).value
        self._watches[number] = WatchEntry(handle.value, address)
        self._handles[number] = handle

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
