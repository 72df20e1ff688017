"""Loops that do nothing but accumulate a tl.dot over K: the sums stay in registers from the first turn to the last.

Order of an element's sum: as if all turns were one product (isa/rows.py), then the initial accumulator is added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from triton_cpu.isa import rows
from triton_cpu.isa.product import Product
from triton_cpu.isa.table import choose
from triton_cpu.llvm.builder import Index, Value
from triton_cpu.llvm.types import Type
from triton_cpu.lower.carried import Carried, find_growth
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Induction
from triton_cpu.lower.rules import ELEMENTWISE, is_lazy
from triton_cpu.ttir.nodes import Node, Var


def accumulated_dot(cx: Context, loop: Node) -> Node | None:
    """The product of a loop with nothing else in it but index arithmetic and the loads of its operands."""
    (block,) = loop.regions[0]
    *body, end = block.nodes
    dots = [node for node in body if node.name == "tt.dot"]
    if len(dots) != 1 or not all(node is dots[0] or is_lazy(node) for node in body):
        return None
    dot = dots[0]
    carried = dict(
        zip(block.arguments[1:], zip(end.operands, loop.operands[3:], loop.results, strict=True), strict=True)
    )
    users = [node for node in block.nodes for operand in node.operands if operand is dot.operands[2]]
    if dot.operands[2] not in carried or carried[dot.operands[2]][0] is not dot.result or len(users) != 1:
        return None
    for var, (following, start, result) in carried.items():
        if var is dot.operands[2]:
            continue
        if result in cx.used or (var.type.is_tensor and find_growth(cx, var, start, following) is None):
            return None
    if dot.result.type.sizes[:-2] or not all(_cheap(cx, operand, block.arguments) for operand in dot.operands[:2]):
        return None
    return dot if _chosen(cx, loop, dot) is rows.emit else None


def contract(cx: Context, loop: Node, dot: Node) -> None:
    """Emit the loop: blocks of results outside, the turns inside."""
    (block,) = loop.regions[0]
    accumulator = dot.operands[2]
    place = block.arguments.index(accumulator) - 1
    out = cx.new_buffer(dot.result.type.sizes, dot.result.type.elem)
    cx.fill(out, loop.operands[3 + place])
    carried = Carried(cx, loop, apart=accumulator)
    low, high, step = (cx.scalar(operand) for operand in loop.operands[:3])
    initial = carried.initial()
    product = Product(cx, dot, out)
    depth = rows.step_for(cx, product).depth

    def turns(sums: rows.Sums, add: Callable[[Index, rows.Sums], rows.Sums]) -> rows.Sums:
        def turn(i: Value, phis: Sequence[Value]) -> list[Value]:
            carried.enter(i, phis[: len(initial)])
            for node in block.nodes[:-1]:
                if node is not dot:
                    cx.visit(node)
            new = cx.fold(0, product.k, depth, phis[len(initial) :], add)
            return [*carried.leave(phis[: len(initial)]), *new]

        return cx.for_loop(low, high, step, [*initial, *sums], turn)[len(initial) :]

    rows.emit_blocks(cx, product, turns)
    cx.forms[loop.results[place]] = out
    cx.forget()


def _chosen(cx: Context, loop: Node, dot: Node) -> object:
    """The micro-kernel, chosen with the loop's growing tensors known to grow."""
    (block,) = loop.regions[0]
    known = dict(cx.forms)
    for var, start in zip(block.arguments[1:], loop.operands[3:], strict=True):
        if var.type.is_tensor and var is not dot.operands[2]:
            cx.forms[var] = Induction(start, cx.b.const(Type("i64"), 0))
    chosen = choose(cx, dot)
    cx.forms = known
    return chosen


def _cheap(cx: Context, var: Var, arguments: list[Var]) -> bool:
    """Loads and index arithmetic, which may be repeated for each block of results."""
    if not var.type.is_tensor or var in cx.forms or var in arguments or var.node is None:
        return True
    name = var.node.name
    costly = name.startswith("math.") or name in ("arith.divf", "arith.divsi", "arith.remsi", "tt.extern_elementwise")
    if costly or not is_lazy(var.node) or (name in ELEMENTWISE and var.type.elem in ("float", "double")):
        return False
    return all(_cheap(cx, operand, arguments) for operand in var.node.operands)
