"""The forms in which a floating-point op is tested, and the interpreter's dot with this project's contract."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np
import pytest
import torch
import triton.language as tl
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from tests.interpreted import interpreted


@pytest.fixture(params=["reference", "interpreted", "compiled"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The form in which the op runs, for ``load_op``."""
    if request.param == "interpreted":
        monkeypatch.setattr(InterpreterBuilder, "create_dot", in_order_dot)
        monkeypatch.setattr(InterpreterBuilder, "cast_impl", rounding_cast)
    return request.param


def load_op(form: str, module: str, name: str) -> Callable:
    """The op ``name`` of ``module``: its "reference", its kernel "interpreted" by Triton, or "compiled"."""
    if form == "reference":
        return getattr(importlib.import_module(module.rpartition(".")[0] + ".reference"), name)
    return getattr(interpreted(module) if form == "interpreted" else importlib.import_module(module), name)


def in_order_dot(builder, a, b, d, input_precision, max_num_imprecise_acc) -> TensorHandle:
    """``tl.dot`` summed over K in ascending order in f32.

    Triton's interpreter multiplies the bit patterns of bf16 operands as integers, and leaves the order to BLAS.
    """
    lhs, rhs = (_as_float32(operand) for operand in (a, b))
    total = d.data.astype(np.float32)
    with np.errstate(invalid="ignore"):  # infinity times zero is NaN, as it should be
        for k in range(lhs.shape[1]):
            total += lhs[:, k, None] * rhs[None, k, :]
    return TensorHandle(total, d.dtype.scalar)


def rounding_cast(builder, source, target, cast=InterpreterBuilder.cast_impl) -> TensorHandle:
    """A cast that rounds f32 to the nearest bf16: Triton's interpreter cuts the low bits off."""
    if source.dtype.scalar == tl.float32 and target.scalar == tl.bfloat16:
        values = torch.from_numpy(np.array(source.data)).bfloat16()
        return TensorHandle(values.view(torch.uint16).numpy(), tl.bfloat16)
    return cast(builder, source, target)


def _as_float32(operand: TensorHandle) -> np.ndarray:
    if operand.dtype.scalar == tl.bfloat16:
        return (operand.data.astype(np.uint32) << 16).view(np.float32)
    return operand.data.astype(np.float32)
