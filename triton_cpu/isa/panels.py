"""Products by vectors of 16 columns, where one instruction multiplies groups of K: pairs, or four int8.

The second operand is packed once into panels of 16 columns, or interleaved in registers where that serves one block of
rows alone. The order of an element's sum: the accumulator, then the groups of K in turn; int8 is exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from triton_cpu.isa.groups import SIGN_BITS, dot_fours, dot_pairs, pair_adder
from triton_cpu.isa.pack import AHEAD, ROW_BYTES, fetch, flip, interleave, pack, padded_rows, part
from triton_cpu.isa.product import Product, runs_along_k
from triton_cpu.llvm.builder import Builder, Index, Value
from triton_cpu.llvm.types import SIZES, Type

if TYPE_CHECKING:
    from triton_cpu.lower.context import Context
    from triton_cpu.ttir.nodes import Node

_HEIGHT = 4  # rows of a block of results in registers
_COLUMNS = 16


class Kind(NamedTuple):
    """How groups of an element are multiplied.

    Attributes:
        feature: the instruction set it needs.
        elem: what the operands are widened to.
        width: vectors of 16 columns of a block of results in registers.
        flipped: what the second operand's groups are xor'ed with.
        multiply: builder, sums, groups of the second operand, a group of the first in each lane -> sums.
    """

    feature: str
    elem: str
    width: int
    flipped: int
    multiply: Callable[[Builder, Value, Value, Value], Value]


_KINDS = {  # element and accumulator -> the best first
    ("bfloat", "float"): (Kind("avx512_bf16", "bfloat", 4, 0, dot_pairs),),
    ("i8", "i32"): (
        # the instruction wants one operand unsigned: b + 128, and 128 times the sum of a's row is taken off again
        Kind("avx512_vnni", "i8", 4, SIGN_BITS, dot_fours),
        Kind("avx512", "i16", 4, 0, pair_adder(16)),
        Kind("avx2", "i16", 1, 0, pair_adder(8)),
    ),
}


def obstacle(cx: Context, node: Node) -> str:
    """Why it is not for a product; "" for whole groups of K, and 16 columns or more."""
    a, b, c = (operand.type for operand in node.operands[:3])
    kinds = _KINDS.get((a.elem, c.elem), ())
    if not kinds or a.name != b.name or a.name.startswith("f8"):
        return "multiplies bf16 into f32 and int8 into int32"
    kind = _kind(cx, a.elem, c.elem)
    if kind is None:
        return "needs " + " or ".join(kind.feature for kind in kinds)
    enough = a.sizes[-1] * SIZES[kind.elem] >= 4 and b.sizes[-1] >= _COLUMNS
    return "" if enough else f"wants 4 bytes of K and {_COLUMNS} columns at least"


def _kind(cx: Context, elem: str, sum_: str) -> Kind | None:
    """The best that this machine has."""
    return next((kind for kind in _KINDS[elem, sum_] if kind.feature in cx.machine.features), None)


def emit(cx: Context, product: Product) -> None:
    """Write the product."""
    b, elem = cx.b, product.out.elem
    kind = _kind(cx, product.elem, elem)
    assert kind is not None  # it fits
    product = product.widened(kind.elem)
    height, width = min(product.m, _HEIGHT), min(product.n // _COLUMNS, kind.width)
    cells = [(i, j) for i in range(height) for j in range(width)]
    left, right = _left(cx, product), _right(cx, product, kind, once=product.m == height)
    with cx.loop(0, product.m, height) as m:
        excess = [_excess(cx, product, left, b.add(m, i)) for i in range(height)] if kind.flipped else []
        with cx.loop(0, product.n, width * _COLUMNS) as n:
            places = [product.out_place(b.add(m, i), b.add(n, j * _COLUMNS)) for i, j in cells]
            sums = [b.load(Type(elem, _COLUMNS), place) for place in places]
            if excess:
                sums = [b.binary("sub", sum_, excess[i]) for sum_, (i, _) in zip(sums, cells, strict=True)]

            def turn(k: Index, so_far: list[Value]) -> list[Value]:
                columns = [right(k, b.add(n, j * _COLUMNS)) for j in range(width)]
                factors = [b.splat(b.load(Type("i32"), left(b.add(m, i), k), 1), _COLUMNS) for i in range(height)]
                return [kind.multiply(b, so_far[i * width + j], columns[j], factors[i]) for i, j in cells]

            totals = cx.fold(0, product.k, 4 // SIZES[product.elem], sums, turn)
            for place, total in zip(places, totals, strict=True):
                b.store(total, place)


def _left(cx: Context, product: Product) -> Callable[[Index, Index], Value]:
    """Address of a[m, k], with its row contiguous from there on: where it lies, or in a copy."""
    if product.a_rows_in_memory():
        return product.a_source
    rows = padded_rows(cx, product, product.m, product.k)
    return lambda m, k: cx.place_of(rows, (m, k))


def _right(cx: Context, product: Product, kind: Kind, once: bool) -> Callable[[Index, Index], Value]:
    """The groups at k of 16 columns from n on."""
    b, group = cx.b, 4 // SIZES[product.elem]
    lanes = Type("i32", _COLUMNS)
    if once and not runs_along_k(cx, product.b):

        def interleaved(k: Index, n: Index) -> Value:
            fetch(b, product, b.add(k, AHEAD), n)
            (groups,) = interleave(b, [product.b_row(b.add(k, i), n, _COLUMNS) for i in range(group)])
            return flip(b, groups, kind.flipped)

        return interleaved
    packed = pack(cx, product, kind.flipped, min(product.n // _COLUMNS, kind.width))
    return lambda k, n: b.load(lanes, packed.place(n, part(b, k, group)), ROW_BYTES)


def _excess(cx: Context, product: Product, left: Callable[[Index, Index], Value], m: Index) -> Value:
    """128 times the sum of a row of int8, in each lane."""
    b, depth = cx.b, min(product.k, 64)
    sums, half = Type("i32", _COLUMNS), b.const(Type("i32", _COLUMNS), SIGN_BITS)

    def turn(k: Index, so_far: list[Value]) -> list[Value]:
        chunk = b.load(Type("i8", depth), left(m, k), 1)
        whole = b.shuffle(chunk, b.zero(chunk.type), [min(lane, depth) for lane in range(64)])
        return [dot_fours(b, so_far[0], half, whole)]

    (total,) = cx.fold(0, product.k, depth, [b.zero(sums)], turn)
    return b.splat(b.intrinsic("vector.reduce.add", [total], Type("i32")), _COLUMNS)
