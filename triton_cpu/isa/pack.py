"""Operands as tiles and panels want them: the first in padded rows, the second in groups of elements of K (VNNI)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from triton_cpu.isa.product import Product, runs_along_k
from triton_cpu.llvm.builder import Builder, Index, Value
from triton_cpu.llvm.types import SIZES, Type
from triton_cpu.lower.lanes import Buffer, Place

if TYPE_CHECKING:
    from triton_cpu.lower.context import Context

ROW_BYTES = 64  # of 16 columns
_COLUMNS = 16
AHEAD = 16  # rows of the second operand between one that is read and one that is fetched


def padded_rows(cx: Context, product: Product, rows: int, depth: int) -> Buffer:
    """The first operand in memory, with zeros up to rows x depth."""
    buffer = cx.new_buffer((rows, depth), product.elem)
    if (rows, depth) != (product.m, product.k):
        cx.b.memset(buffer.pointer, rows * depth * SIZES[product.elem])

    def body(at: Place, axis: int | None, lanes: int) -> None:
        cx.write(buffer, at, axis, product.a_row(at[0], at[1], lanes))

    cx.each((product.m, product.k), 1, body)
    return buffer


def pack(cx: Context, product: Product, flipped: int = 0, width: int = 1) -> Packed:
    """The second operand in panels of 16 * width columns, each as deep as K filled up to 64 bytes.

    A row of a panel holds, for each of its columns, the g elements of K that fill 4 bytes side by side, xor'ed with
    `flipped`. With a width of 1, every 16 rows are a tile. Elements outside of the operand are 0.
    """
    chunk = 64 // SIZES[product.elem]
    depth, panels = 16 * -(-product.k // chunk), -(-product.n // (_COLUMNS * width))
    size = panels * depth * width * ROW_BYTES
    packed = Packed(cx, cx.b.buffer(size), depth, width)
    if product.n % (_COLUMNS * width) or product.k % chunk:
        cx.b.memset(packed.buffer, size)
    fill = _pack_columns if runs_along_k(cx, product.b) else _pack_rows
    fill(cx, product, packed, flipped)
    return packed


class Packed(NamedTuple):
    """An operand in panels.

    Attributes:
        depth: rows of a panel.
        width: pieces of 16 columns, 64 bytes each, side by side in a row.
    """

    cx: Context
    buffer: Value
    depth: int
    width: int

    def place(self, n: Index, row: Index) -> Value:
        """Address of 16 columns from n on, of a row of theirs."""
        b = self.cx.b
        panel, piece = part(b, n, _COLUMNS * self.width), part(b, remainder(b, n, _COLUMNS * self.width), _COLUMNS)
        at = b.add(b.mul(b.add(b.mul(panel, self.depth), row), self.width), piece)
        return b.gep(self.buffer, b.mul(at, ROW_BYTES), "i8")


def _pack_columns(cx: Context, product: Product, packed: Packed, flipped: int) -> None:
    """Read columns, which are contiguous along K, and transpose them as 4-byte groups, 16 x 16 at a time."""
    b, depth = cx.b, 64 // SIZES[product.elem]
    columns, lanes = min(product.n, _COLUMNS), min(product.k, depth)
    kind = Type(product.elem, lanes)
    with cx.loop(0, product.n, columns) as n, cx.loop(0, product.k, lanes) as k:
        groups = []
        for j in range(columns):
            chunk = product.b_column(k, b.add(n, j), lanes if lanes > 1 else 0)
            chunk = b.splat(chunk, 1) if lanes == 1 else chunk
            if lanes < depth:
                chunk = b.shuffle(chunk, b.zero(kind), [min(lane, lanes) for lane in range(depth)])
            groups.append(b.bitcast(chunk, Type("i32", _COLUMNS)))
        groups += [b.zero(Type("i32", _COLUMNS))] * (_COLUMNS - columns)
        first = part(b, b.mul(k, SIZES[product.elem]), 4)
        for row, group in enumerate(_transpose(b, groups)):
            b.store(flip(b, group, flipped), packed.place(n, b.add(first, row)))


def _pack_rows(cx: Context, product: Product, packed: Packed, flipped: int) -> None:
    """Read rows along N, 64 bytes of each, and interleave g of them."""
    b, size = cx.b, SIZES[product.elem]
    group, columns = 4 // size, min(product.n, 64 // size)
    lanes = columns if columns > 1 else 0
    present = min(group, product.k)
    with cx.loop(0, product.n, columns) as n, cx.loop(0, product.k, present) as k:
        fetch(b, product, b.add(k, AHEAD), n)
        rows = [product.b_row(b.add(k, i), n, lanes) for i in range(present)]
        rows = [b.splat(row, 1) if lanes == 0 else row for row in rows]
        rows += [b.zero(rows[0].type)] * (group - present)
        for piece, groups in enumerate(interleave(b, rows)):
            b.store(flip(b, groups, flipped), packed.place(b.add(n, piece * _COLUMNS), part(b, k, group)))


def part(b: Builder, i: Index, unit: int) -> Index:
    """i // unit."""
    return i // unit if isinstance(i, int) else b.binary("udiv", i, b.index(unit))


def remainder(b: Builder, i: Index, unit: int) -> Index:
    """i % unit."""
    return i % unit if isinstance(i, int) else b.binary("urem", i, b.index(unit))


def flip(b: Builder, groups: Value, bits: int) -> Value:
    """Groups of 4 bytes xor'ed with bits."""
    return b.binary("xor", groups, b.const(groups.type, bits)) if bits else groups


def fetch(b: Builder, product: Product, k: Index, n: Index) -> None:
    """Prefetch b[k, n], where it is loaded from memory."""
    source = product.b_source(k, n)
    if source is not None:
        b.prefetch(source)


def interleave(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """Groups of an element of every row, as integers, in vectors of at most 64 bytes."""
    vectors = [[row] for row in rows]
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [[part for x, y in zip(*pair, strict=True) for part in _zip(b, x, y)] for pair in pairs]
    return vectors[0]


def _zip(b: Builder, x: Value, y: Value) -> list[Value]:
    """Pairs of an element of either, as integers of twice the size."""
    lanes, size = x.type.lanes, SIZES[x.type.elem]
    half = lanes // 2 if 2 * lanes * size > 64 else lanes
    pairs = []
    for start in range(0, lanes, half):
        joined = b.shuffle(x, y, [lane + row for lane in range(start, start + half) for row in (0, lanes)])
        pairs.append(b.bitcast(joined, Type(f"i{16 * size}", half)))
    return pairs


def _transpose(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """16 vectors of 16 elements, rows for columns: in four steps, swap blocks of 1, 2, 4 and 8."""
    rows = list(rows)
    for block in (1, 2, 4, 8):
        for i in range(16):
            if i & block:
                continue
            x, y = rows[i], rows[i + block]
            upper = [lane if not lane & block else 16 + lane - block for lane in range(16)]
            lower = [lane + block if not lane & block else 16 + lane for lane in range(16)]
            rows[i], rows[i + block] = b.shuffle(x, y, upper), b.shuffle(x, y, lower)
    return rows
