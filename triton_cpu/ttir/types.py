"""Types of TTIR values, with their elements named as LLVM names them."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

ELEMENTS = {
    "i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "index": "i64",
    "f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double", "f8E4M3FN": "i8", "f8E5M2": "i8",
}  # fmt: skip
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(.*)>")
_POINTER = re.compile(r"!tt\.ptr<(.*?)(?:, \d+)?>")


class TensorType(NamedTuple):
    """A scalar or a tensor.

    Attributes:
        shape: sizes; None for a scalar.
        elem: LLVM element, "ptr" for pointers; 8-bit floats are "i8".
        name: the element as TTIR spells it, e.g. "f8E5M2" or "!tt.ptr<bf16>".
    """

    shape: tuple[int, ...] | None
    elem: str
    name: str

    @property
    def is_tensor(self) -> bool:
        return self.shape is not None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape, () for a scalar."""
        return self.shape or ()

    @property
    def numel(self) -> int:
        """Number of elements, 1 for a scalar."""
        total = 1
        for size in self.sizes:
            total *= size
        return total

    @property
    def pointee(self) -> str:
        """LLVM element of what a pointer points at."""
        match = _POINTER.fullmatch(self.name)
        if match is None:
            raise ValueError(f"{self.name} is no pointer")
        return "ptr" if match.group(1).startswith("!tt.ptr") else ELEMENTS[match.group(1)]


@functools.cache
def read_type(text: str) -> TensorType:
    """A type from its printed form. Raises KeyError with the spelling of a type that TTIR values do not have here."""
    match = _TENSOR.fullmatch(text)
    shape = tuple(int(size) for size in match.group(1).split("x") if size) if match else None
    name = match.group(2) if match else text
    return TensorType(shape, "ptr" if name.startswith("!tt.ptr") else ELEMENTS[name], name)
