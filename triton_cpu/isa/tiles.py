"""Products on AMX tiles: 16 rows of 64 bytes each, bf16 into f32 and int8 into int32.

An element's sum takes the chunks of K in turn, 32 bf16 or 64 int8 at a time. A row of a tile depends on that row of the
first operand alone, so padding rows, and the number of rows, have no part in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triton_cpu.isa.pack import ROW_BYTES, Packed, pack, padded_rows
from triton_cpu.isa.product import Product
from triton_cpu.llvm.builder import Index, Value
from triton_cpu.llvm.types import I8, I64, SIZES, VOID
from triton_cpu.lower.lanes import Buffer, Place

if TYPE_CHECKING:
    from triton_cpu.lower.context import Context
    from triton_cpu.ttir.nodes import Node

ROWS = 16
_FIRST_A, _FIRST_B = 4, 6  # tiles 0 to 3 hold results, two each the operands
_KINDS = {  # element and accumulator -> the feature it needs, the instruction
    ("bfloat", "float"): ("amx_bf16", "tdpbf16ps"),
    ("i8", "i32"): ("amx_int8", "tdpbssd"),
}


def obstacle(cx: Context, node: Node) -> str:
    """Why it is not for a product; "" for dtypes that this machine's tiles multiply, in any shape."""
    a, b, c = (operand.type for operand in node.operands[:3])
    feature, _ = _KINDS.get((a.elem, c.elem), ("", ""))
    if not feature or a.name != b.name or a.name.startswith("f8"):
        return "multiplies bf16 into f32 and int8 into int32"
    return "" if feature in cx.machine.features else f"needs {feature}"


def emit(cx: Context, product: Product) -> None:
    """Write the product: the second operand packed, then up to four tiles of results at a time over all of K."""
    cx.uses_tiles = True
    depth = ROW_BYTES // SIZES[product.elem]
    m, n, k = (-(-size // unit) for size, unit in ((product.m, ROWS), (product.n, ROWS), (product.k, depth)))
    right = pack(cx, product)
    left = _left_rows(cx, product) if product.m % ROWS == 0 and product.k % depth == 0 else None
    if left is None:
        left = _Rows(cx, padded_rows(cx, product, m * ROWS, k * depth))
    whole = product.m % ROWS == 0 and product.n % ROWS == 0
    out = product.out if whole else cx.new_buffer((m * ROWS, n * ROWS), product.out.elem)
    if not whole:
        _copy(cx, product, product.out, product.batch, out, ())
    results = _Rows(cx, out, product.batch if whole else ())
    height = min(m, 2)
    width = min(n, 4 // height)
    for first_row, end_row, rows in _pieces(m, height):
        for first_column, end_column, columns in _pieces(n, width):
            with (
                cx.loop(first_row, end_row, rows) as row,
                cx.loop(first_column, end_column, columns) as column,
            ):
                _block(cx, product, left, right, results, k, (row, rows), (column, columns))
    if not whole:
        _copy(cx, product, out, (), product.out, product.batch)


class _Rows:
    """A matrix in memory that tiles are loaded from: rows at a distance in bytes."""

    def __init__(self, cx: Context, source: Buffer | tuple[Product, Index], batch: Place = ()) -> None:
        self.cx = cx
        self.source = source
        self.batch = batch

    def tile(self, row: Index, column: Index) -> tuple[Value, Index]:
        """Address of element [row, column] and the distance of rows."""
        if isinstance(self.source, Buffer):
            width = self.source.shape[-1] * SIZES[self.source.elem]
            return self.cx.place_of(self.source, (*self.batch, row, column)), width
        product, distance = self.source
        return product.a_source(row, column), distance


def _left_rows(cx: Context, product: Product) -> _Rows | None:
    """The first operand where it lies in memory, if tiles can be loaded from there."""
    distance = product.a_row_distance()
    return None if distance is None else _Rows(cx, (product, cx.b.mul(distance, SIZES[product.elem])))


def _block(
    cx: Context,
    product: Product,
    left: _Rows,
    right: Packed,
    results: _Rows,
    chunks: int,
    rows: tuple[Index, int],
    columns: tuple[Index, int],
) -> None:
    """Tiles of results from a first row and column of tiles on, as many as given."""
    b, depth = cx.b, ROW_BYTES // SIZES[product.elem]
    instruction = _KINDS[product.elem, product.out.elem][1]
    cells = [(i, j) for i in range(rows[1]) for j in range(columns[1])]
    places = [results.tile(b.mul(b.add(rows[0], i), ROWS), b.mul(b.add(columns[0], j), ROWS)) for i, j in cells]
    for tile, place in enumerate(places):
        _move(cx, "tileloadd64", tile, *place)
    with cx.loop(0, chunks) as chunk:
        for i in range(rows[1]):
            _move(cx, "tileloadd64", _FIRST_A + i, *left.tile(b.mul(b.add(rows[0], i), ROWS), b.mul(chunk, depth)))
        for j in range(columns[1]):
            packed = right.place(b.mul(b.add(columns[0], j), ROWS), b.mul(chunk, ROWS))
            _move(cx, "tileloadd64", _FIRST_B + j % 2, packed, ROW_BYTES)
            for i in range(rows[1]):
                tiles = (cells.index((i, j)), _FIRST_A + i, _FIRST_B + j % 2)
                b.call(f"llvm.x86.{instruction}", VOID, [Value(str(tile), I8) for tile in tiles])
    for tile, place in enumerate(places):
        _move(cx, "tilestored64", tile, *place)


def _move(cx: Context, instruction: str, tile: int, place: Value, distance: Index) -> None:
    cx.b.call(f"llvm.x86.{instruction}", VOID, (Value(str(tile), I8), place, Value(cx.b.index(distance).text, I64)))


def _pieces(total: int, size: int) -> list[tuple[int, int, int]]:
    """(first, end, at a time): whole pieces, then the rest as one narrower piece."""
    whole = total - total % size
    return [(0, whole, size)] + ([(whole, total, total - whole)] if whole < total else [])


def _copy(cx: Context, product: Product, source: Buffer, from_: Place, to: Buffer, into: Place) -> None:
    """Copy the m x n results between the accumulator and a buffer of whole tiles."""

    def body(at: Place, axis: int | None, lanes: int) -> None:
        lane = cx.read(source, (*from_, *at), None if axis is None else len(from_) + axis, lanes)
        cx.write(to, (*into, *at), None if axis is None else len(into) + axis, lane.value)  # type: ignore[union-attr]

    cx.each((product.m, product.n), 1, body)
