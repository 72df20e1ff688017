"""Which tensors of a block go into memory where they are defined, instead of being evaluated where they are used.

Evaluating late fuses operations into one loop over chunks. It would repeat work for a tensor with several users, or
read memory after a later store has changed it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from triton_cpu.analysis.overlap import may_overtake
from triton_cpu.lower.rules import is_lazy
from triton_cpu.ttir.nodes import Block, Node, Var

_ELEMENT_WRITES = frozenset({"tt.store", "tt.atomic_rmw", "tt.atomic_cas"})
WRITES = _ELEMENT_WRITES | {"tt.call"}
_FREE = frozenset({"arith.constant", "tt.splat", "tt.make_range"})
_DIVISIONS = frozenset({"arith.divsi", "arith.divui", "arith.remsi", "arith.remui"})
_MATH = _DIVISIONS | {
    "arith.divf", "arith.remf", "tt.precise_divf", "tt.precise_sqrt", "tt.extern_elementwise", "tt.fp_to_fp",
}  # fmt: skip
_CHEAP_MATH = frozenset({"math.absf", "math.absi", "math.fma", "math.floor", "math.ceil"})
_MANY = 24  # operations in an expression that is not worth repeating


@dataclass
class _Uses:
    """Where a tensor would be evaluated: positions of operations; whether in a nested block, or per row of another."""

    places: set[int]
    nested: bool = False
    repeated: bool = False


def to_materialise(block: Block) -> set[Var]:
    """The results of lazy operations of this block that go into memory at once."""
    nodes = block.nodes
    position = {result: at for at, node in enumerate(nodes) for result in node.results}
    users, writes = _users(nodes)
    weight: dict[Var, int] = {}  # 0 index arithmetic, 1 with loads, 2 with mathematics
    size: dict[Var, int] = {}
    for node in nodes:
        if _waits(node):
            passed_on = (weight.get(operand, 0) for operand in node.operands if not _divides(operand))
            weight[node.result] = max([_weight(node), *passed_on])
            grown = 1 + sum(size.get(operand, 0) for operand in node.operands)
            size[node.result] = 0 if node.name in _FREE else min(grown, 2 * _MANY)
    chosen: set[Var] = set()
    uses: dict[Var, _Uses] = {}
    for node in reversed(nodes):
        if not _waits(node):
            continue
        result = node.result
        found = _Uses(set())
        for at, nested in users[result]:
            user = nodes[at]
            if nested or not _waits(user) or user.result in chosen:
                found.places.add(at)
                found.nested |= nested
            else:
                later = uses[user.result]
                found.places |= later.places
                found.nested |= later.nested
                found.repeated |= later.repeated or user.name == "tt.broadcast"
        heavy, several = weight[result], len(found.places) > 1
        overwritten = heavy and any(position[result] < at < max(found.places, default=0) for at in writes)
        if (
            (heavy and (several or found.nested or overwritten))
            or (heavy == 2 and found.repeated)
            or (several and size[result] > _MANY)
        ):
            chosen.add(result)
            found = _Uses({position[result]})
        uses[result] = found
    for node in nodes:
        if node.name in _ELEMENT_WRITES and node.operands[0].type.is_tensor:
            chosen |= {var for var in may_overtake(node) if var in position}
    return chosen


def outside_uses(blocks: list[Block]) -> set[Var]:
    """Tensors that are used in another block of a function than their own."""
    owner = {result: block for block in blocks for node in block.nodes for result in node.results}
    return {
        operand
        for block in blocks
        for node in block.nodes
        for inner in (node, *node.nested())
        for operand in inner.operands
        if operand.type.is_tensor and operand in owner and owner[operand] is not block
    }


def _waits(node: Node) -> bool:
    return is_lazy(node) and node.result.type.is_tensor


def _weight(node: Node) -> int:
    if node.name == "tt.load":
        return 1
    return 2 if node.name in _MATH or (node.name.startswith("math.") and node.name not in _CHEAP_MATH) else 0


def _divides(var: Var) -> bool:
    """Made by a division of integers, whose result is put into memory where what follows would repeat it."""
    return var.node is not None and var.node.name in _DIVISIONS


def _users(nodes: list[Node]) -> tuple[dict[Var, list[tuple[int, bool]]], list[int]]:
    """Variable -> (position, inside a region that may run more than once) of its users; positions of writes."""
    users: dict[Var, list[tuple[int, bool]]] = defaultdict(list)
    writes = []
    for at, node in enumerate(nodes):
        inner = list(node.nested())
        for operand in node.operands:
            users[operand].append((at, False))
        for other in inner:
            for operand in other.operands:
                users[operand].append((at, True))
        if any(other.name in WRITES for other in (node, *inner)):
            writes.append(at)
    return users, writes
