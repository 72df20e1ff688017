"""Operands as AMX tiles want them: the first in padded rows, the second in groups of elements of K (VNNI)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from triton_cpu.isa.product import Product, runs_along_k
from triton_cpu.llvm.builder import Builder, Index, Value
from triton_cpu.llvm.types import SIZES, Type
from triton_cpu.lower.lanes import Buffer, Place

if TYPE_CHECKING:
    from triton_cpu.lower.context import Context

_TILE_BYTES = 1024
_COLUMNS = 16  # of the second operand in a tile


def padded_rows(cx: Context, product: Product, rows: int, depth: int) -> Buffer:
    """The first operand in memory, with zeros up to rows x depth."""
    buffer = cx.new_buffer((rows, depth), product.elem)
    if (rows, depth) != (product.m, product.k):
        cx.b.memset(buffer.pointer, rows * depth * SIZES[product.elem])

    def body(at: Place, axis: int | None, lanes: int) -> None:
        cx.write(buffer, at, axis, product.a_row(at[0], at[1], lanes))

    cx.each((product.m, product.k), 1, body)
    return buffer


def pack(cx: Context, product: Product, tiles_n: int, tiles_k: int) -> Value:
    """The second operand as tiles [tiles_n][tiles_k], each 16 rows of 64 bytes.

    Row r of a tile holds, for each of its 16 columns, the elements g * r .. g * r + g - 1 of its part of K side by
    side, g of them to 4 bytes. Elements outside of the operand are 0.
    """
    buffer = cx.b.buffer(tiles_n * tiles_k * _TILE_BYTES)
    fill = _pack_columns if runs_along_k(cx, product.b) else _pack_rows
    if product.n % _COLUMNS or product.k % (64 // SIZES[product.elem]):
        cx.b.memset(buffer, tiles_n * tiles_k * _TILE_BYTES)
    fill(cx, product, buffer, tiles_k)
    return buffer


def _pack_columns(cx: Context, product: Product, buffer: Value, tiles_k: int) -> None:
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
        tile = _tile(b, buffer, n, k, tiles_k, depth)
        for row, group in enumerate(_transpose(b, groups)):
            b.store(group, b.gep(tile, row * 64, "i8"))


def _pack_rows(cx: Context, product: Product, buffer: Value, tiles_k: int) -> None:
    """Read rows along N and interleave g of them."""
    b, size = cx.b, SIZES[product.elem]
    group, depth, columns = 4 // size, 64 // size, min(product.n, _COLUMNS)
    lanes = columns if columns > 1 else 0
    present = min(group, product.k)
    with cx.loop(0, product.n, columns) as n, cx.loop(0, product.k, present) as k:
        rows = [product.b_row(b.add(k, i), n, lanes) for i in range(present)]
        rows = [b.splat(row, 1) if lanes == 0 else row for row in rows]
        rows += [b.zero(rows[0].type)] * (group - present)
        inner = b.binary("urem", b.index(k), b.index(depth)) if not isinstance(k, int) else k % depth
        place = b.gep(_tile(b, buffer, n, k, tiles_k, depth), b.mul(inner, _COLUMNS * size), "i8")
        b.store(_interleave(b, rows), place)


def _tile(b: Builder, buffer: Value, n: Index, k: Index, tiles_k: int, depth: int) -> Value:
    """Address of the tile that holds element [k, n]."""
    places = [
        i // unit if isinstance(i, int) else b.binary("udiv", i, b.index(unit))
        for i, unit in ((n, _COLUMNS), (k, depth))
    ]
    return b.gep(buffer, b.mul(b.add(b.mul(places[0], tiles_k), places[1]), _TILE_BYTES), "i8")


def _interleave(b: Builder, rows: Sequence[Value]) -> Value:
    """Element 0 of every row, then element 1 of every row, ..."""
    lanes, count = rows[0].type.lanes, len(rows)
    joined = b.concat(rows)
    return b.shuffle(joined, None, [row * lanes + lane for lane in range(lanes) for row in range(count)])


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
