"""Tensors that lie to a new tensor as others lie to an old one."""

from __future__ import annotations

from typing import Any

import torch
from triton.runtime.jit import TensorWrapper

from triton_cpu.errors import ArgumentError


def owner(pointer: Any) -> Any:
    """The tensor behind a pointer argument: the one inside `triton.reinterpret(tensor, dtype)`, else the argument."""
    return pointer.base if isinstance(pointer, TensorWrapper) else pointer


def shares_storage(pointer: Any, tensor: torch.Tensor) -> bool:
    """Whether a pointer argument is a tensor in the storage of `tensor`."""
    view = owner(pointer)
    return isinstance(view, torch.Tensor) and view.untyped_storage()._cdata == tensor.untyped_storage()._cdata


def require_same_layout(old: Any, new: Any) -> None:
    """Raise ArgumentError unless both are CPU tensors of one dtype, shape and strides."""
    for tensor in (old, new):
        if not isinstance(tensor, torch.Tensor) or tensor.device.type != "cpu":
            raise ArgumentError(f"a tensor in CPU memory is wanted, not {tensor!r}")
    for what in ("dtype", "shape", "stride"):
        was, now = (getattr(tensor, what) for tensor in (old, new))
        if what == "stride":
            was, now = was(), now()
        if was != now:
            raise ArgumentError(f"the new tensor has {what} {now}, the old one {was}; record anew to change the layout")


def moved(pointer: Any, old: torch.Tensor, new: torch.Tensor) -> Any:
    """The pointer argument that is to `new` what `pointer`, in the storage of `old`, is to `old`.

    Raises:
        ArgumentError: it would reach outside of new's storage, or sit at a fraction of an element.
    """
    if pointer is old:
        return new
    if isinstance(pointer, TensorWrapper):
        return TensorWrapper(moved(pointer.base, old, new), pointer.dtype)
    size = pointer.element_size()
    shift = pointer.storage_offset() * size - old.storage_offset() * old.element_size()
    start = new.storage_offset() * new.element_size() + shift
    last = sum((count - 1) * stride for count, stride in zip(pointer.shape, pointer.stride(), strict=True))
    stop = start + (last + 1) * size if pointer.numel() else start
    room = new.untyped_storage().nbytes()
    if start % size or start < 0 or stop > room:
        raise ArgumentError(
            f"a view of {size}-byte elements in bytes {start} to {stop} of the new tensor's storage of {room} bytes is "
            "not possible; give a tensor with as much memory around it as the old one has"
        )
    view = torch.empty(0, dtype=pointer.dtype)
    return view.set_(new.untyped_storage(), start // size, pointer.shape, pointer.stride())
