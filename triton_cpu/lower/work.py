"""How much a program does, roughly: enough of it, and waking other threads pays."""

from __future__ import annotations

from triton_cpu.ttir.nodes import Block, Node

_FORK = 1 << 15  # elements; a thread handles as many in the time of several forks and joins (about 1 us each)
_TURNS = 8  # of a loop whose length is not known here
_ATOMIC = 8  # elements of other operations in the time of an atomic one
_DOT_SPEED = 16  # multiplications of tl.dot in the time of one element of other operations


def programs_per_fork(blocks: list[Block]) -> int:
    """The least number of programs worth more than one thread."""
    work = sum(_work(node) for block in blocks for node in block.nodes)
    return max(2, _FORK // max(work, 1))


def _work(node: Node) -> int:
    turns = _TURNS if node.name in ("scf.for", "scf.while") else 1
    inside = sum(_work(inner) for region in node.regions for block in region for inner in block.nodes)
    if node.name == "tt.dot":
        return node.result.type.numel * node.operands[0].type.sizes[-1] // _DOT_SPEED
    if node.name in ("tt.atomic_rmw", "tt.atomic_cas"):
        return _ATOMIC * node.result.type.numel
    if node.name in ("tt.store", "tt.load", "tt.reduce", "tt.scan") or node.name.startswith("math."):
        return max([1, *(operand.type.numel for operand in node.operands)]) + inside
    return turns * inside
