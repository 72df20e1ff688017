"""Instructions that multiply and add groups of 4 bytes, a group in each of the 16 lanes of a 64-byte vector."""

from __future__ import annotations

from collections.abc import Callable

from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.types import Type

SIGN_BITS = 0x80808080 - (1 << 32)  # of the four int8 of a group


def dot_pairs(b: Builder, sum_: Value, x: Value, y: Value) -> Value:
    """sum + x[2 l] * y[2 l] + x[2 l + 1] * y[2 l + 1] of bf16 in f32 (AVX512-BF16); it takes denormals as zero."""
    pairs = Type("bfloat", 32)
    return b.call("llvm.x86.avx512bf16.dpbf16ps.512", sum_.type, (sum_, b.bitcast(x, pairs), b.bitcast(y, pairs)))


def dot_fours(b: Builder, sum_: Value, unsigned: Value, signed: Value) -> Value:
    """sum + the four products of a lane, of uint8 and int8, in wrapping int32 (AVX512-VNNI)."""
    fours = Type("i8", 64)
    args = (sum_, b.bitcast(unsigned, fours), b.bitcast(signed, fours))
    return b.call("llvm.x86.avx512.vpdpbusd.512", sum_.type, args)


def pair_adder(lanes: int) -> Callable[[Builder, Value, Value, Value], Value]:
    """What adds x[2 l] * y[2 l] + x[2 l + 1] * y[2 l + 1] of int16 to int32: 8 lanes by AVX2, 16 by AVX-512."""
    name = "llvm.x86.avx512.pmaddw.d.512" if lanes == 16 else "llvm.x86.avx2.pmadd.wd"
    pairs = Type("i16", 2 * lanes)

    def add(b: Builder, sum_: Value, x: Value, y: Value) -> Value:
        products = []
        for start in range(0, sum_.type.lanes, lanes):
            factors = [b.bitcast(b.slice(v, start, lanes), pairs) for v in (x, y)]
            products.append(b.call(name, Type("i32", lanes), factors))
        return b.binary("add", sum_, b.concat(products))

    return add
