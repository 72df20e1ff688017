"""A matrix product as the micro-kernels see it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from triton_cpu.analysis.axis import step, vector_axis
from triton_cpu.llvm.builder import Index, Value
from triton_cpu.lower.lanes import Affine
from triton_cpu.ttir.attributes import integers

if TYPE_CHECKING:
    from triton_cpu.lower.context import Context
    from triton_cpu.lower.lanes import Buffer, Place
    from triton_cpu.ttir.nodes import Node, Var


class Product:
    """``out[m, n] += sum over k of a[m, k] * b[k, n]`` for one index of the batch dimensions.

    Attributes:
        m, n, k: sizes.
        elem: element that a and b are given in; the accumulator's is out.elem.
    """

    def __init__(self, cx: Context, node: Node, out: Buffer, batch: Place = ()) -> None:
        self.cx = cx
        self.a: Var = node.operands[0]
        self.b: Var = node.operands[1]
        self.out = out
        self.batch = batch
        self.m, self.k = self.a.type.sizes[-2:]
        self.n = self.b.type.sizes[-1]
        self.elem = self.a.type.elem

    def widened(self, elem: str) -> Product:
        """The same product of integers that are given in a wider element."""
        other = copy.copy(self)
        other.elem = elem
        return other

    def a_row(self, m: Index, k: Index, lanes: int) -> Value:
        """a[m, k : k + lanes], or one element for 0."""
        return self._chunk(self.a, m, k, 1, lanes)

    def b_column(self, k: Index, n: Index, lanes: int) -> Value:
        """b[k : k + lanes, n], or one element for 0."""
        return self._chunk(self.b, k, n, 0, lanes)

    def b_row(self, k: Index, n: Index, lanes: int) -> Value:
        """b[k, n : n + lanes], or one element for 0."""
        return self._chunk(self.b, k, n, 1, lanes)

    def b_source(self, k: Index, n: Index) -> Value | None:
        """Address of b[k, n] where b is loaded from memory; it need not lie inside of b."""
        loaded = self._load(self.b, [*self.batch, k, n])
        if loaded is None:
            return None
        return self.cx.vector(loaded[0], self.cx.chunk(loaded[0], loaded[1], None, 0), 0)

    def a_source(self, m: Index, k: Index) -> Value:
        """Address of a[m, k], for an operand whose rows lie in memory."""
        pointer, at = self._unmasked_a(m, k) or (self.a, ())
        return self.cx.vector(pointer, self.cx.chunk(pointer, at, None, 0), 0)

    def a_rows_in_memory(self) -> bool:
        """Whether a is loaded without a mask, contiguous along K, and as it is."""
        found = self._unmasked_a(0, 0) if self.elem == self.a.type.elem else None
        return found is not None and step(self.cx.forms, found[0], len(self.batch) + 1, wrapping=False) == 1

    def a_row_distance(self) -> Index | None:
        """Elements from one row of a to the next, where its rows lie in memory at equal distances."""
        found = self._unmasked_a(0, 0)
        if found is None or not self.a_rows_in_memory():
            return None
        lane = self.cx.chunk(*found, len(self.batch), min(self.m, 16))
        return lane.stride if isinstance(lane, Affine) else None

    def _unmasked_a(self, m: Index, k: Index) -> tuple[Var, Place] | None:
        node = self.a.node
        if self.a in self.cx.forms or node is None or node.name != "tt.load" or len(node.operands) > 1:
            return None
        return node.operands[0], (*self.batch, m, k)

    def _load(self, var: Var, at: list[Index]) -> tuple[Var, Place] | None:
        """The pointers that an operand is loaded from, seen through transpositions, and the place in them."""
        while var.node is not None and var.node.name == "tt.trans" and var not in self.cx.forms:
            order = integers(var.node, "order")
            at = [at[order.index(dim)] for dim in range(len(order))]
            var = var.node.operands[0]
        if var.node is None or var.node.name != "tt.load" or var in self.cx.forms:
            return None
        return var.node.operands[0], tuple(at)

    def out_place(self, m: Index, n: Index) -> Value:
        """Pointer to out[m, n]."""
        return self.cx.place_of(self.out, (*self.batch, m, n))

    def _chunk(self, var: Var, i: Index, j: Index, axis: int, lanes: int) -> Value:
        along = len(self.batch) + axis if lanes else None
        return self.cx.b.cast("sext", self.cx.evaluate(var, (*self.batch, i, j), along, lanes), self.elem)


def runs_along_k(cx: Context, b: Var) -> bool:
    """Whether the second operand [.., K, N] is better read along K: its columns are contiguous in memory."""
    return vector_axis(cx.forms, b) == len(b.type.sizes) - 2
