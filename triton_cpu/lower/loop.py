"""Loops with carried values."""

from __future__ import annotations

from collections.abc import Sequence

from triton_cpu.llvm.builder import Value
from triton_cpu.lower.carried import Carried, accumulate_in_place, carry_over
from triton_cpu.lower.context import Context
from triton_cpu.lower.contraction import accumulated_dot, contract
from triton_cpu.lower.lanes import Buffer
from triton_cpu.lower.rules import eager
from triton_cpu.ttir.nodes import Node, Var


@eager("scf.for")
def counted_loop(cx: Context, node: Node) -> None:
    """for i in range(low, high, step); one that only accumulates a tl.dot keeps the sums in registers."""
    dot = accumulated_dot(cx, node)
    if dot is not None:
        contract(cx, node, dot)
        return
    carried = Carried(cx, node)

    def body(i: Value, phis: Sequence[Value]) -> list[Value]:
        carried.enter(i, phis)
        accumulate_in_place(cx, carried.block, carried.buffers)
        cx.run(carried.block)
        return carried.leave(phis)

    low, high, step = (cx.scalar(operand) for operand in node.operands[:3])
    carried.finish(cx.for_loop(low, high, step, carried.initial(), body))


@eager("scf.while")
def while_loop(cx: Context, node: Node) -> None:
    """Two regions in turn: one decides whether to go on and with which values, the other makes the next ones."""
    b = cx.b
    (before,), (after,) = node.regions
    buffers = _new_buffers(cx, before.arguments)
    for var, start in zip(before.arguments, node.operands, strict=True):
        if var in buffers:
            cx.fill(buffers[var], start)
    passed = _new_buffers(cx, after.arguments)
    entry, head, inside, done = b.block, b.name("while"), b.name("body"), b.name("endwhile")
    starts = [cx.scalar(start) for start in node.operands if not start.type.is_tensor]
    phis = [Value("%" + b.name("carried"), value.type) for value in starts]
    b.branch(head)
    b.start(head)
    at = len(b.lines)
    b.lines.append("")
    cx.forget()
    with cx.scope():
        cx.forms.update(buffers)
        cx.forms.update(zip((var for var in before.arguments if not var.type.is_tensor), phis, strict=True))
        condition = cx.run(before).operands
        for var, result, value in zip(after.arguments, node.results, condition[1:], strict=True):
            if var in passed:
                cx.fill(passed[var], value)
            cx.forms[var] = cx.forms[result] = passed[var] if var in passed else cx.scalar(value)
        go_on = cx.scalar(condition[0])
    b.branch_if(go_on, inside, done)
    b.start(inside)
    cx.forget()
    with cx.scope():
        following = cx.run(after).operands
        new = dict(zip(before.arguments, following, strict=True))
        carry_over(cx, [new[var] for var in buffers], list(buffers.values()))
        values = [cx.scalar(value) for value in following if not value.type.is_tensor]
    b.lines[at] = "\n".join(
        f"  {phi.text} = phi {phi.type} [ {first.text}, %{entry} ], [ {then.text}, %{b.block} ]"
        for phi, first, then in zip(phis, starts, values, strict=True)
    )
    b.branch(head)
    b.start(done)
    cx.forget()


def _new_buffers(cx: Context, arguments: list[Var]) -> dict[Var, Buffer]:
    return {var: cx.new_buffer(var.type.sizes, var.type.elem) for var in arguments if var.type.is_tensor}
