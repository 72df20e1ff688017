"""Loads and stores of elements as memory keeps them: i1 as a byte, 16-bit floats as the integers of their bits."""

from __future__ import annotations

from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.types import PTR, Type, spelled, stored

_AS_INTEGER = {"half": "i16"}  # masked accesses of these are split into branches by LLVM


def load(b: Builder, elem: str, lanes: int, pointer: Value) -> Value:
    """`lanes` neighbouring elements, or one for 0."""
    return from_memory(b, b.load(Type(stored(elem), lanes), pointer), elem)


def store(b: Builder, value: Value, pointer: Value) -> None:
    """Store neighbouring elements, or one."""
    b.store(to_memory(b, value), pointer)


def masked_load(b: Builder, elem: str, pointer: Value, mask: Value, other: Value) -> Value:
    """Neighbouring elements; lanes without mask are not touched and read `other`."""
    kept = Type(_AS_INTEGER.get(elem, stored(elem)), mask.type.lanes)
    return from_memory(b, b.masked_load(kept, pointer, mask, _as(b, to_memory(b, other), kept)), elem)


def gather(b: Builder, elem: str, pointers: Value, mask: Value, other: Value) -> Value:
    """The elements at `pointers`; lanes without mask are not touched and read `other`."""
    kept = Type(_AS_INTEGER.get(elem, stored(elem)), mask.type.lanes)
    return from_memory(b, b.gather(kept, pointers, mask, _as(b, to_memory(b, other), kept)), elem)


def masked_store(b: Builder, value: Value, pointer: Value, mask: Value) -> None:
    """Store neighbouring elements where the mask is set."""
    kept = to_memory(b, value)
    b.masked_store(_as(b, kept, kept.type.of(_AS_INTEGER.get(kept.type.elem, kept.type.elem))), pointer, mask)


def scatter(b: Builder, value: Value, pointers: Value, mask: Value) -> None:
    """Store elements at `pointers` where the mask is set."""
    kept = to_memory(b, value)
    b.scatter(_as(b, kept, kept.type.of(_AS_INTEGER.get(kept.type.elem, kept.type.elem))), pointers, mask)


def to_memory(b: Builder, value: Value) -> Value:
    """i1 as bytes 0 and 1."""
    return b.cast("zext", value, "i8") if value.type.elem == "i1" else value


def from_memory(b: Builder, value: Value, elem: str) -> Value:
    """The other way: a byte that is not 0 is true."""
    if elem == "i1" and value.type.elem == "i8":
        return b.compare("icmp ne", value, b.const(value.type, 0))
    return _as(b, value, value.type.of(elem))


def pointers(b: Builder, base: Value, offsets: Value, elem: str) -> Value:
    """Vector of ``base + offsets`` (i64, elements)."""
    to = Type("ptr", offsets.type.lanes)
    return b.value(to, f"getelementptr {spelled(stored(elem))}, {base.type} {base.text}, {offsets.type} {offsets.text}")


def _as(b: Builder, value: Value, to: Type) -> Value:
    if value.type == to or value.type.elem == PTR.elem:
        return value
    if value.text in ("poison", "zeroinitializer"):
        return Value(value.text, to)
    return b.bitcast(value, to)
