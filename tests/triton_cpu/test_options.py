"""Compile options: frozen, JSON-safe, part of the cache key, tolerant of GPU hints."""

import dataclasses
import json

import pytest
import torch
import triton
from triton.backends.compiler import GPUTarget

from tests.triton_cpu.hand_lowered import spy
from triton_cpu.compiler import CPUBackend
from triton_cpu.errors import CompileError
from triton_cpu.host import host
from triton_cpu.options import make_options


def options(**given):
    return make_options(given, "x86_64:avx2,fma", "+avx2,+fma")


def test_options_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        options().num_warps = 8


def test_options_can_be_written_as_json():
    made = options(allowed_dot_input_precisions=["ieee"])
    assert json.loads(json.dumps(made.__dict__))["arch"] == "x86_64:avx2,fma"
    hash(made)


@pytest.mark.parametrize("change", [{"arch": "x86_64:fma"}, {"llvm_features": "+fma"}], ids=["arch", "llvm features"])
def test_machine_is_part_of_the_key(change):
    base = options()
    assert dataclasses.replace(base, **change).hash() != base.hash()


def test_equal_options_have_equal_keys():
    assert options(num_warps=4).hash() == options(num_warps=4).hash()


def test_fusion_of_multiply_and_add_is_part_of_the_key():
    assert options(enable_fp_fusion=False).hash() != options().hash()


@pytest.mark.parametrize(
    "given",
    [{"num_ctas": 2}, {"extern_libs": {"libdevice": "x.bc"}}, {"instrumentation_mode": "gsan"}],
    ids=["clusters", "bitcode libraries", "instrumentation"],
)
def test_what_a_cpu_cannot_do_is_an_error(given):
    with pytest.raises(CompileError, match=next(iter(given)) if "instrumentation_mode" not in given else "gsan"):
        options(**given)


def test_target_of_another_machine_is_refused():
    backend = CPUBackend(GPUTarget("cpu", "x86_64:made_up", 1))
    with pytest.raises(CompileError, match="made_up"):
        backend.parse_options({})


def test_options_describe_this_machine():
    backend = CPUBackend(GPUTarget("cpu", host().arch, 1))
    made = backend.parse_options({"num_warps": 4})
    assert (made.arch, made.llvm_features, made.num_warps) == (host().arch, host().llvm_features, 4)


def test_gpu_hints_of_a_launch_are_accepted(lowering):
    lowering(spy(1), ["ptr"])

    @triton.jit
    def kernel(x):
        pass

    out = torch.zeros(16, dtype=torch.int64)
    compiled = kernel[(1,)](out, num_warps=8, num_stages=4, maxnreg=64, waves_per_eu=2)
    assert compiled.metadata.num_warps == 8
    assert out[0] == out.data_ptr()


def test_misspelt_argument_is_refused(lowering):
    lowering(spy(1), ["ptr"])

    @triton.jit
    def kernel(x):
        pass

    with pytest.raises(KeyError, match="BLOKC"):
        kernel[(1,)](torch.zeros(16), BLOKC=4)
