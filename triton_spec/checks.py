"""Checks of an op's arguments, made before anything is launched.

Each raises ``ValueError`` or ``TypeError`` naming the argument and the value that was wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

FLOAT_DTYPES = (torch.bfloat16, torch.float16, torch.float32)
INDEX_DTYPES = (torch.int64, torch.int32)


def require_shape(name: str, tensor: torch.Tensor, shape: Sequence[int | None]) -> None:
    """Require ``tensor.shape == shape``; ``None`` in ``shape`` stands for any size."""
    actual = tuple(tensor.shape)
    matches = len(actual) == len(shape) and all(
        want is None or want == have for want, have in zip(shape, actual, strict=True)
    )
    if not matches:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} has shape {list(actual)}, expected [{wanted}]")


def require_dtype(name: str, tensor: torch.Tensor, dtypes: torch.dtype | Sequence[torch.dtype]) -> None:
    """Require the tensor's dtype to be one of ``dtypes``."""
    allowed = (dtypes,) if isinstance(dtypes, torch.dtype) else tuple(dtypes)
    if tensor.dtype not in allowed:
        raise TypeError(f"{name} has dtype {tensor.dtype}, expected {' or '.join(map(str, allowed))}")


def require_same_device(**tensors: torch.Tensor | None) -> None:
    """Require all tensors (``None`` is skipped) to be on one device."""
    devices = {name: tensor.device for name, tensor in tensors.items() if tensor is not None}
    if len(set(devices.values())) > 1:
        listed = ", ".join(f"{name} on {device}" for name, device in devices.items())
        raise ValueError(f"the tensors must be on one device: {listed}")


def require_contiguous(name: str, tensor: torch.Tensor) -> None:
    """Require a contiguous tensor."""
    if not tensor.is_contiguous():
        raise ValueError(
            f"{name} has strides {list(tensor.stride())} for shape {list(tensor.shape)}: pass {name}.contiguous()"
        )


def require_last_dim_contiguous(name: str, tensor: torch.Tensor) -> None:
    """Require neighbouring elements of the last dimension to be neighbours in memory."""
    if tensor.shape[-1] > 1 and tensor.stride(-1) != 1:
        raise ValueError(
            f"{name} has stride {tensor.stride(-1)} in its last dimension, expected 1: pass {name}.contiguous()"
        )


def require_indices(name: str, tensor: torch.Tensor, shape: Sequence[int | None]) -> None:
    """Require a contiguous int32 or int64 tensor of this shape."""
    require_dtype(name, tensor, INDEX_DTYPES)
    require_shape(name, tensor, shape)
    require_contiguous(name, tensor)
