"""Products whose second operand is read along N: an element of a times a piece of a row of b, in the order of K."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triton_cpu.isa.product import Product
from triton_cpu.llvm.builder import Builder, Index, Value
from triton_cpu.llvm.convert import fp_to_fp
from triton_cpu.llvm.types import FLOATS, SIZES, Type
from triton_cpu.lower.rules import LAZY

if TYPE_CHECKING:
    from triton_cpu.lower.context import Context
    from triton_cpu.lower.lanes import Buffer
    from triton_cpu.ttir.nodes import Node, Var

_HEIGHT = 4  # rows of a block of results, of 4 registers each with AVX-512 and 2 without


def obstacle(cx: Context, node: Node) -> str:
    """Why it is not for a product; "" for floats into f32 or f64, and integers into i32."""
    a, b, c = (operand.type.elem for operand in node.operands[:3])
    known = c in ("float", "double") if a in FLOATS else c == "i32" and a in ("i8", "i32")
    if a != b or node.operands[0].type.name.startswith("f8") or not known:
        return "multiplies floats into f32 or f64, and int8 or int32 into int32"
    return ""


def emit(cx: Context, product: Product) -> None:
    """Write the product: ``c + a[m, 0] * b[0, n] + a[m, 1] * b[1, n] + ...`` with a rounding after each term."""
    b, elem = cx.b, product.out.elem
    factors = _left(cx, product)
    if not _plain(cx, product.b):
        cx.materialise(product.b)
    register, pieces = (64, 4) if "avx512" in cx.machine.features else (32, 2)
    width = min(product.n, pieces * register // SIZES[elem])
    lanes = width if width > 1 else 0
    height = min(product.m, _HEIGHT)
    kind = Type(elem, lanes)
    with cx.loop(0, product.m, height) as m, cx.loop(0, product.n, width) as n:
        places = [product.out_place(b.add(m, i), n) for i in range(height)]

        def turn(k: Index, sums: list[Value]) -> list[Value]:
            right = _widen(b, product.b_row(k, n, lanes), elem)
            new = []
            for i, so_far in enumerate(sums):
                factor = b.load(Type(elem), cx.place_of(factors, (b.add(m, i), k)))
                new.append(_multiply_add(b, b.splat(factor, lanes), right, so_far))
            return new

        totals = cx.fold(0, product.k, 1, [b.load(kind, place) for place in places], turn)
        for place, total in zip(places, totals, strict=True):
            b.store(total, place)


def _left(cx: Context, product: Product) -> Buffer:
    """The first operand in memory, in the accumulator's type."""
    factors = cx.new_buffer((product.m, product.k), product.out.elem)

    def body(at: tuple[Index, ...], axis: int | None, lanes: int) -> None:
        cx.write(factors, at, axis, _widen(cx.b, product.a_row(at[0], at[1], lanes), product.out.elem))

    cx.each(factors.shape, 1, body)
    return factors


def _plain(cx: Context, var: Var) -> bool:
    """In memory already, or a load (seen through operations that move elements), which is as cheap as a buffer."""
    if var in cx.forms or var.node is None:
        return True
    if var.node.name == "tt.load":
        return True
    return var.node.name in LAZY and all(_plain(cx, operand) for operand in var.node.operands)


def _widen(b: Builder, value: Value, elem: str) -> Value:
    return fp_to_fp(b, value, elem) if elem in FLOATS else b.cast("sext", value, elem)


def _multiply_add(b: Builder, x: Value, y: Value, sum_: Value) -> Value:
    if x.type.is_float:
        return b.fma(x, y, sum_)
    return b.binary("add", sum_, b.binary("mul", x, y))
