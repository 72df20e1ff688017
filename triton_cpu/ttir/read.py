"""Reader of MLIR's generic printed form, the one form that holds everything an operation is made of."""

from __future__ import annotations

import re

from triton_cpu.errors import CompileError, UnsupportedOpError
from triton_cpu.ttir.nodes import Block, Node, Var
from triton_cpu.ttir.types import TensorType, read_type

_HEAD = re.compile(r'(?:(%[\w$.-]+)(?::(\d+))? = )?"([\w.]+)"\(([^)]*)\)(?:\[([^\]]*)\])?')
_LABEL = re.compile(r"(\^\w+)(?:\((.*)\))?:(?:\s*//.*)?$")
_PLACE = re.compile(r'"([^"]*)":(\d+):(\d+)')
_REFERENCE = re.compile(r"#loc\d*")
_OPEN, _CLOSE = "<([{", ">)]}"


def read_module(text: str) -> list[Node]:
    """The functions (tt.func) of a printed module.

    Raises:
        CompileError: the text has a form that this reader does not know.
        UnsupportedOpError: a value has a type that kernels on a CPU cannot have.
    """
    return _Reader(text).module()


def split_outside(text: str, separator: str = ",") -> list[str]:
    """Split at a separator that is in no bracket and no string."""
    parts, depth, start, quoted = [], 0, 0, False
    for at, char in enumerate(text):
        if quoted:
            quoted = char != '"'  # MLIR escapes a quote in a string as \22
        elif char == '"':
            quoted = True
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE and not (char == ">" and text[at - 1] == "-"):
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _matching(text: str, start: int) -> int:
    """Place of the bracket that closes the one at `start`."""
    depth, quoted = 0, False
    for at in range(start, len(text)):
        char = text[at]
        if quoted:
            quoted = char != '"'  # MLIR escapes a quote in a string as \22
        elif char == '"':
            quoted = True
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE and not (char == ">" and text[at - 1] == "-"):
            depth -= 1
            if depth == 0:
                return at
    raise CompileError(f"a bracket is not closed in: {text}")


class _Reader:
    """Lines are read in order; `at` is the next one."""

    def __init__(self, text: str) -> None:
        lines = [line.strip() for line in text.splitlines()]
        self.locations = dict(line.split(" = ", 1) for line in lines if line.startswith("#loc"))
        self.lines = [line for line in lines if line and not line.startswith("#")]
        self.at = 0
        self.vars: dict[str, Var] = {}  # nested regions never shadow a visible name, so one table serves

    def module(self) -> list[Node]:
        (region,) = self.node().regions
        return [node for block in region for node in block.nodes]

    def region(self) -> list[Block]:
        blocks: list[Block] = []
        while not self.lines[self.at].startswith("}"):
            line = self.lines[self.at]
            label = _LABEL.match(line)
            if label:
                self.at += 1
                blocks.append(Block(label.group(1), [self.argument(text) for text in split_outside(label[2] or "")]))
                continue
            if not blocks:
                blocks.append(Block(""))
            blocks[-1].nodes.append(self.node())
        return blocks

    def argument(self, text: str) -> Var:
        name, _, rest = text.partition(": ")
        kind, location = self.cut_location(rest)
        self.vars[name] = Var(self.type(kind, "block argument", location))
        return self.vars[name]

    def node(self) -> Node:
        line = self.lines[self.at]
        head = _HEAD.match(line)
        if head is None:
            raise CompileError(f"this line of Triton's IR cannot be read: {line}")
        self.at += 1
        result, count, name, operands, successors = head.groups()
        node = Node(name, [self.vars[use] for use in split_outside(operands)], [], {}, [], [], "")
        node.successors = [label.split("(")[0] for label in split_outside(successors or "")]
        rest = line[head.end() :].strip()
        if rest.startswith("<{"):
            end = _matching(rest, 0)
            node.attributes.update(_attributes(rest[2 : end - 1]))
            rest = rest[end + 1 :].strip()
        if rest.startswith("({"):
            rest = self.regions_of(node)
        if rest.startswith("{"):
            end = _matching(rest, 0)
            node.attributes.update(_attributes(rest[1:end]))
            rest = rest[end + 1 :].strip()
        signature, node.location = self.cut_location(rest.removeprefix(":").strip())
        self.define(node, result, count, signature)
        return node

    def regions_of(self, node: Node) -> str:
        """Read the regions of a node; the rest of the line that closes the last one."""
        while True:
            node.regions.append(self.region())
            line = self.lines[self.at]
            self.at += 1
            if line.startswith("})"):
                return line[2:].strip()

    def define(self, node: Node, result: str | None, count: str | None, signature: str) -> None:
        results = signature[_matching(signature, 0) + 1 :].strip().removeprefix("->").strip()
        kinds = split_outside(results[1:-1]) if results.startswith("(") else [results]
        if result is None:
            return
        names = [result] if count is None else [f"{result}#{place}" for place in range(int(count))]
        for name, kind in zip(names, kinds, strict=True):
            self.vars[name] = Var(self.type(kind, node.name, node.location), node)
            node.results.append(self.vars[name])

    def type(self, text: str, name: str, location: str) -> TensorType:
        try:
            return read_type(text)
        except KeyError:
            raise UnsupportedOpError(f"{name} of type {text}", location) from None

    def cut_location(self, text: str) -> tuple[str, str]:
        """What comes before the trailing loc(...), and the source place that it stands for."""
        start = text.rfind(" loc(")
        return (text, "") if start < 0 else (text[:start], self.place(text[start + 1 :]))

    def place(self, text: str) -> str:
        found = _PLACE.search(text)
        if found:
            return ":".join(found.groups())
        for reference in _REFERENCE.findall(text):
            place = self.place(self.locations.get(reference, ""))
            if place:
                return place
        return ""


def _attributes(text: str) -> dict[str, str]:
    pairs = (part.partition(" = ") for part in split_outside(text))
    return {name: value for name, _, value in pairs}
