"""Kernel arguments to the block of 8-byte slots that compiled code reads."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from triton_cpu.errors import ArgumentError
from triton_cpu.runtime.start import HEADER

SLOT_BYTES = 8
# Triton type -> format character of `struct`; bf16 has none and travels as its bit pattern.
_FORMATS = {
    "i1": "?", "u1": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q",
    "fp16": "e", "bf16": "H", "fp32": "f", "f32": "f", "fp64": "d",
}  # fmt: skip

# What does not fit is packed again with care: that converts the value, or names the argument at fault.
_BLOCK = """
def block(code, x, y, z, a):
    try:
        return pack(code, x, y, z, {values})
    except (error, OverflowError, TypeError, AttributeError, IndexError, ValueError):
        return careful(code, x, y, z, a)
"""


@dataclass(frozen=True)
class _Leaf:
    """One slot: where its value sits inside the parameter (a path through nested tuples) and its Triton type."""

    path: tuple[int, ...]
    type: str

    def format(self, name: str) -> str:
        code = "Q" if self.type.startswith("*") else _FORMATS.get(self.type)
        if code is None:
            raise ArgumentError(f"argument {name!r}: type {self.type!r} cannot be passed to a CPU kernel")
        return f"{code}{SLOT_BYTES - struct.calcsize(code)}x"

    def expression(self, index: int) -> str:
        """Python that gives what `struct` packs, for the leaf of parameter `index` of the sequence `a`."""
        value = "".join(f"[{position}]" for position in (index, *self.path))
        if self.type.startswith("*"):
            return f"v if type(v := a{value}) is int else address(v)"
        return f"bits(a{value})" if self.type == "bf16" else f"a{value}"


@dataclass(frozen=True)
class _Parameter:
    index: int
    name: str
    first_slot: int
    leaves: tuple[_Leaf, ...]


class Packer:
    """Packs the arguments of one kernel signature.

    Args:
        signature: parameter name -> Triton type ("*fp32", "i32", "constexpr", ..., or a tuple of them), in order.
            Constexpr parameters take no slot; a tuple takes one per leaf.

    Attributes:
        names: the parameter names.
        slots: how many slots a block has.
        block: a function (code, x, y, z, arguments) that gives what start.py takes: the address of the compiled
            function and the grid, whose sizes are in range (launch.check_grid), then what `pack` gives. It is quickest
            where the addresses of tensors stand in their places.

    Raises:
        ArgumentError: a type that has no slot form.
    """

    def __init__(self, signature: dict[str, Any]) -> None:
        self.names = tuple(str(name) for name in signature)
        self._parameters: list[_Parameter] = []
        slots = 0
        for index, (name, type_) in enumerate(signature.items()):
            leaves = tuple(_leaves(type_))
            if not leaves:
                continue
            self._parameters.append(_Parameter(index, str(name), slots, leaves))
            slots += len(leaves)
        self.slots = slots
        self._by_index = {parameter.index: parameter for parameter in self._parameters}
        self.block = self._generate()

    def pack(self, arguments: Sequence[Any]) -> bytes:
        """The argument block for `arguments`, one value per parameter of the signature, constexpr ones included.

        Raises:
            ArgumentError: a value of the wrong type or range, or a tensor that is not in CPU memory.
        """
        if len(arguments) < self._minimum():
            raise ArgumentError(f"the kernel takes {self._minimum()} arguments, {len(arguments)} were given")
        return b"".join(self.pack_one(p.index, arguments[p.index])[1] for p in self._parameters)

    def pack_one(self, index: int, value: Any) -> tuple[int, bytes]:
        """Byte offset and new bytes of the slots of parameter `index` (none for a constexpr one)."""
        parameter = self._by_index.get(index)
        if parameter is None:
            return 0, b""
        data = b"".join(_pack_leaf(parameter.name, leaf, value) for leaf in parameter.leaves)
        return parameter.first_slot * SLOT_BYTES, data

    def pointers(self) -> Iterator[tuple[int, tuple[int, ...], int]]:
        """(index of the parameter, positions inside its tuples, slot) of each pointer."""
        for parameter in self._parameters:
            for slot, leaf in enumerate(parameter.leaves, parameter.first_slot):
                if leaf.type.startswith("*"):
                    yield parameter.index, leaf.path, slot

    def _generate(self) -> Callable[[int, int, int, int, Sequence[Any]], bytes]:
        """The function `block`, made for this signature: a loop over parameters takes longer than a small kernel."""
        leaves = [(parameter, leaf) for parameter in self._parameters for leaf in parameter.leaves]
        layout = struct.Struct(HEADER.format + "".join(leaf.format(parameter.name) for parameter, leaf in leaves))
        values = ", ".join(leaf.expression(parameter.index) for parameter, leaf in leaves)
        names: dict[str, Any] = {
            "pack": layout.pack, "error": struct.error, "careful": self._block, "address": _address,
            "bits": _bfloat16_bits,
        }  # fmt: skip
        exec(_BLOCK.format(values=values), names)
        block: Callable[..., bytes] = names["block"]
        return block

    def _block(self, code: int, x: int, y: int, z: int, arguments: Sequence[Any]) -> bytes:
        return HEADER.pack(code, x, y, z) + self.pack(arguments)

    def _minimum(self) -> int:
        return max((p.index + 1 for p in self._parameters), default=0)


def _leaves(type_: Any, path: tuple[int, ...] = ()) -> Iterator[_Leaf]:
    if isinstance(type_, (tuple, list)):
        for position, inner in enumerate(type_):
            yield from _leaves(inner, (*path, position))
    elif type_ != "constexpr":
        yield _Leaf(path, type_)


def _address(value: Any) -> int:
    """Address of a pointer argument: a CPU tensor, anything with data_ptr(), a raw address, or None for null."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    if not getattr(value, "is_cpu", False):  # quicker than looking at the device
        device = getattr(value, "device", None)
        if getattr(device, "type", "cpu") != "cpu":
            raise ArgumentError(f"a tensor on device {device} was given to a CPU kernel; move it with .cpu()")
    address: int = value.data_ptr()
    return address


def _pack_leaf(name: str, leaf: _Leaf, argument: Any) -> bytes:
    value = argument
    try:
        for position in leaf.path:
            value = value[position]
        if leaf.type.startswith("*"):
            return struct.pack("<Q", _address(value))
        return struct.pack("<" + leaf.format(name), _convert(leaf.type, value))
    except ArgumentError as error:
        raise ArgumentError(f"argument {name!r}: {error}") from None
    except (struct.error, TypeError, AttributeError, IndexError, ValueError) as error:
        kind = type(value).__name__
        raise ArgumentError(
            f"argument {name!r}: {value!r} ({kind}) cannot be passed as {leaf.type}: {error}"
        ) from error


def _convert(type_: str, value: Any) -> Any:
    """The value `struct` packs: floats rounded as C does (beyond the range: infinity), bf16 as its bits."""
    if type_ == "bf16":
        return _bfloat16_bits(float(value))
    if type_ in ("fp32", "f32", "fp16"):
        number = float(value)
        try:
            struct.pack("<e" if type_ == "fp16" else "<f", number)
        except OverflowError:
            return float("inf") if number > 0 else float("-inf")
        return number
    return value


def _bfloat16_bits(value: float) -> int:
    """Bits of the bfloat16 nearest to `value` rounded to float32 first, ties to even."""
    number = _convert("fp32", value)
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    if number != number:  # NaN: keep it one whatever its payload
        return int(bits >> 16) | 0x40
    return int((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)
