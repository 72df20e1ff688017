"""Conditionals and the branches of early returns."""

from __future__ import annotations

from collections.abc import Callable

from triton_cpu.errors import UnsupportedOpError
from triton_cpu.llvm.builder import Value
from triton_cpu.llvm.types import PTR, Type
from triton_cpu.lower.context import Context
from triton_cpu.lower.rules import eager
from triton_cpu.ttir.attributes import integers
from triton_cpu.ttir.nodes import Block, Node, Var


@eager("scf.if")
def conditional(cx: Context, node: Node) -> None:
    """One of two regions; scalar results meet in phis, tensors in memory."""
    b = cx.b
    tensors = [result for result in node.results if result.type.is_tensor]
    outs = {result: cx.new_buffer(result.type.sizes, result.type.elem) for result in tensors}
    yes, no, after = b.name("then"), b.name("else"), b.name("endif")
    b.branch_if(cx.scalar(node.operands[0]), yes, no)
    arrivals: list[tuple[list[Value | None], str]] = []
    for label, region in ((yes, node.regions[0]), (no, node.regions[1] if len(node.regions) > 1 else [])):
        b.start(label)
        values: list[Value | None] = []
        with cx.scope():
            for block in region:
                given = cx.run(block).operands
                for result, var in zip(node.results, given, strict=True):
                    if result in outs:
                        cx.fill(outs[result], var)
                    values.append(None if result in outs else cx.scalar(var))
        arrivals.append((values, b.block))
        b.branch(after)
    b.start(after)
    cx.forget()
    for place, result in enumerate(node.results):
        if result in outs:
            cx.forms[result] = outs[result]
            continue
        kind = Type(result.type.elem)
        entries = ", ".join(f"[ {values[place].text}, %{label} ]" for values, label in arrivals)  # type: ignore[union-attr]
        cx.forms[result] = b.value(kind, f"phi {kind} {entries}")


@eager("cf.br")
def jump(cx: Context, node: Node) -> None:
    """To another block of the function."""
    _pass(cx, node, node.successors[0], node.operands)
    cx.b.branch(cx.labels[node.successors[0]])


@eager("cf.cond_br")
def conditional_jump(cx: Context, node: Node) -> None:
    """To one of two blocks of the function."""
    b = cx.b
    _, first, second = integers(node, "operandSegmentSizes")
    given = {0: node.operands[1 : 1 + first], 1: node.operands[1 + first : 1 + first + second]}
    labels = [b.name("edge"), b.name("edge")]
    b.branch_if(cx.scalar(node.operands[0]), *labels)
    for way, label in enumerate(labels):
        b.start(label)
        _pass(cx, node, node.successors[way], given[way])
        b.branch(cx.labels[node.successors[way]])


def _pass(cx: Context, node: Node, label: str, values: list[Var]) -> None:
    """Leave the arguments of a block in its places on the stack."""
    for argument, value in zip(cx.arguments[label], values, strict=True):
        if argument.type.is_tensor:
            raise UnsupportedOpError(f"{node.name} that passes a tensor", node.location)
        cx.b.store(cx.scalar(value), cx.slots[argument])


def take_arguments(cx: Context, arguments: list[Var]) -> None:
    """At the start of a block: its arguments, from their places on the stack."""
    for argument in arguments:
        cx.forms[argument] = cx.b.load(Type(argument.type.elem), cx.slots[argument])


def reserve_arguments(cx: Context, label: str, arguments: list[Var]) -> None:
    """Places on the stack for the arguments of a block; LLVM turns them into registers."""
    cx.arguments[label] = arguments
    for argument in arguments:
        name = "%" + cx.b.name("slot")
        cx.b.allocas.append(f"  {name} = alloca {Type(argument.type.elem)}")
        cx.slots[argument] = Value(name, PTR)


@eager("tt.return")
def leave(cx: Context, node: Node) -> None:
    """End of the program, or of a function, whose values its call takes."""
    if not cx.calls:
        cx.b.emit("ret void")


def run_blocks(cx: Context, blocks: list[Block], end: str, leave: Callable[[Node], None]) -> None:
    """Carry out the blocks of a function in place; `leave` takes the values of each operation `end`."""
    b = cx.b
    outer = dict(cx.labels), dict(cx.arguments)  # labels are unique in a region only
    after = b.name("returned")
    for block in blocks[1:]:
        cx.labels[block.label] = b.name("block")
        reserve_arguments(cx, block.label, block.arguments)
    for block in blocks:
        if block is not blocks[0]:
            b.start(cx.labels[block.label])
            take_arguments(cx, block.arguments)
        last = cx.run(block)
        if last.name == end:
            leave(last)
            b.branch(after)
        cx.forget()
    b.start(after)
    cx.labels, cx.arguments = outer


@eager("scf.yield", "scf.condition")
def end_of_region(cx: Context, node: Node) -> None:
    """The operation around the region takes the values."""
