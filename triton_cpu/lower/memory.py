"""Loads and stores through pointers: contiguous where the pointers are, gathered where not, masked lanes untouched."""

from __future__ import annotations

from triton_cpu.analysis.axis import step, vector_axis
from triton_cpu.llvm.builder import TRUE, Value
from triton_cpu.llvm.types import PTR, SIZES, Type
from triton_cpu.lower import access
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Affine, Guess, Lane, Place, Uniform, Vector
from triton_cpu.lower.rules import eager, lazy
from triton_cpu.ttir.attributes import integers
from triton_cpu.ttir.nodes import Node, Var

_NOTHING = "nothing"  # what is read instead of memory that a mask forbids


@lazy("tt.load")
def load(cx: Context, node: Node, at: Place, axis: int | None, lanes: int) -> Lane:
    """Elements behind pointers; where the mask is false, `other`, or 0 if there is none."""
    pointer, mask, other = load_operands(node)
    elem, b = node.result.type.elem, cx.b
    place = cx.chunk(pointer, at, axis, lanes)
    allowed = Uniform(TRUE) if mask is None else cx.chunk(mask, at, axis, lanes)
    cx.note(node, _describe(place, allowed, lanes, "gathered"))
    if isinstance(place, Uniform) and isinstance(allowed, Uniform):
        instead = None if other is None else cx.chunk(other, at, axis, lanes)
        if instead is None or isinstance(instead, Uniform):
            return Uniform(_load_one(cx, elem, place.value, allowed.value, instead))
    if isinstance(place, Affine) and place.stride == 1:
        if _always(allowed):
            return Vector(access.load(b, elem, lanes, place.base))
        if isinstance(allowed, Uniform):
            return Vector(_load_all_or_none(cx, elem, lanes, place.base, allowed.value, other, at, axis))
        allow = cx.vector(mask or pointer, allowed, lanes)
        return Vector(access.masked_load(b, elem, place.base, allow, _other(cx, other, elem, at, axis, lanes)))
    allow = b.const(Type("i1", lanes), True) if mask is None else cx.vector(mask, allowed, lanes)
    otherwise = _other(cx, other, elem, at, axis, lanes)
    if not isinstance(place, Guess) or place.affine.stride != 1:
        return Vector(access.gather(b, elem, cx.vector(pointer, place, lanes), allow, otherwise))
    first, exact, always = place.affine.base, place.exact, _always(allowed)

    def contiguous() -> Value:
        return access.load(b, elem, lanes, first) if always else access.masked_load(b, elem, first, allow, otherwise)

    return Vector(cx.either(place.holds, contiguous, lambda: access.gather(b, elem, exact(), allow, otherwise)))


@eager("tt.store")
def store(cx: Context, node: Node) -> None:
    """Elements to where the pointers point; lanes without mask are not touched."""
    pointer, value = node.operands[:2]
    mask = node.operands[2] if len(node.operands) > 2 else None

    def body(at: Place, axis: int | None, lanes: int) -> None:
        place = cx.chunk(pointer, at, axis, lanes)
        allowed = None if mask is None else cx.chunk(mask, at, axis, lanes)
        what = cx.evaluate(value, at, axis, lanes)
        cx.note(node, _describe(place, allowed or Uniform(TRUE), lanes, "scattered"))
        if lanes == 0:
            target = place.base if isinstance(place, Affine) else cx.vector(pointer, place, 0)
            with cx.b.guarded(None if allowed is None or _always(allowed) else _scalar(allowed)):
                access.store(cx.b, what, target)
        elif isinstance(place, Affine) and place.stride == 1:
            if allowed is None or _always(allowed):
                access.store(cx.b, what, place.base)
            else:
                access.masked_store(cx.b, what, place.base, cx.vector(mask or pointer, allowed, lanes))
        else:
            every = cx.b.const(Type("i1", lanes), True)
            allow = every if mask is None or allowed is None else cx.vector(mask, allowed, lanes)
            access.scatter(cx.b, what, cx.vector(pointer, place, lanes), allow)

    sizes = value.type.sizes
    contiguous = [dim for dim, size in enumerate(sizes) if size > 1 and step(cx.forms, pointer, dim) == 1]
    cx.each(sizes, contiguous[-1] if contiguous else vector_axis(cx.forms, value), body)
    cx.forget()


def load_operands(node: Node) -> tuple[Var, Var | None, Var | None]:
    """Pointer, mask and `other` of a load."""
    operands = node.operands
    _, masks, others = integers(node, "operandSegmentSizes")
    return operands[0], operands[1] if masks else None, operands[1 + masks] if others else None


def _load_one(cx: Context, elem: str, pointer: Value, allowed: Value, other: Uniform | None) -> Value:
    """One element; without permission memory that is always there is read instead, which needs no branch."""
    b = cx.b
    if _always(Uniform(allowed)):
        return access.load(b, elem, 0, pointer)
    value = access.load(b, elem, 0, _or_nothing(cx, allowed, pointer))
    return value if other is None else b.select(allowed, value, other.value)


def _load_all_or_none(
    cx: Context, elem: str, lanes: int, pointer: Value, allowed: Value, other: Var | None, at: Place, axis: int | None
) -> Value:
    """A chunk whose lanes have one mask, without a branch."""
    value = access.load(cx.b, elem, lanes, _or_nothing(cx, allowed, pointer))
    instead = None if other is None else cx.chunk(other, at, axis, lanes)
    if instead is None or instead == Uniform(cx.b.zero(Type(elem))):
        return value
    assert other is not None
    return cx.b.select(allowed, value, cx.vector(other, instead, lanes))


def _or_nothing(cx: Context, allowed: Value, pointer: Value) -> Value:
    """The pointer if it may be read, else one to zeros."""
    size = cx.machine.lanes * max(SIZES.values())
    cx.b.globals[_NOTHING] = f"@{_NOTHING} = internal constant [{size} x i8] zeroinitializer, align 64"
    return cx.b.select(allowed, pointer, Value(f"@{_NOTHING}", PTR))


def _other(cx: Context, other: Var | None, elem: str, at: Place, axis: int | None, lanes: int) -> Value:
    return cx.b.zero(Type(elem, lanes)) if other is None else cx.evaluate(other, at, axis, lanes)


def _describe(place: Lane, allowed: Lane, lanes: int, apart: str) -> str:
    """How a chunk is accessed, in words; `apart` is the one for elements that are no neighbours."""
    affine = place.affine if isinstance(place, Guess) else place
    if lanes == 0 or (isinstance(place, Uniform) and isinstance(allowed, Uniform)):
        how, mask = "one element", "masked"
    else:
        mask = "masked as a whole" if isinstance(allowed, Uniform) else "masked"
        how = f"{apart}, {lanes} elements"
        if isinstance(affine, Affine) and affine.stride == 1:
            how = "contiguous" if affine is place else f"contiguous (or {apart}, where they wrap around)"
            how = f"{how}, {lanes} elements"
        elif isinstance(affine, Affine):
            distance = affine.stride if isinstance(affine.stride, int) else "one known at run time"
            how = f"{apart} at equal distances ({distance}), {lanes} elements"
    return how if _always(allowed) else f"{how}, {mask}"


def _always(allowed: Lane) -> bool:
    return allowed == Uniform(TRUE)


def _scalar(lane: Lane) -> Value:
    if not isinstance(lane, Uniform):
        raise TypeError("a single element is always uniform")
    return lane.value
