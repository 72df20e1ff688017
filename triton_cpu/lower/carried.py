"""What a loop carries from turn to turn: scalars in phis, tensors in buffers of their own, or as a scalar offset where
a tensor grows by a constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triton_cpu.llvm.builder import Value
from triton_cpu.llvm.types import Type
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Buffer, Induction
from triton_cpu.lower.rules import ELEMENTWISE, is_lazy
from triton_cpu.ttir.nodes import Block, Node, Var


@dataclass(frozen=True)
class Growth:
    """A carried tensor that an equal amount is added to each turn.

    Attributes:
        start: its value before the loop.
        step: the operation that holds the amount: tt.splat of a scalar, or a constant.
    """

    start: Var
    step: Node


class Carried:
    """The carried values of an scf.for, without `apart`, which its caller looks after."""

    def __init__(self, cx: Context, node: Node, apart: Var | None = None) -> None:
        (block,) = node.regions[0]
        self.cx = cx
        self.index = block.arguments[0]
        self.block = block
        self.following = dict(zip(block.arguments[1:], block.terminator.operands, strict=True))
        self.results = dict(zip(block.arguments[1:], node.results, strict=True))
        self.scalars: dict[Var, Value] = {}
        self.growing: dict[Var, Growth] = {}
        self.buffers: dict[Var, Buffer] = {}
        for var, start in zip(block.arguments[1:], node.operands[3:], strict=True):
            if var is apart:
                continue
            if not var.type.is_tensor:
                self.scalars[var] = cx.scalar(start)
                continue
            growth = find_growth(cx, var, start, self.following[var])
            if growth is not None:
                self.growing[var] = growth
            else:
                self.buffers[var] = cx.new_buffer(var.type.sizes, var.type.elem)
                cx.fill(self.buffers[var], start)
        cx.forget()

    def initial(self) -> list[Value]:
        """What the phis of the loop start with."""
        return [*self.scalars.values(), *(self.cx.b.const(offset_type(var), 0) for var in self.growing)]

    def enter(self, i: Value, phis: Sequence[Value]) -> None:
        """Make the carried values those of a turn: its index and its phis."""
        forms = self.cx.forms
        forms[self.index] = i
        forms.update(zip(self.scalars, phis[: len(self.scalars)], strict=True))
        for (var, growth), offset in zip(self.growing.items(), phis[len(self.scalars) :], strict=True):
            forms[var] = Induction(growth.start, offset)
        forms.update(self.buffers)

    def leave(self, phis: Sequence[Value]) -> list[Value]:
        """End the turn: carry the buffers over; what the phis go on with."""
        carry_over(self.cx, [self.following[var] for var in self.buffers], list(self.buffers.values()))
        offsets = zip(self.growing.values(), phis[len(self.scalars) :], strict=True)
        more = [grown(self.cx, growth, offset) for growth, offset in offsets]
        return [*(self.cx.scalar(self.following[var]) for var in self.scalars), *more]

    def finish(self, phis: Sequence[Value]) -> None:
        """After the loop: give the results of the operation their values."""
        forms = self.cx.forms
        for var, phi in zip(self.scalars, phis[: len(self.scalars)], strict=True):
            forms[self.results[var]] = phi
        for (var, growth), offset in zip(self.growing.items(), phis[len(self.scalars) :], strict=True):
            forms[self.results[var]] = Induction(growth.start, offset)
        for var, buffer in self.buffers.items():
            forms[self.results[var]] = buffer


def find_growth(cx: Context, carried: Var, start: Var, following: Var) -> Growth | None:
    """Whether `following`, the next value of `carried`, is `carried` plus one amount that the loop does not change."""
    node = following.node
    if node is None or node.name not in ("tt.addptr", "arith.addi") or node.operands[0] is not carried:
        return None
    amount = node.operands[1].node
    if amount is None or amount.name not in ("tt.splat", "arith.constant") or not _light(cx, start):
        return None
    if amount.name == "tt.splat" and amount.operands[0] not in cx.forms:
        return None  # the amount is computed inside the loop
    return Growth(start, amount)


def _light(cx: Context, var: Var) -> bool:
    """Made of index arithmetic, or of what was put into memory for good, so that it can be evaluated in each turn."""
    if not var.type.is_tensor or isinstance(cx.forms.get(var), Induction):
        return True
    if var.node is None or not is_lazy(var.node):
        return False
    if isinstance(cx.forms.get(var), Buffer):
        return True
    return var.node.name != "tt.load" and all(_light(cx, operand) for operand in var.node.operands)


def offset_type(var: Var) -> Type:
    """What a growing tensor's offset is counted in."""
    return Type("i64" if var.type.elem == "ptr" else var.type.elem)


def grown(cx: Context, growth: Growth, offset: Value) -> Value:
    """The offset of the next turn."""
    amount = cx.chunk(growth.step.result, (0,) * len(growth.step.result.type.sizes), None, 0)
    wide = cx.b.cast("sext", amount.value, offset.type.elem)  # type: ignore[union-attr]
    return cx.b.binary("add", offset, wide)


def accumulate_in_place(cx: Context, block: Block, buffers: dict[Var, Buffer]) -> None:
    """Let a tl.dot whose result is the next value of a carried tensor accumulate in that tensor's buffer.

    So it does if the carried tensor is used for nothing but the accumulator, directly or by elementwise operations.
    """
    users: dict[Var, list[Node]] = {}
    for node in block.nodes:
        for inner in (node, *node.nested()):
            for operand in inner.operands:
                users.setdefault(operand, []).append(inner)
    given = block.terminator.operands
    for carried, following in zip(block.arguments[len(block.arguments) - len(given) :], given, strict=True):
        dot = following.node
        if carried not in buffers or dot is None or dot.name != "tt.dot" or len(users[following]) != 1:
            continue
        if dot in block.nodes and _only_path(carried, dot.operands[2], users):
            cx.targets[following] = buffers[carried]


def _only_path(carried: Var, var: Var, users: dict[Var, list[Node]]) -> bool:
    """Whether `carried` reaches `var` by a single way of elementwise operations, and nothing else uses it."""
    if len(users.get(var, [])) != 1:
        return False
    if var is carried:
        return True
    if var.node is None or var.node.name not in ELEMENTWISE:
        return False
    ways = [operand for operand in var.node.operands if _reaches(carried, operand, set())]
    return len(ways) == 1 and _only_path(carried, ways[0], users)


def _reaches(carried: Var, var: Var, seen: set[Var]) -> bool:
    if var is carried:
        return True
    if var.node is None or var in seen:
        return False
    seen.add(var)
    return any(_reaches(carried, operand, seen) for operand in var.node.operands)


def carry_over(cx: Context, following: Sequence[Var], buffers: Sequence[Buffer]) -> None:
    """At the end of a turn: evaluate the next values into the buffers, all of them from the values of this turn."""
    pending = [(buffer, var) for buffer, var in zip(buffers, following, strict=True) if cx.forms.get(var) != buffer]
    copies: list[tuple[Buffer, Buffer]] = []
    direct: list[tuple[Buffer, Var]] = []
    for place, (buffer, var) in enumerate(pending):
        others = [other for at, (_, other) in enumerate(pending) if at != place]
        if _reads_in_step(cx, var, buffer) and not any(_reads(cx, other, buffer) for other in others):
            direct.append((buffer, var))
        else:
            copy = cx.new_buffer(buffer.shape, buffer.elem)
            cx.fill(copy, var)
            copies.append((buffer, copy))
    for buffer, var in direct:
        cx.fill(buffer, var)
        cx.forget()
    for buffer, copy in copies:
        cx.copy(copy, buffer)


def _reads(cx: Context, var: Var, buffer: Buffer) -> bool:
    """Whether evaluating `var` reads the buffer."""
    return _visit(cx, var, buffer, moved_counts=False)


def _reads_in_step(cx: Context, var: Var, buffer: Buffer) -> bool:
    """Whether evaluating an element of `var` reads of the buffer no other element than that one."""
    return not _visit(cx, var, buffer, moved_counts=True)


def _visit(cx: Context, var: Var, buffer: Buffer, moved_counts: bool) -> bool:
    """Whether the buffer is read: at all, or, if `moved_counts`, through an operation that moves elements."""
    stack, seen = [(var, False)], set()
    while stack:
        value, moved = stack.pop()
        if (value, moved) in seen:
            continue
        seen.add((value, moved))
        form = cx.forms.get(value)
        if isinstance(form, Buffer):
            if form.pointer == buffer.pointer and (moved or not moved_counts):
                return True
        elif isinstance(form, Induction):
            stack.append((form.start, moved))
        elif form is None and value.node is not None:
            moves = moved or value.node.name not in ELEMENTWISE
            stack += [(operand, moves) for operand in value.node.operands]
    return False
