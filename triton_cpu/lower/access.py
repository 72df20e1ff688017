"""Loads and stores of elements as memory keeps them: i1 as a byte, 16-bit floats as the integers of their bits."""

from __future__ import annotations

from triton_cpu.llvm import lanewise
from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.types import I1, PTR, SIZES, Type, spelled, stored

_REGISTER = 32  # bytes that AVX2 loads under a mask as fast as without one; its masked stores are slow on some machines
_AS_INTEGER = {"half": "i16"}  # of which LLVM would split masked accesses into branches


def load(b: Builder, elem: str, lanes: int, pointer: Value) -> Value:
    """`lanes` neighbouring elements, or one for 0."""
    return from_memory(b, b.load(Type(stored(elem), lanes), pointer), elem)


def store(b: Builder, value: Value, pointer: Value) -> None:
    """Store neighbouring elements, or one."""
    b.store(to_memory(b, value), pointer)


def masked_load(b: Builder, elem: str, pointer: Value, mask: Value, other: Value) -> Value:
    """Neighbouring elements; lanes without mask are not touched and read `other`."""
    instead = _bits(b, to_memory(b, other))
    by_instruction = SIZES[elem] in b.masked_sizes
    if b.gathers or (by_instruction and SIZES[elem] * instead.type.lanes <= _REGISTER):
        return from_memory(b, b.masked_load(instead.type, pointer, mask, instead), elem)
    every, some, after = b.name("every"), b.name("some"), b.name("after")
    b.branch_if(_all(b, mask), every, some)
    b.start(every)
    whole = b.load(instead.type, pointer)
    b.branch(after)
    b.start(some)
    if by_instruction:
        part = b.masked_load(instead.type, pointer, mask, instead)
    else:
        part = lanewise.load(b, pointer, mask, instead)
    b.branch(after)
    b.start(after)
    value = b.value(whole.type, f"phi {whole.type} [ {whole.text}, %{every} ], [ {part.text}, %{some} ]")
    return from_memory(b, value, elem)


def gather(b: Builder, elem: str, pointers: Value, mask: Value, other: Value) -> Value:
    """The elements at `pointers`; lanes without mask are not touched and read `other`."""
    instead = _bits(b, to_memory(b, other))
    if b.gathers:
        return from_memory(b, b.gather(instead.type, pointers, mask, instead), elem)
    return from_memory(b, lanewise.load(b, pointers, mask, instead), elem)


def masked_store(b: Builder, value: Value, pointer: Value, mask: Value) -> None:
    """Store neighbouring elements where the mask is set."""
    kept = _bits(b, to_memory(b, value))
    if b.gathers:
        b.masked_store(kept, pointer, mask)
        return
    every, some, after = b.name("every"), b.name("some"), b.name("after")
    b.branch_if(_all(b, mask), every, some)
    b.start(every)
    b.store(kept, pointer)
    b.branch(after)
    b.start(some)
    if SIZES[value.type.elem] in b.masked_sizes:
        b.masked_store(kept, pointer, mask)
    else:
        lanewise.store(b, kept, pointer, mask)
    b.branch(after)
    b.start(after)


def scatter(b: Builder, value: Value, pointers: Value, mask: Value) -> None:
    """Store elements at `pointers` where the mask is set."""
    kept = _bits(b, to_memory(b, value))
    if b.gathers:
        b.scatter(kept, pointers, mask)
    else:
        lanewise.store(b, kept, pointers, mask)


def _bits(b: Builder, value: Value) -> Value:
    return _as(b, value, value.type.of(_AS_INTEGER.get(value.type.elem, value.type.elem)))


def _all(b: Builder, mask: Value) -> Value:
    return b.intrinsic("vector.reduce.and", (mask,), I1)


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
