"""How tensors grow along their dimensions: which accesses are contiguous, and along which dimension to vectorise."""

from __future__ import annotations

from collections.abc import Mapping

from triton_cpu.lower.lanes import Buffer, Form, Induction
from triton_cpu.lower.rules import is_lazy
from triton_cpu.ttir.attributes import integer, integers, number
from triton_cpu.ttir.nodes import Node, Var

_KEEP = frozenset({"arith.extsi", "arith.trunci", "arith.index_cast", "tt.int_to_ptr", "tt.ptr_to_int", "tt.bitcast"})
REMAINDERS = frozenset({"arith.remsi", "arith.remui"})
_LOAD_VOTES = 4  # a contiguous load decides against contiguous buffers, which lie in the cache

Known = dict[tuple[Var, int], int | None]  # what was found out already


def step(
    forms: Mapping[Var, Form], var: Var, dim: int, known: Known | None = None, wrapping: bool = True
) -> int | None:
    """What the elements of an integer or pointer tensor grow by from one index of `dim` to the next.

    Pointers count in elements. None where that is no constant known now. Neighbours modulo a number count as
    neighbours, though they may wrap around somewhere, unless not `wrapping`.
    """
    known = {} if known is None else known
    if (var, dim) not in known:
        known[var, dim] = None  # a loop-carried value may lead back here
        known[var, dim] = _step(forms, var, dim, known, wrapping)
    return known[var, dim]


def _step(forms: Mapping[Var, Form], var: Var, dim: int, known: Known, wrapping: bool) -> int | None:
    if not var.type.is_tensor or var.type.sizes[dim] == 1:
        return 0
    form, node = forms.get(var), var.node
    if isinstance(form, Induction):
        return step(forms, form.start, dim, known, wrapping)
    if node is None or (form is not None and node.name not in REMAINDERS):
        return None
    name = node.name
    if name == "tt.make_range":
        return 1
    if name in ("tt.splat", "arith.constant"):
        return 0
    moved = source_dim(var, dim)
    if moved is not None:
        return step(forms, node.operands[0], moved, known, wrapping)
    if name in ("tt.expand_dims", "tt.broadcast"):
        return 0
    if not is_lazy(node) or name == "tt.load":
        return None
    if name in REMAINDERS:
        return _wrapped(forms, node, dim) if wrapping else None
    steps = [step(forms, operand, dim, known, wrapping) for operand in node.operands]
    if all(value == 0 for value in steps):
        return 0
    if None in steps:
        return None
    if name in ("arith.addi", "tt.addptr"):
        return sum(value for value in steps if value is not None)
    if name == "arith.subi":
        return (steps[0] or 0) - (steps[1] or 0)
    if name == "arith.muli":
        return _product(node.operands, steps)
    return steps[0] if name in _KEEP else None


def _product(operands: list[Var], steps: list[int | None]) -> int | None:
    for factor, other in ((0, 1), (1, 0)):
        known = constant(operands[factor])
        if known is not None:
            return known * (steps[other] or 0)
    return None


def _wrapped(forms: Mapping[Var, Form], node: Node, dim: int) -> int | None:
    """The step of a remainder before it wraps around; one that is sure to wrap in between has none."""
    value, divisor = node.operands
    if step(forms, divisor, dim, wrapping=False) != 0:
        return None
    grows, known = step(forms, value, dim, wrapping=False), constant(divisor)
    if grows == 1 and known is not None and known < node.result.type.sizes[dim]:
        return None
    return grows if grows in (0, 1) else None


def constant(var: Var) -> int | None:
    """The integer that every element is, if the kernel says so."""
    node = var.node
    value = number(node) if node is not None and node.name == "arith.constant" else None
    return value if isinstance(value, int) else None


def source_dim(var: Var, dim: int) -> int | None:
    """The dimension of a shape operation's operand that `dim` of its result runs along; None where there is none."""
    node = var.node
    if node is None:
        return None
    if node.name == "tt.expand_dims":
        axis = integer(node, "axis")
        return None if dim == axis else dim - (dim > axis)
    if node.name == "tt.broadcast":
        same = node.operands[0].type.sizes[dim] == var.type.sizes[dim]
        return dim if same else None
    if node.name == "tt.trans":
        return integers(node, "order")[dim]
    return None


def vector_axis(forms: Mapping[Var, Form], var: Var) -> int | None:
    """The dimension along which to evaluate a tensor: where its loads are contiguous, else its last one over 1.

    What runs along one dimension alone has no say: along the others, an element of it is spread over a vector.
    """
    sizes = var.type.sizes
    wide = [dim for dim, size in enumerate(sizes) if size > 1]
    if len(wide) < 2:
        return wide[0] if wide else None
    votes = dict.fromkeys(wide, 0)
    seen: set[tuple[Var, tuple[int | None, ...]]] = set()

    def visit(value: Var, dims: tuple[int | None, ...]) -> None:
        """`dims`: for each dimension of the root, the one of `value` that it runs along."""
        if not value.type.is_tensor or (value, dims) in seen:
            return
        seen.add((value, dims))
        node = value.node
        if sum(dims[dim] is not None for dim in wide) < 2:
            return
        if isinstance(forms.get(value), Buffer):
            for dim in wide:
                votes[dim] += dims[dim] == len(value.type.sizes) - 1
        elif node is not None and node.name == "tt.load":
            pointer = node.operands[0]
            for dim, own in enumerate(dims):
                if dim in votes and own is not None and step(forms, pointer, own) == 1:
                    votes[dim] += _LOAD_VOTES
        elif node is not None and node.name in ("tt.expand_dims", "tt.broadcast", "tt.trans"):
            visit(node.operands[0], tuple(None if dim is None else source_dim(value, dim) for dim in dims))
        elif node is not None and is_lazy(node):
            for operand in node.operands:
                visit(operand, dims)

    visit(var, tuple(range(len(sizes))))
    return max(wide, key=lambda dim: (votes[dim], dim))
