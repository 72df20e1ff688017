"""Attributes of operations, from their printed forms."""

from __future__ import annotations

import re
import struct

from triton_cpu.ttir.nodes import Node

_ARRAY = re.compile(r"array<i\d+(?:: (.*))?>")
_NUMBER = re.compile(r"(?:dense<)?(-?[\w.+-]+)>?(?: : .*)?")
_ESCAPE = re.compile(rb"\\(\\|[0-9A-F]{2})")
_FORMATS = {"half": ("<H", "<e"), "float": ("<I", "<f"), "double": ("<Q", "<d")}


def integer(node: Node, name: str) -> int:
    """The integer attribute `name`."""
    return int(node.attributes[name].split(" : ")[0])


def integers(node: Node, name: str) -> list[int]:
    """The array attribute `name`."""
    match = _ARRAY.fullmatch(node.attributes[name])
    if match is None:
        raise ValueError(f"{name} = {node.attributes[name]} is no array")
    return [int(item) for item in (match.group(1) or "").split(",") if item.strip()]


def flag(node: Node, name: str) -> bool:
    """The boolean attribute `name`, false when absent."""
    return node.attributes.get(name, "false") == "true"


def string(node: Node, name: str) -> str:
    """The string attribute `name`; MLIR prints bytes that are not plain ASCII, and quotes, as \\XX."""
    raw = node.attributes[name][1:-1].encode()
    plain = _ESCAPE.sub(lambda match: match[1] if match[1] == b"\\" else bytes([int(match[1], 16)]), raw)
    return plain.decode(errors="replace")


def number(node: Node) -> int | float | None:
    """The value of a constant whose elements are all equal; None for another one.

    Floats may be printed as their bits, which keeps infinities and NaN. Of 8-bit floats these are given as an integer.
    """
    match = _NUMBER.fullmatch(node.attributes["value"])
    if match is None:
        return None
    text, elem = match.group(1), node.result.type.elem
    if text in ("true", "false"):
        return int(text == "true")
    if elem in ("half", "bfloat", "float", "double"):
        return _from_bits(int(text, 16), elem) if text.startswith("0x") else float(text)
    if node.result.type.name.startswith("f8") and not text.startswith("0x"):
        return float(text)
    return int(text, 0)


def _from_bits(bits: int, elem: str) -> float:
    if elem == "bfloat":
        bits, elem = bits << 16, "float"
    whole, real = _FORMATS[elem]
    return float(struct.unpack(real, struct.pack(whole, bits))[0])
