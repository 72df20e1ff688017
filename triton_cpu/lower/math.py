"""Mathematical functions of elements."""

from __future__ import annotations

from collections.abc import Sequence

from triton_cpu.errors import UnsupportedOpError
from triton_cpu.llvm import vecmath
from triton_cpu.llvm.builder import Value
from triton_cpu.llvm.libdevice import EXTERN
from triton_cpu.lower.context import Context
from triton_cpu.lower.rules import elementwise
from triton_cpu.ttir.nodes import Node


@elementwise(*vecmath.UNARY)
def function(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """A function of one argument, see llvm/vecmath.py."""
    return vecmath.UNARY[node.name](cx.b, args[0])


@elementwise("math.fma")
def fused_multiply_add(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """a * b + c with one rounding (16-bit floats: one in f32 and one to the result)."""
    return vecmath.fma(cx.b, args[0], args[1], args[2])


@elementwise("tt.extern_elementwise")
def library_function(cx: Context, node: Node, args: Sequence[Value]) -> Value:
    """A function of triton.language.extra.libdevice, by its CUDA name."""
    symbol = node.attributes["symbol"].strip('"')
    if symbol not in EXTERN:
        raise UnsupportedOpError(f"library function {symbol}", node.location)
    return EXTERN[symbol](cx.b, *args)
