"""The interpreted copies: kernels interpreted, everything else as before."""

import sys
from types import ModuleType

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from tests.interpreted import interpreted
from triton_spec.layers import norm

HOLDERS = (tl, tl.core, tl.math, tl.tensor, tl.core.tensor_descriptor_base, tl.dtype, tl.condition)


def jit_functions(module: ModuleType) -> list[object]:
    return [value for value in vars(module).values() if isinstance(value, (JITFunction, InterpretedFunction))]


def test_kernels_of_the_copy_are_interpreted_and_of_the_original_compiled():
    copy = interpreted("triton_spec.layers.norm")
    assert copy is not norm
    assert copy is interpreted("triton_spec.layers.norm")
    assert jit_functions(copy)
    assert all(isinstance(function, InterpretedFunction) for function in jit_functions(copy))
    assert all(isinstance(function, JITFunction) for function in jit_functions(norm))


def test_helpers_of_other_modules_are_interpreted_too():
    copy = interpreted("triton_spec.attention.kernel")
    assert isinstance(copy.softmax_step, InterpretedFunction)
    assert copy.softmax_step is interpreted("triton_spec.language.softmax").softmax_step


def test_imports_afterwards_give_compiled_modules():
    interpreted("triton_spec.attention.decode")
    assert sys.modules["triton_spec.layers.norm"] is norm
    assert sys.modules["triton_spec.layers"].norm is norm
    assert not triton.knobs.runtime.interpret
    from triton_spec.attention import kernel

    assert isinstance(kernel.attention_kernel, JITFunction)


def test_a_launch_leaves_the_language_as_it_was():
    interpreted("triton_spec.layers.norm").rms_norm(torch.ones(1, 4), torch.ones(4), 1e-5)  # helper names come once
    before = [dict(vars(holder)) for holder in HOLDERS]
    call = JITFunction.__call__
    x = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    interpreted("triton_spec.layers.norm").rms_norm(x, torch.ones(8), 1e-5)
    with pytest.raises(ValueError, match="weight"):
        interpreted("triton_spec.layers.norm").rms_norm(x, torch.ones(9), 1e-5)
    assert [dict(vars(holder)) for holder in HOLDERS] == before
    assert JITFunction.__call__ is call


def test_only_modules_of_the_project_are_copied():
    with pytest.raises(ValueError, match="numpy"):
        interpreted("numpy.random")
