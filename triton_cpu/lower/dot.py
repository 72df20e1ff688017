"""tl.dot: the accumulator in memory, the product by the first micro-kernel of isa/table.py that can do it."""

from __future__ import annotations

from triton_cpu.isa.product import Product
from triton_cpu.isa.table import choose
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Place
from triton_cpu.lower.rules import eager
from triton_cpu.ttir.nodes import Node


@eager("tt.dot")
def dot(cx: Context, node: Node) -> None:
    """c + a @ b, accumulated in the type of c over K in an order that M and N have no part in."""
    c, sizes = node.operands[2], node.result.type.sizes
    out = cx.targets.get(node.result) or cx.new_buffer(sizes, node.result.type.elem)
    if cx.forms.get(c) != out:
        cx.fill(out, c)
        cx.forget()
    kernel = choose(cx, node)

    def one(batch: Place, _: int | None, __: int) -> None:
        kernel(cx, Product(cx, node, out, batch))

    cx.each(sizes[:-2], None, one)
    cx.forms[node.result] = out
    cx.forget()
