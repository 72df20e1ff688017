"""Writes that may overtake loads of what they write, or of where and whether, as an in-place shift or flip does."""

from __future__ import annotations

from triton_cpu.analysis.axis import source_dim
from triton_cpu.lower.rules import is_lazy
from triton_cpu.ttir.nodes import Node, Var

_LINEAR = frozenset({"tt.addptr", "arith.addi", "arith.subi", "arith.muli", "arith.extsi", "arith.extui"})


def may_overtake(write: Node) -> set[Var]:
    """Loads that the operands of a store or an atomic operation are made of (values, pointers, mask) and whose chunks
    might be read after another chunk was written over them.

    A load is safe if it reads the addresses that are written, element by element and each of them once: from the same
    base at equal offsets, or from another argument of the kernel at offsets of the same form.
    """
    pointer = write.operands[0]
    loads = {load for operand in write.operands for load in _loads(operand)}
    return {load.result for load in loads if not _in_step(load.operands[0], pointer)}


def _loads(value: Var) -> set[Node]:
    found: set[Node] = set()
    seen: set[Var] = set()
    stack = [value]
    while stack:
        var = stack.pop()
        if var in seen or var.node is None or not var.type.is_tensor or not is_lazy(var.node):
            continue
        seen.add(var)
        if var.node.name == "tt.load":
            found.add(var.node)
        stack += var.node.operands
    return found


def _in_step(read: Var, written: Var) -> bool:
    bases = _base(read), _base(written)
    if None in bases or any(base is not None and base.node is not None for base in bases):
        return False  # a pointer that was computed or loaded may point anywhere
    return _alike(read, written, exactly=bases[0] is bases[1]) and _distinct(written)


def _distinct(pointer: Var) -> bool:
    """Whether all elements point to different places, as far as the strides keep rows apart."""
    return all(size == 1 or _grows(pointer, dim) for dim, size in enumerate(pointer.type.sizes))


def _grows(var: Var, dim: int) -> bool | None:
    """Whether elements grow by one amount from index to index of `dim`; False where all are equal, None if unknown."""
    node = var.node
    if not var.type.is_tensor or var.type.sizes[dim] == 1:
        return False
    if node is None:
        return None
    if node.name in ("tt.make_range", "tt.splat", "arith.constant"):
        return node.name == "tt.make_range"
    if node.name in ("tt.expand_dims", "tt.broadcast", "tt.trans"):
        source = source_dim(var, dim)
        return False if source is None else _grows(node.operands[0], source)
    if node.name not in _LINEAR:
        return None
    parts = [_grows(operand, dim) for operand in node.operands]
    return None if None in parts or (node.name == "arith.muli" and all(parts)) else any(parts)


def _base(pointer: Var) -> Var | None:
    """The scalar pointer that a tensor of pointers, or a scalar one, is offset from."""
    while pointer.node is not None:
        if pointer.node.name not in ("tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans"):
            return None
        pointer = pointer.node.operands[0]
    return None if pointer.type.is_tensor else pointer


def _alike(a: Var, b: Var, exactly: bool) -> bool:
    """Whether two expressions are the same, up to scalars unless `exactly`."""
    if a is b:
        return True
    if a.type != b.type and (a.type.is_tensor or b.type.is_tensor) and a.type.elem != "ptr":
        return False
    if not a.type.is_tensor and not b.type.is_tensor and not exactly:
        return True
    if a.node is None or b.node is None or a.node.name != b.node.name or not is_lazy(a.node):
        return False
    if a.node.attributes != b.node.attributes or a.type.sizes != b.type.sizes:
        return False
    return all(_alike(x, y, exactly) for x, y in zip(a.node.operands, b.node.operands, strict=True))
