"""A small writer of LLVM's textual IR: typed values, folding of index arithmetic, structured loops.

Text rather than llvmlite.ir, which lacks types and intrinsics that kernels need.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from triton_cpu.llvm.types import I1, I64, PTR, SIZES, VOID, Type, spelled


class Value(NamedTuple):
    """An SSA name or a literal, with its type."""

    text: str
    type: Type


Index = int | Value  # an i64 known now, or one computed at run time

# bytes of one buffer on the stack, and of all of them; what is larger lives in the thread's arena
_BUFFER_LIMIT = 64 * 1024
_FRAME_LIMIT = 512 * 1024


def literal(elem: str, number: float | int | bool) -> str:
    """The spelling of a number as a constant of element `elem` (rounded to nearest even)."""
    if elem == "ptr":
        return "null" if number == 0 else f"inttoptr (i64 {int(number)} to ptr)"
    if elem == "i1":
        return "true" if number else "false"
    if elem not in ("half", "bfloat", "float", "double"):
        return str(int(number))
    value = float(number)
    if elem == "half":
        try:
            bits = struct.unpack("<H", struct.pack("<e", value))[0]
        except OverflowError:
            bits = 0x7C00 if value > 0 else 0xFC00
        return f"0xH{bits:04X}"
    try:
        single = struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        single = 0x7F800000 if value > 0 else 0xFF800000
    if elem == "bfloat":
        return str(0x7FC0 if value != value else (single + 0x7FFF + ((single >> 16) & 1)) >> 16)
    if elem == "float":
        value = struct.unpack("<f", struct.pack("<I", single))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Builder:
    """Writes the body of one function; module-level pieces (declarations, globals) are collected beside it."""

    def __init__(self, declarations: dict[str, str], globals_: dict[str, str], features: Collection[str] = ()) -> None:
        self.declarations = declarations
        self.globals = globals_
        # what the processor has: bytes of the elements it loads and stores under a mask; vectors of addresses
        self.gathers = "avx512" in features
        self.masked_sizes = (1, 2, 4, 8) if self.gathers else (4, 8) if "avx2" in features else ()
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.arena_bytes = 0
        self.frame_bytes = 0
        self.block = "entry"
        self._count = 0

    # -- text ------------------------------------------------------------------------------------------------------
    def name(self, prefix: str = "v") -> str:
        """A new name for a value or a label."""
        self._count += 1
        return f"{prefix}{self._count}"

    def emit(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append("  " + text)

    def value(self, type_: Type, text: str) -> Value:
        """Write an instruction; its result."""
        name = "%" + self.name()
        self.lines.append(f"  {name} = {text}")
        return Value(name, type_)

    # -- constants -------------------------------------------------------------------------------------------------
    def const(self, type_: Type, number: float | int | bool) -> Value:
        """A number as a scalar, or in every lane."""
        text = literal(type_.elem, number)
        return Value(text if type_.lanes == 0 else f"splat ({Type(type_.elem)} {text})", type_)

    def index(self, i: Index) -> Value:
        """An index as an i64 value."""
        return Value(str(i), I64) if isinstance(i, int) else i

    def zero(self, type_: Type) -> Value:
        """0, or 0.0, in every lane."""
        return Value("zeroinitializer", type_) if type_.lanes else self.const(type_, 0)

    def poison(self, type_: Type) -> Value:
        """A value that nobody looks at."""
        return Value("poison", type_)

    def iota(self, elem: str, lanes: int, step: int = 1) -> Value:
        """0, step, 2 * step, ... as a vector of `elem`."""
        items = ", ".join(f"{elem} {i * step}" for i in range(lanes))
        return Value(f"<{items}>", Type(elem, lanes))

    # -- arithmetic ------------------------------------------------------------------------------------------------
    def binary(self, op: str, a: Value, b: Value, flags: str = "") -> Value:
        """An instruction of two operands of one type, with its flags."""
        return self.value(a.type, f"{op} {flags + ' ' if flags else ''}{a.type} {a.text}, {b.text}")

    def compare(self, op: str, a: Value, b: Value) -> Value:
        """`op` such as "icmp slt" or "fcmp oeq"."""
        return self.value(Type("i1", a.type.lanes), f"{op} {a.type} {a.text}, {b.text}")

    def select(self, c: Value, a: Value, b: Value) -> Value:
        """a where c holds, else b."""
        return self.value(a.type, f"select {c.type} {c.text}, {a.type} {a.text}, {b.type} {b.text}")

    def cast(self, op: str, v: Value, elem: str) -> Value:
        """A conversion instruction to `elem`; none where v has that element."""
        to = v.type.of(elem)
        return v if to == v.type else self.value(to, f"{op} {v.type} {v.text} to {to}")

    def bitcast(self, v: Value, to: Type) -> Value:
        """The same bits as another type."""
        return Value(v.text, to) if str(to) == str(v.type) else self.value(to, f"bitcast {v.type} {v.text} to {to}")

    def neg(self, v: Value) -> Value:
        """The sign of floats flipped."""
        return self.value(v.type, f"fneg {v.type} {v.text}")

    def call(self, name: str, result: Type, args: Sequence[Value], immediate: Sequence[int] = ()) -> Value:
        """Call an external function or intrinsic, declaring it; `immediate` lists argument places that are immargs."""
        types = ", ".join(f"{a.type}{' immarg' if i in immediate else ''}" for i, a in enumerate(args))
        self.declarations[name] = f"declare {result} @{name}({types})"
        text = f"call {result} @{name}({', '.join(f'{a.type} {a.text}' for a in args)})"
        if result == VOID:
            self.emit(text)
            return Value("void", VOID)
        return self.value(result, text)

    def intrinsic(self, base: str, args: Sequence[Value], result: Type | None = None) -> Value:
        """Call `llvm.<base>.<type of the first argument>`; the result has that type unless given."""
        return self.call(f"llvm.{base}.{args[0].type.suffix}", result or args[0].type, args)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """a * b + c with one rounding."""
        return self.intrinsic("fma", (a, b, c))

    # -- vectors ---------------------------------------------------------------------------------------------------
    def splat(self, v: Value, lanes: int) -> Value:
        """A scalar in every lane; v itself for 0 lanes, or if it is a vector."""
        if lanes == 0 or v.type.lanes:
            return v
        to = Type(v.type.elem, lanes)
        if v.text == "poison":
            return self.poison(to)
        if not v.text.startswith(("%", "@")):
            return Value(f"splat ({v.type} {v.text})", to)
        first = self.value(to, f"insertelement {to} poison, {v.type} {v.text}, i64 0")
        return self.value(to, f"shufflevector {to} {first.text}, {to} poison, <{lanes} x i32> zeroinitializer")

    def shuffle(self, a: Value, b: Value | None, lanes: Sequence[int]) -> Value:
        """Lanes picked from a, then b's, by number."""
        mask = ", ".join(f"i32 {i}" for i in lanes)
        other = b.text if b is not None else "poison"
        to = Type(a.type.elem, len(lanes))
        return self.value(to, f"shufflevector {a.type} {a.text}, {a.type} {other}, <{len(lanes)} x i32> <{mask}>")

    def slice(self, v: Value, start: int, lanes: int) -> Value:
        """`lanes` neighbouring lanes from `start` on."""
        if start == 0 and lanes == v.type.lanes:
            return v
        return self.shuffle(v, None, range(start, start + lanes))

    def concat(self, parts: Sequence[Value]) -> Value:
        """Join vectors of equal lanes; their number is a power of two."""
        parts = list(parts)
        while len(parts) > 1:
            n = parts[0].type.lanes
            parts = [self.shuffle(a, b, range(2 * n)) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def extract(self, v: Value, lane: int) -> Value:
        """One lane as a scalar."""
        return self.value(Type(v.type.elem), f"extractelement {v.type} {v.text}, i64 {lane}")

    # -- index arithmetic, folded where known ------------------------------------------------------------------------
    def add(self, a: Index, b: Index) -> Index:
        """a + b, which does not overflow."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        if b == 0:
            return a
        return self.binary("add", self.index(a), self.index(b), "nsw")

    def mul(self, a: Index, b: Index) -> Index:
        """a * b, which does not overflow."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        for x, y in ((a, b), (b, a)):
            if x == 0:
                return 0
            if x == 1:
                return y
        return self.binary("mul", self.index(a), self.index(b), "nsw")

    def shift_right(self, i: Index, bits: int) -> Index:
        """i, which is not negative, divided by a power of two."""
        return i >> bits if isinstance(i, int) else self.binary("lshr", i, self.index(bits))

    def to_index(self, v: Value) -> Index:
        """A signed integer as an i64 index."""
        if v.text.lstrip("-").isdigit():
            return int(v.text)
        return self.cast("sext", v, "i64")

    # -- memory ----------------------------------------------------------------------------------------------------
    def gep(self, pointer: Value, offset: Index, elem: str) -> Value:
        """The pointer moved by `offset` elements."""
        if offset == 0:
            return pointer
        return self.value(PTR, f"getelementptr {spelled(elem)}, ptr {pointer.text}, i64 {self.index(offset).text}")

    def load(self, type_: Type, pointer: Value, align: int | None = None) -> Value:
        """Load a scalar or neighbouring elements, aligned as one element unless given."""
        return self.value(type_, f"load {type_}, ptr {pointer.text}, align {align or SIZES[type_.elem]}")

    def store(self, v: Value, pointer: Value, align: int | None = None) -> None:
        """Store a scalar or neighbouring elements, aligned as one element unless given."""
        self.emit(f"store {v.type} {v.text}, ptr {pointer.text}, align {align or SIZES[v.type.elem]}")

    def masked_load(self, type_: Type, pointer: Value, mask: Value, other: Value) -> Value:
        """Load neighbouring elements where the mask is set; other lanes read `other`."""
        name = f"llvm.masked.load.{type_.suffix}.p0"
        self.declarations[name] = f"declare {type_} @{name}(ptr, {mask.type}, {type_})"
        at = f"ptr align {SIZES[type_.elem]} {pointer.text}"
        return self.value(type_, f"call {type_} @{name}({at}, {mask.type} {mask.text}, {type_} {other.text})")

    def masked_store(self, v: Value, pointer: Value, mask: Value) -> None:
        """Store neighbouring elements where the mask is set."""
        name = f"llvm.masked.store.{v.type.suffix}.p0"
        self.declarations[name] = f"declare void @{name}({v.type}, ptr, {mask.type})"
        at = f"ptr align {SIZES[v.type.elem]} {pointer.text}"
        self.emit(f"call void @{name}({v.type} {v.text}, {at}, {mask.type} {mask.text})")

    def gather(self, type_: Type, pointers: Value, mask: Value, other: Value) -> Value:
        """Load elements at a vector of pointers where the mask is set; other lanes read `other`."""
        name = f"llvm.masked.gather.{type_.suffix}.{pointers.type.suffix}"
        self.declarations[name] = f"declare {type_} @{name}({pointers.type}, {mask.type}, {type_})"
        at = f"{pointers.type} align {SIZES[type_.elem]} {pointers.text}"
        return self.value(type_, f"call {type_} @{name}({at}, {mask.type} {mask.text}, {type_} {other.text})")

    def scatter(self, v: Value, pointers: Value, mask: Value) -> None:
        """Store elements at a vector of pointers where the mask is set."""
        name = f"llvm.masked.scatter.{v.type.suffix}.{pointers.type.suffix}"
        self.declarations[name] = f"declare void @{name}({v.type}, {pointers.type}, {mask.type})"
        at = f"{pointers.type} align {SIZES[v.type.elem]} {pointers.text}"
        self.emit(f"call void @{name}({v.type} {v.text}, {at}, {mask.type} {mask.text})")

    def buffer(self, size: int) -> Value:
        """`size` bytes, 64-byte aligned, that live as long as the program: on the stack, or in the arena when large."""
        size = max(size, 1)
        name = "%" + self.name("buf")
        if size > _BUFFER_LIMIT or self.frame_bytes + size > _FRAME_LIMIT:
            self.allocas.append(f"  {name} = getelementptr i8, ptr %arena, i64 {self.arena_bytes}")
            self.arena_bytes += (size + 63) // 64 * 64
        else:
            self.allocas.append(f"  {name} = alloca [{size} x i8], align 64")
            self.frame_bytes += size
        return Value(name, PTR)

    def prefetch(self, pointer: Value) -> None:
        """Bring a line into the cache for reading; the address may be anything."""
        self.declarations["llvm.prefetch.p0"] = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
        self.emit(f"call void @llvm.prefetch.p0(ptr {pointer.text}, i32 0, i32 3, i32 1)")

    def memset(self, pointer: Value, size: int) -> None:
        """Clear `size` bytes of a buffer."""
        name = "llvm.memset.p0.i64"
        self.declarations[name] = f"declare void @{name}(ptr, i8, i64, i1)"
        self.emit(f"call void @{name}(ptr align 64 {pointer.text}, i8 0, i64 {size}, i1 false)")

    # -- control flow ----------------------------------------------------------------------------------------------
    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def branch(self, label: str) -> None:
        """End the block with a jump."""
        self.emit(f"br label %{label}")

    def branch_if(self, c: Value, yes: str, no: str) -> None:
        """End the block with a jump to one of two labels."""
        self.emit(f"br i1 {c.text}, label %{yes}, label %{no}")

    @contextmanager
    def guarded(self, c: Value | None) -> Iterator[None]:
        """Run the body only where the scalar i1 `c` holds (always, when None)."""
        if c is None:
            yield
            return
        yes, after = self.name("then"), self.name("after")
        self.branch_if(c, yes, after)
        self.start(yes)
        yield
        self.branch(after)
        self.start(after)

    @contextmanager
    def loop(self, low: int, high: int, step: int = 1) -> Iterator[Index]:
        """for i in range(low, high, step), at least one turn; a single turn is inlined with a known index."""
        if high - low <= step:
            yield low
            return
        before, head, after = self.block, self.name("loop"), self.name("done")
        i = Value("%" + self.name("i"), I64)
        self.branch(head)
        self.start(head)
        at = len(self.lines)
        self.lines.append("")
        yield i
        following = self.binary("add", i, self.index(step), "nuw nsw")
        more = self.compare("icmp slt", following, self.index(high))
        self.lines[at] = f"  {i.text} = phi i64 [ {low}, %{before} ], [ {following.text}, %{self.block} ]"
        self.branch_if(more, head, after)
        self.start(after)

    def fold(
        self,
        low: int,
        high: int,
        step: int,
        initial: Sequence[Value],
        body: Callable[[Index, list[Value]], Sequence[Value]],
    ) -> list[Value]:
        """A loop that carries values: body(i, carried) gives the next ones. No turn when low >= high."""
        if low >= high:
            return list(initial)
        if high - low <= step:
            return list(body(low, list(initial)))
        before, head, after = self.block, self.name("fold"), self.name("done")
        i = Value("%" + self.name("i"), I64)
        carried = [Value("%" + self.name("acc"), v.type) for v in initial]
        self.branch(head)
        self.start(head)
        at = len(self.lines)
        self.lines.append("")
        results = list(body(i, list(carried)))
        following = self.binary("add", i, self.index(step), "nuw nsw")
        more = self.compare("icmp slt", following, self.index(high))
        phis = [f"  {i.text} = phi i64 [ {low}, %{before} ], [ {following.text}, %{self.block} ]"]
        for phi, first, after_turn in zip(carried, initial, results, strict=True):
            entries = f"[ {first.text}, %{before} ], [ {after_turn.text}, %{self.block} ]"
            phis.append(f"  {phi.text} = phi {phi.type} {entries}")
        self.lines[at] = "\n".join(phis)
        self.branch_if(more, head, after)
        self.start(after)
        return results


TRUE, FALSE = Value("true", I1), Value("false", I1)
