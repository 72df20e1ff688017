"""The rule tables: what the lowering does with each operation of TTIR. An operation without a rule is an error.

A rule is entered by the decorators below, in the file of its family; lower/function.py imports them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from triton_cpu.llvm.builder import Value
    from triton_cpu.lower.context import Context
    from triton_cpu.lower.lanes import Affine, Guess, Lane, Place, Uniform
    from triton_cpu.ttir.nodes import Node

# scalars or equal vectors of the operands -> that of the result
Elementwise = Callable[["Context", "Node", Sequence["Value"]], "Value"]
# operands (uniform or affine), number of lanes -> the result, or None where it is not affine
AffineRule = Callable[["Context", "Node", Sequence["Uniform | Affine"], int], "Affine | Guess | None"]
# a chunk of the result: `lanes` elements along dimension `axis` from a place on; 0 lanes: one element, axis None
Lazy = Callable[["Context", "Node", "Place", "int | None", int], "Lane"]
# an operation that is carried out where it stands
Eager = Callable[["Context", "Node"], None]

ELEMENTWISE: dict[str, Elementwise] = {}
AFFINE: dict[str, AffineRule] = {}
LAZY: dict[str, Lazy] = {}
EAGER: dict[str, Eager] = {}

Rule = TypeVar("Rule", bound=Callable[..., object])


def _enter(table: dict[str, Rule], names: Sequence[str]) -> Callable[[Rule], Rule]:
    def enter(rule: Rule) -> Rule:
        for name in names:
            if name in table:
                raise ValueError(f"{name} has a rule already")
            table[name] = rule
        return rule

    return enter


def elementwise(*names: str) -> Callable[[Elementwise], Elementwise]:
    """Enter a rule that maps elements to elements, whatever the number of lanes."""
    return _enter(ELEMENTWISE, names)


def affine(*names: str) -> Callable[[AffineRule], AffineRule]:
    """Enter a rule that keeps an elementwise operation affine."""
    return _enter(AFFINE, names)


def lazy(*names: str) -> Callable[[Lazy], Lazy]:
    """Enter a rule that computes a chunk of a tensor when it is asked for."""
    return _enter(LAZY, names)


def eager(*names: str) -> Callable[[Eager], Eager]:
    """Enter a rule that emits code at once, in the order of the kernel."""
    return _enter(EAGER, names)


def is_lazy(node: Node) -> bool:
    """Whether the result of a node can be computed anywhere its operands are known."""
    return node.name in ELEMENTWISE or node.name in LAZY
