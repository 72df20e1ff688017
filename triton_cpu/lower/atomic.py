"""Atomic operations, element by element, sequentially consistent."""

from __future__ import annotations

from collections.abc import Callable

from triton_cpu.errors import UnsupportedOpError
from triton_cpu.llvm.builder import TRUE, Value
from triton_cpu.llvm.types import SIZES, Type
from triton_cpu.lower.arith import in_single
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Place
from triton_cpu.lower.rules import eager
from triton_cpu.ttir.attributes import integer
from triton_cpu.ttir.nodes import Node, Var

# Triton's numbering
_KINDS = {1: "and", 2: "or", 3: "xor", 4: "add", 5: "fadd", 6: "max", 7: "min", 8: "umax", 9: "umin", 10: "xchg"}


@eager("tt.atomic_rmw")
def read_modify_write(cx: Context, node: Node) -> None:
    """Combine memory with a value; the result is what memory held before, 0 where the mask is false."""
    kind, elem = _KINDS.get(integer(node, "atomic_rmw_op")), node.result.type.elem
    narrow_sum = kind == "fadd" and elem in ("half", "bfloat")
    if not narrow_sum and (kind is None or elem in ("half", "bfloat", "i1", "i8", "i16")):
        raise UnsupportedOpError(f"tt.atomic_rmw {kind} of {node.result.type.name}", node.location)

    def one(pointer: Value, value: Value) -> Value:
        if narrow_sum:
            return _add_narrow(cx, pointer, value)
        return cx.b.value(value.type, f"atomicrmw {kind} ptr {pointer.text}, {value.type} {value.text} seq_cst")

    _each(cx, node, node.operands[:2], node.operands[2] if len(node.operands) > 2 else None, one)


@eager("tt.atomic_cas")
def compare_and_swap(cx: Context, node: Node) -> None:
    """Store a value where memory holds the bits that are expected; the result is what memory held before."""
    elem = node.result.type.elem
    if elem in ("i1", "i8", "ptr"):
        raise UnsupportedOpError(f"tt.atomic_cas of {node.result.type.name}", node.location)
    bits = Type(f"i{8 * SIZES[elem]}")

    def one(pointer: Value, expected: Value, value: Value) -> Value:
        old, _ = _exchange(cx, pointer, cx.b.bitcast(expected, bits), cx.b.bitcast(value, bits))
        return cx.b.bitcast(old, Type(elem))

    _each(cx, node, node.operands[:3], None, one)


def _exchange(cx: Context, pointer: Value, expected: Value, value: Value) -> tuple[Value, Value]:
    """What memory held, and whether that was what was expected and `value` was stored (i1)."""
    kind, pair = value.type, f"{{ {value.type}, i1 }}"
    text = f"cmpxchg ptr {pointer.text}, {kind} {expected.text}, {kind} {value.text} seq_cst seq_cst"
    found = cx.b.value(Type(pair), text)
    old = cx.b.value(kind, f"extractvalue {pair} {found.text}, 0")
    return old, cx.b.value(Type("i1"), f"extractvalue {pair} {found.text}, 1")


def _add_narrow(cx: Context, pointer: Value, value: Value) -> Value:
    """Add to a 16-bit float: computed from what memory held, until nobody has changed that meanwhile."""
    b, bits = cx.b, Type("i16")
    first = b.value(bits, f"load atomic i16, ptr {pointer.text} monotonic, align 2")
    before, again, done = b.block, b.name("again"), b.name("added")
    b.branch(again)
    b.start(again)
    seen = Value("%" + b.name("seen"), bits)
    at = len(b.lines)
    b.lines.append("")
    old = b.bitcast(seen, value.type)
    total = in_single(cx, (old, value), lambda wide: b.binary("fadd", wide[0], wide[1]))
    now, stored = _exchange(cx, pointer, seen, b.bitcast(total, bits))
    b.lines[at] = f"  {seen.text} = phi i16 [ {first.text}, %{before} ], [ {now.text}, %{b.block} ]"
    b.branch_if(stored, done, again)
    b.start(done)
    return old


def _each(cx: Context, node: Node, operands: list[Var], mask: Var | None, one: Callable[..., Value]) -> None:
    b, kind = cx.b, Type(node.result.type.elem)

    def masked(at: Place) -> Value:
        allowed = TRUE if mask is None else cx.evaluate(mask, at, None, 0)
        values = [cx.evaluate(operand, at, None, 0) for operand in operands]
        if allowed == TRUE:
            return one(*values)
        before, yes, after = b.block, b.name("then"), b.name("after")
        b.branch_if(allowed, yes, after)
        b.start(yes)
        result = one(*values)
        ran = b.block
        b.branch(after)
        b.start(after)
        return b.value(kind, f"phi {kind} [ {result.text}, %{ran} ], [ {b.zero(kind).text}, %{before} ]")

    if node.result.type.is_tensor:
        out = cx.new_buffer(node.result.type.sizes, node.result.type.elem)
        cx.each(out.shape, None, lambda at, _, __: cx.write(out, at, None, masked(at)))
        cx.forms[node.result] = out
    else:
        cx.forms[node.result] = masked(())
    cx.forget()
