"""Products of small floats (8 and 4 bits, block-scaled) and into 16-bit floats, by way of products of bf16 into f32.

The operands are converted exactly: bf16 holds every number of 8 and 4 bits, times every scale unless that leaves the
range of bf16. Operands of f16, which it does not hold, make the scaled product one of f32.
"""

from __future__ import annotations

from triton_cpu.errors import UnsupportedOpError
from triton_cpu.ttir.attributes import flag, integer, integers
from triton_cpu.ttir.nodes import Node, Var
from triton_cpu.ttir.rewrite import Emitter, of, rewrite, shaped
from triton_cpu.ttir.types import TensorType

_E2M1, _FP16 = 4, 6  # of Triton's numbering of formats
_FORMATS = {0: "f8E4M3FN", 1: "f8E5M2", _E2M1: "i8", 5: "bf16", _FP16: "f16"}
_E5M2_OVER_E2M1 = 2.0**14  # the exponents' biases: a number of e2m1 read as one of e5m2 is that much too small
_SMALLEST_SCALE, _NAN = 0x00400000, 0x7FC00000  # bits of f32: 2^-127, and what the scale 255 stands for


def widen_small_floats(functions: list[Node]) -> list[Node]:
    """Replace such products in place, in all regions of the functions; the functions."""
    return rewrite(rewrite(functions, {"tt.dot_scaled": _scaled}), {"tt.dot": _plain})


def _plain(node: Node) -> list[Node]:
    """tl.dot: each operand of 8 bits in bf16; the sum of a 16-bit accumulator in f32, rounded once."""
    *factors, c = node.operands[:3]
    wide = of(c.type, "f32")
    small, narrow = any(var.type.name.startswith("f8") for var in factors), c.type.name in ("f16", "bf16")
    if not small and not narrow:
        return []
    e = Emitter(node)
    if small:
        factors = [_float(e, var, "bf16") for var in factors]
    total = e.op("tt.dot", [*factors, _float(e, c, "f32") if narrow else c], wide if narrow else c.type)
    if narrow:
        e.op("arith.truncf", [total], c.type)
    return e.finish()


def _scaled(node: Node) -> list[Node]:
    """tl.dot_scaled: each operand times its scales, then the product."""
    _, _, _, *given = integers(node, "operandSegmentSizes")
    a, b, c, *scales = node.operands
    a_scale = scales.pop(0) if given[0] else None
    b_scale = scales.pop(0) if given[1] else None
    formats = [integer(node, f"{operand}_elem_type") for operand in "ab"]
    for number in formats:
        if number not in _FORMATS:
            raise UnsupportedOpError(f"tt.dot_scaled of format {number}", node.location)
    e, elem = Emitter(node), "f32" if _FP16 in formats else "bf16"
    fast, a_packed, b_packed = (flag(node, name) for name in ("fastMath", "lhs_k_pack", "rhs_k_pack"))
    factors = [
        _factor(e, a, formats[0], a_packed, True, a_scale, fast, elem),
        _factor(e, b, formats[1], b_packed, False, b_scale, fast, elem),
    ]
    e.op("tt.dot", [*factors, c], c.type)
    return e.finish()


def _factor(
    e: Emitter, var: Var, format_: int, k_packed: bool, first: bool, scale: Var | None, fast: bool, elem: str
) -> Var:
    """An operand [.., M, K], or [.., K, N] if not `first`, with its scales [.., M or N, K / group] multiplied in."""
    rank = len(var.type.sizes)
    k_axis = rank - 1 if first else rank - 2
    if format_ == _E2M1:
        value = _unpack(e, var, k_axis if k_packed else 2 * rank - 3 - k_axis)
    else:
        value = _float(e, var, "f32" if scale else elem)
    if scale is not None:
        wide = _scale(e, scale, fast)
        wide = _repeat(e, wide, rank - 1, value.type.sizes[k_axis] // wide.type.sizes[-1])
        if not first:
            order = [*range(rank - 2), rank - 1, rank - 2]
            wide = e.op("tt.trans", [wide], value.type, order=f"array<i32: {', '.join(map(str, order))}>")
        value = e.op("arith.mulf", [value, wide], value.type)
    return _float(e, value, elem)


def _scale(e: Emitter, scale: Var, fast: bool) -> Var:
    """Scales as f32: powers of two by their exponent plus 127, of which 255 is NaN unless `fast`; or 8-bit floats."""
    if scale.type.name.startswith("f8"):
        return _float(e, scale, "f32")
    ints, flags = of(scale.type, "i32"), of(scale.type, "i1")

    def where(exponent: int, value: int, bits: Var) -> Var:
        equal = e.op("arith.cmpi", [number, e.constant(ints, exponent)], flags, predicate=0)
        return e.op("arith.select", [equal, e.constant(ints, value), bits], ints)

    number = e.op("arith.extui", [scale], ints)
    bits = e.op("arith.shli", [number, e.constant(ints, 23)], ints)
    bits = where(0, _SMALLEST_SCALE, bits)
    if not fast:
        bits = where(255, _NAN, bits)
    return e.op("tt.bitcast", [bits], of(ints, "f32"))


def _unpack(e: Emitter, var: Var, axis: int) -> Var:
    """Two numbers of e2m1 in each byte along an axis, the first one in the low bits, as f32."""
    both = _repeat(e, var, axis, 2)
    shifts = _shifts(e, both.type, axis)
    low = e.op("arith.shrui", [both, shifts], both.type)

    def part(mask: int, up: int) -> Var:
        bits = e.op("arith.andi", [low, e.constant(low.type, mask)], low.type)
        return e.op("arith.shli", [bits, e.constant(low.type, up)], low.type)

    bits = e.op("arith.ori", [part(7, 1), part(8, 4)], low.type)  # exponent and mantissa, sign
    tiny = _float(e, e.op("tt.bitcast", [bits], of(bits.type, "f8E5M2")), "f32")
    return e.op("arith.mulf", [tiny, e.constant(tiny.type, _E5M2_OVER_E2M1)], tiny.type)


def _shifts(e: Emitter, kind: TensorType, axis: int) -> Var:
    """0 at the even and 4 at the odd places along an axis."""
    rank, line = len(kind.sizes), TensorType((kind.sizes[axis],), "i32", "i32")
    places = e.op("tt.make_range", [], line, start=0, end=kind.sizes[axis])
    odd = e.op("arith.andi", [places, e.constant(line, 1)], line)
    value = e.op("arith.trunci", [e.op("arith.shli", [odd, e.constant(line, 2)], line)], of(line, "i8"))
    for dim in range(rank):
        if dim != axis:
            sizes = value.type.sizes
            value = e.op("tt.expand_dims", [value], shaped(value.type, *sizes[:dim], 1, *sizes[dim:]), axis=dim)
    return e.op("tt.broadcast", [value], kind)


def _repeat(e: Emitter, var: Var, axis: int, times: int) -> Var:
    sizes = list(var.type.sizes)
    sizes[axis] *= times
    return e.op("triton_cpu.repeat", [var], shaped(var.type, *sizes), axis=axis, times=times)


def _float(e: Emitter, var: Var, name: str) -> Var:
    """A float in another format."""
    return var if var.type.name == name else e.op("tt.fp_to_fp", [var], of(var.type, name))
