"""Replacing operations by others, before they are lowered."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triton_cpu.ttir.nodes import Node, Var
from triton_cpu.ttir.types import ELEMENTS, TensorType

Rule = Callable[[Node], list[Node]]  # what takes the place of an operation; nothing if it stays


def rewrite(functions: list[Node], rules: Mapping[str, Rule]) -> list[Node]:
    """Apply rules by the name of the operation, in place, in all regions of the functions; the functions."""
    for function in functions:
        for region in function.regions:
            for block in region:
                nodes: list[Node] = []
                for node in block.nodes:
                    rewrite([node], rules)
                    nodes += (rules[node.name](node) if node.name in rules else []) or [node]
                block.nodes = nodes
    return functions


class Emitter:
    """Writes operations that take the place of one.

    Attributes:
        nodes: what was written.
    """

    def __init__(self, replaced: Node) -> None:
        self.nodes: list[Node] = []
        self._replaced = replaced

    def op(self, name: str, operands: list[Var], to: TensorType, **attributes: object) -> Var:
        """An operation; its result, of type `to`."""
        printed = {key: str(value) for key, value in attributes.items()}
        node = Node(name, operands, [], printed, [], [], self._replaced.location)
        node.results = [Var(to, node)]
        self.nodes.append(node)
        return node.result

    def constant(self, like: TensorType, value: int | float) -> Var:
        """A number in every element."""
        return self.op("arith.constant", [], like, value=f"dense<{value}>")

    def finish(self) -> list[Node]:
        """All that was written; the result of the last one is that of the replaced operation."""
        last = self.nodes[-1]
        last.results = [self._replaced.result]
        last.result.node = last
        return self.nodes


def of(kind: TensorType, name: str) -> TensorType:
    """The shape of a type with another element, as TTIR spells it."""
    return TensorType(kind.shape, ELEMENTS[name], name)


def shaped(kind: TensorType, *sizes: int) -> TensorType:
    """The element of a type in another shape."""
    return TensorType(sizes, kind.elem, kind.name)
