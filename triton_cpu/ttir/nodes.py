"""Operations, blocks and values of TTIR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from triton_cpu.ttir.types import TensorType


@dataclass(eq=False)
class Var:
    """A value in SSA form: the result of an operation, or an argument of a block (`node` is None)."""

    type: TensorType
    node: Node | None = None


@dataclass(eq=False)
class Node:
    """An operation.

    Attributes:
        attributes: name -> printed attribute, see attributes.py.
        successors: labels of the blocks a branch may go to.
        location: "file:line:column" in the kernel's source, or "".
    """

    name: str
    operands: list[Var]
    results: list[Var]
    attributes: dict[str, str]
    regions: list[list[Block]]
    successors: list[str]
    location: str

    @property
    def result(self) -> Var:
        """The only result."""
        return self.results[0]

    def nested(self) -> Iterator[Node]:
        """Every operation inside the regions, at any depth."""
        for region in self.regions:
            for block in region:
                for node in block.nodes:
                    yield node
                    yield from node.nested()


@dataclass(eq=False)
class Block:
    """Operations in order; the last one ends the block."""

    label: str
    arguments: list[Var] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    @property
    def terminator(self) -> Node:
        """The operation that ends the block."""
        return self.nodes[-1]
