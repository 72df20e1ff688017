"""Kernels on a processor of which nothing is known: right results, and code that any architecture can have."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest
import torch
from triton.runtime import driver

import triton_cpu.host
import triton_cpu.llvm.optimize
from tests.compare import assert_close
from tests.triton_spec.attention.pool import extend_arguments, random_pool, random_queries, random_tree
from triton_cpu.driver import CPUDriver
from triton_cpu.host import Host
from triton_spec.attention import reference as attention_reference
from triton_spec.attention.extend import extend_attention
from triton_spec.layers import reference
from triton_spec.layers.activation import silu_and_mul
from triton_spec.layers.linear import linear
from triton_spec.layers.norm import rms_norm

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
TARGETS = ("aarch64-linux-gnu", "riscv64-linux-gnu")


class _Bare(CPUDriver):
    """A device of its own, because Triton keeps compiled kernels per device."""

    def get_current_device(self) -> int:
        return 999


@pytest.fixture
def modules(monkeypatch, cache_folder):
    """Kernels of the test are compiled for no feature; the LLVM IR of each."""
    found: list[str] = []
    bare = Host(triton_cpu.host.host().machine, (), "", {})
    compile_to_object = triton_cpu.llvm.optimize.compile_to_object

    def compile_and_keep(llvm_ir: str, features: str) -> bytes:
        assert features == ""
        found.append(llvm_ir)
        return compile_to_object(llvm_ir, features)

    monkeypatch.setattr(triton_cpu.host, "host", lambda: bare)
    monkeypatch.setattr(triton_cpu.llvm.optimize, "compile_to_object", compile_and_keep)
    previous = driver.active
    driver.set_active(_Bare())
    yield found
    driver.set_active(previous)


def assert_portable(modules: list[str]) -> None:
    """LLVM makes machine code of other architectures of them, and no intrinsic of a processor is called."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    assert modules
    for llvm_ir in modules:
        assert not re.search(r"@llvm\.(x86|aarch64|arm|riscv)\.", llvm_ir)
        for triple in TARGETS:
            machine = llvm.Target.from_triple(triple).create_target_machine()
            parsed = llvm.parse_assembly(llvm_ir)
            parsed.triple = triple
            assert machine.emit_object(parsed)


@each_dtype
@pytest.mark.parametrize(("rows", "columns", "depth"), [(1, 64, 96), (5, 33, 48)])
def test_linear(modules, rows, columns, depth, dtype):
    x, weight = torch.randn(rows, depth).to(DTYPES[dtype]), torch.randn(columns, depth).to(DTYPES[dtype])
    assert_close(linear(x, weight), reference.linear(x, weight), f"linear {dtype}")
    assert_portable(modules)


@each_dtype
def test_norm_and_activation(modules, dtype):
    x, weight = torch.randn(3, 70).to(DTYPES[dtype]), torch.randn(70).to(DTYPES[dtype])
    assert_close(rms_norm(x, weight, 1e-5), reference.rms_norm(x, weight, 1e-5), f"rms_norm {dtype}")
    assert_close(silu_and_mul(x), reference.silu_and_mul(x), f"silu_and_mul {dtype}")
    assert_portable(modules)


@each_dtype
def test_attention(modules, dtype):
    pool = random_pool([47, 20], 2, 32, DTYPES[dtype])
    mask = torch.stack([random_tree(7, seed) for seed in range(2)]).flatten()
    q = random_queries(14, 4, 32, DTYPES[dtype])
    arguments = q, *pool.arguments(), *extend_arguments(pool, [7, 7]), 32**-0.5, mask
    actual, expected = extend_attention(*arguments), attention_reference.extend_attention(*arguments)
    assert_close(actual, expected, f"attention {dtype}")
    assert_portable(modules)
