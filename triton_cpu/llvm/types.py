"""LLVM types as the lowering sees them: an element and a number of lanes."""

from __future__ import annotations

from typing import NamedTuple

# bytes an element takes in memory (i1 is stored as a byte)
SIZES = {
    "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8,
}  # fmt: skip
FLOATS = frozenset({"half", "bfloat", "float", "double"})
_SUFFIX = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}


def spelled(elem: str) -> str:
    """How LLVM text writes an element.

    bfloat is the integer of its bits: where a processor has no bf16 instructions, LLVM moves a bfloat from block to
    block as f32 and rounds it back by a library call.
    """
    return "i16" if elem == "bfloat" else elem


class Type(NamedTuple):
    """`lanes` 0 is a scalar, otherwise a vector of that many elements."""

    elem: str
    lanes: int = 0

    def __str__(self) -> str:
        elem = spelled(self.elem)
        return elem if self.lanes == 0 else f"<{self.lanes} x {elem}>"

    @property
    def suffix(self) -> str:
        """The type's spelling in an overloaded intrinsic's name."""
        scalar = _SUFFIX.get(self.elem, spelled(self.elem))
        return scalar if self.lanes == 0 else f"v{self.lanes}{scalar}"

    @property
    def bits(self) -> int:
        """Bits of one element as a value (1 for i1)."""
        return 1 if self.elem == "i1" else 8 * SIZES[self.elem]

    @property
    def is_float(self) -> bool:
        return self.elem in FLOATS

    def of(self, elem: str) -> Type:
        """The same lanes of another element."""
        return Type(elem, self.lanes)


def stored(elem: str) -> str:
    """The element an `elem` takes in memory."""
    return "i8" if elem == "i1" else elem


I1, I8, I16, I32, I64 = (Type(f"i{bits}") for bits in (1, 8, 16, 32, 64))
F32, F64, PTR = Type("float"), Type("double"), Type("ptr")
VOID = Type("void")
