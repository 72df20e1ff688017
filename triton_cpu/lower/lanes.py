"""What a chunk of a tensor can be while it is computed, and where a whole tensor can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from triton_cpu.llvm.builder import Index, Value
from triton_cpu.ttir.nodes import Var


class Uniform(NamedTuple):
    """Every lane has this scalar."""

    value: Value


class Affine(NamedTuple):
    """Lane i is ``base + i * stride``: integers, or pointers with the stride in elements."""

    base: Value
    stride: Index


class Vector(NamedTuple):
    """Lane i is element i."""

    value: Value


class Guess(NamedTuple):
    """``affine`` if the scalar i1 ``holds`` at run time, else the vector that ``exact`` writes."""

    affine: Affine
    holds: Value
    exact: Callable[[], Value]


Lane = Uniform | Affine | Guess | Vector
Place = tuple[Index, ...]  # coordinates of a chunk's first element


class Buffer(NamedTuple):
    """A tensor in memory of the thread, row-major; i1 takes a byte."""

    pointer: Value
    shape: tuple[int, ...]
    elem: str

    def strides(self) -> list[int]:
        """Elements from one index of each dimension to the next."""
        strides, step = [], 1
        for size in reversed(self.shape):
            strides.append(step)
            step *= size
        return strides[::-1]


class Induction(NamedTuple):
    """A loop-carried tensor that grows by a scalar each turn: `start` plus `offset` (i64 elements, or the integer)."""

    start: Var
    offset: Value


Form = Value | Buffer | Induction  # of a scalar, of a tensor in memory, of a growing tensor
