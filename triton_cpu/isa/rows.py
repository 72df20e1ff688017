"""Products whose second operand is contiguous along K: dot products of rows, several accumulators of lanes each.

The order of an element's sum: lane l adds the elements l, l + L, l + 2 L, ... of K in turn (of bf16, where K is 2 L or
more, the elements 2 l and 2 l + 1, then those 2 L further on), then lanes are added in pairs at distance 1, 2, 4, ...,
and the total is added to the accumulator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from triton_cpu.isa.groups import dot_pairs
from triton_cpu.isa.product import Product, runs_along_k
from triton_cpu.llvm.builder import Builder, Index, Value
from triton_cpu.llvm.convert import fp_to_fp
from triton_cpu.llvm.types import Type

if TYPE_CHECKING:
    from triton_cpu.lower.context import Context
    from triton_cpu.ttir.nodes import Node

Sums = list[Value]  # the accumulators of a block of results, row by row
# runs the turns over K: gets the accumulators at zero and what adds a[.., k..] * b[k.., ..] to them; the final ones
Contraction = Callable[[Sums, Callable[[Index, Sums], Sums]], Sums]


class Step(NamedTuple):
    """How one chunk of K is multiplied.

    Attributes:
        depth: elements of K in a chunk.
        lanes: lanes of an accumulator.
        prepare: a chunk of either operand -> what `multiply` takes.
        multiply: accumulator, prepared chunks -> accumulator.
    """

    depth: int
    lanes: int
    prepare: Callable[[Builder, Value], Sequence[Value]]
    multiply: Callable[[Builder, Value, Sequence[Value], Sequence[Value]], Value]


def obstacle(cx: Context, node: Node) -> str:
    """Why it is not for a product; "" for floats into f32, or f64, with the second operand contiguous along K."""
    a, b, c = (operand.type for operand in node.operands[:3])
    known = (a.elem in ("float", "bfloat", "half") and c.elem == "float") or a.elem == c.elem == "double"
    if not known or a.elem != b.elem:
        return "multiplies floats into f32, and f64"
    return "" if runs_along_k(cx, node.operands[1]) else "wants the second operand contiguous along K"


def emit(cx: Context, product: Product) -> None:
    """Write the product."""
    step = step_for(cx, product)

    def contract(sums: Sums, add: Callable[[Index, Sums], Sums]) -> Sums:
        return cx.fold(0, product.k, step.depth, sums, add)

    emit_blocks(cx, product, contract)


def emit_blocks(cx: Context, product: Product, contraction: Contraction) -> None:
    """Write the product block by block of results, each with its own run over K."""
    b, step = cx.b, step_for(cx, product)
    budget = 16 if "avx512" in cx.machine.features else 8  # accumulators that fit in registers beside the operands
    height = min(product.m, 4 if budget == 16 else 2)
    width = min(product.n, budget // height)

    def add(m: Index, n: Index, k: Index, sums: Sums) -> Sums:
        left = [step.prepare(b, product.a_row(b.add(m, i), k, step.depth)) for i in range(height)]
        new = list(sums)
        for j in range(width):
            right = step.prepare(b, product.b_column(k, b.add(n, j), step.depth))
            for i in range(height):
                new[i * width + j] = step.multiply(b, new[i * width + j], left[i], right)
        return new

    zero = b.zero(Type(product.out.elem, step.lanes))
    with cx.loop(0, product.n, width) as n, cx.loop(0, product.m, height) as m:
        sums = contraction([zero] * (height * width), lambda k, so_far: add(m, n, k, so_far))
        totals = _add_lanes(b, sums)
        for i in range(height):
            place = product.out_place(b.add(m, i), n)
            kind = Type(product.out.elem, width if width > 1 else 0)
            row = totals[i * width : (i + 1) * width]
            total = _join(b, row) if width > 1 else row[0]
            b.store(b.binary("fadd", b.load(kind, place), total), place)


def _join(b: Builder, scalars: Sequence[Value]) -> Value:
    kind = Type(scalars[0].type.elem, len(scalars))
    vector = b.poison(kind)
    for lane, scalar in enumerate(scalars):
        text = f"insertelement {kind} {vector.text}, {scalar.type} {scalar.text}, i64 {lane}"
        vector = b.value(kind, text)
    return vector


def _add_lanes(b: Builder, sums: Sums) -> list[Value]:
    """The total of each accumulator, all of them in one tree of shuffles."""
    lanes = sums[0].type.lanes
    if lanes == 0:
        return sums
    totals: list[Value] = []
    for start in range(0, len(sums), lanes):
        group = sums[start : start + lanes]
        count, distance = len(group), 1
        while distance < lanes:
            if len(group) > 1:
                group = [_pair(b, x, y, distance) for x, y in zip(group[::2], group[1::2], strict=True)]
            else:
                swapped = b.shuffle(group[0], None, [lane ^ distance for lane in range(lanes)])
                group = [b.binary("fadd", group[0], swapped)]
            distance *= 2
        totals += [b.extract(group[0], lane) for lane in range(count)]
    return totals


def _pair(b: Builder, x: Value, y: Value, distance: int) -> Value:
    """Pairs at a distance added: those of x where the lane lacks the bit `distance`, those of y where it has it."""
    lanes = x.type.lanes
    low = b.shuffle(x, y, [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)])
    high = b.shuffle(x, y, [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)])
    return b.binary("fadd", low, high)


def step_for(cx: Context, product: Product) -> Step:
    """How this machine multiplies a chunk of the product."""
    features = cx.machine.features
    register = 64 if "avx512" in features else 32 if "avx2" in features else 16  # bytes
    wide = register // (8 if product.out.elem == "double" else 4)
    depth = min(product.k, wide)
    if product.elem == "bfloat" and product.k >= 2 * wide:
        if "avx512_bf16" in features:
            return Step(2 * wide, wide, lambda b, chunk: [chunk], lambda b, sum_, x, y: dot_pairs(b, sum_, x[0], y[0]))
        return Step(2 * wide, wide, _even_and_odd, _multiply)
    lanes = depth if depth > 1 else 0
    return Step(depth, lanes, lambda b, chunk: [fp_to_fp(b, chunk, product.out.elem)], _multiply)


def _multiply(b: Builder, sum_: Value, left: Sequence[Value], right: Sequence[Value]) -> Value:
    for x, y in zip(left, right, strict=True):
        sum_ = b.fma(x, y, sum_)
    return sum_


def _even_and_odd(b: Builder, chunk: Value) -> Sequence[Value]:
    """bf16 pairs as two f32 vectors, without moving an element across lanes."""
    pairs = b.bitcast(chunk, Type("i32", chunk.type.lanes // 2))
    even = b.binary("shl", pairs, b.const(pairs.type, 16))
    odd = b.binary("and", pairs, b.const(pairs.type, 0xFFFF0000 - (1 << 32)))
    return [b.bitcast(half, Type("float", pairs.type.lanes)) for half in (even, odd)]
