"""Whole launches on the emulated tile unit: features, machine code, teams of threads, faults."""

import ctypes

import pytest
import torch
import triton
from triton.runtime import driver

import triton_cpu.lower
from tests.triton_cpu.emulated_amx import AMX, pretended_host
from tests.triton_cpu.hand_lowered import HandLowering
from tests.triton_cpu.tile_machine import TileFault, TileMachine
from tests.triton_cpu.tile_programs import config, in_pairs, product_ir
from triton_cpu.host import Host, host
from triton_cpu.llvm.optimize import compile_to_object
from triton_cpu.runtime.load import load_kernel

LAUNCH = (
    product_ir().replace("@run", "@tile")
    + """
define void @launch(ptr %arguments, i32 %x, i32 %y, i32 %z, i32 %threads) {
  %config = load ptr, ptr %arguments
  %at_c = getelementptr ptr, ptr %arguments, i64 1
  %c = load ptr, ptr %at_c
  %at_a = getelementptr ptr, ptr %arguments, i64 2
  %a = load ptr, ptr %at_a
  %at_b = getelementptr ptr, ptr %arguments, i64 3
  %b = load ptr, ptr %at_b
  call void @tile(ptr %config, ptr %c, ptr %a, ptr %b)
  ret void
}
"""
)


@triton.jit
def multiply(config, c, a, b):
    pass


@pytest.fixture
def lowered_for(monkeypatch):
    """Every kernel of the test is LAUNCH; the value lists the options it was lowered with."""
    options = []
    hand = HandLowering(LAUNCH, "multiply", ("ptr",) * 4, uses_tiles=True)

    def lower(ttir, chosen):
        options.append(chosen)
        return hand(ttir, chosen)

    monkeypatch.setattr(triton_cpu.lower, "lower_module", lower, raising=False)
    return options


def operands(**changes):
    torch.manual_seed(0)
    a, b = torch.randn(16, 32).bfloat16(), torch.randn(32, 16).bfloat16()
    pairs = torch.from_numpy(in_pairs(b.view(torch.int16).numpy())).view(torch.bfloat16)
    return torch.from_numpy(config(**changes)), torch.zeros(16, 16), a, pairs, a.float() @ b.float()


def test_kernel_is_compiled_for_amx_and_runs_on_the_emulated_unit(lowered_for, tile_machine):
    made, c, a, pairs, expected = operands()
    for launches in (1, 2):
        c.zero_()
        multiply[(1,)](made, c, a, pairs)
        torch.testing.assert_close(c, expected, rtol=1e-5, atol=1e-5)
        assert tile_machine.executed == launches
    (options,) = lowered_for
    assert {"amx_bf16", "amx_int8", "avx512"} <= set(options.arch.split(":")[1].split(","))


def test_bound_launch_runs_on_the_emulated_unit(lowered_for, tile_machine):
    made, c, a, pairs, expected = operands()
    triton_cpu.bind(multiply, (1,), made, c, a, pairs)()
    torch.testing.assert_close(c, expected, rtol=1e-5, atol=1e-5)
    assert tile_machine.executed == 1


def test_fault_is_raised_by_the_launch(lowered_for, tile_machine):
    made, c, a, pairs, _ = operands(b=(8, 64))
    with pytest.raises(TileFault, match="does not agree"):
        multiply[(1,)](made, c, a, pairs)
    assert tile_machine.executed == 0


def test_machine_is_a_new_one_in_each_test(lowered_for, tile_machine):
    made, c, a, pairs, expected = operands()
    multiply[(1,)](made, c, a, pairs)  # compiled again although the tests above have compiled it
    assert (len(lowered_for), tile_machine.executed) == (1, 1)
    torch.testing.assert_close(c, expected, rtol=1e-5, atol=1e-5)


def test_real_machine_is_back_after_the_test():
    assert driver.active.get_current_device() == 0
    assert driver.active.get_current_target().arch == host().arch


def test_pretended_features_are_decided_as_real_ones_are():
    plain = Host("x86_64", ("avx2", "fma"), "+avx2,+fma,-amx-tile,-avx512f", {})
    made = pretended_host(plain, AMX)
    assert made.features == ("amx_bf16", "amx_int8", "avx2", "fma")
    assert "+amx-tile" in made.llvm_features
    assert pretended_host(plain).arch == "x86_64:amx_bf16,amx_int8,avx2,avx512,fma"


TEAM_IR = (
    product_ir().replace("@run", "@tile")
    + """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
define internal void @body(ptr %arguments) {
  %thread = call i32 @omp_get_thread_num()
  %config = load ptr, ptr %arguments
  %at_c = getelementptr ptr, ptr %arguments, i64 1
  %first = load ptr, ptr %at_c
  %c = getelementptr [1024 x i8], ptr %first, i32 %thread
  %at_a = getelementptr ptr, ptr %arguments, i64 2
  %a = load ptr, ptr %at_a
  %at_b = getelementptr ptr, ptr %arguments, i64 3
  %b = load ptr, ptr %at_b
  call void @tile(ptr %config, ptr %c, ptr %a, ptr %b)
  ret void
}
define void @launch(ptr %arguments, i32 %x, i32 %y, i32 %z, i32 %threads) {
  call void @GOMP_parallel(ptr @body, ptr %arguments, i32 %threads, i32 0)
  ret void
}
"""
)


def test_threads_of_a_team_multiply_side_by_side():
    made, _, a, pairs, expected = operands()
    c = torch.zeros(4, 16, 16)
    machine = TileMachine()
    kernel = load_kernel("team", compile_to_object(machine.rewrite(TEAM_IR), host().llvm_features))
    kernel.call((ctypes.c_uint64 * 4)(*[tensor.data_ptr() for tensor in (made, c, a, pairs)]), 1, 1, 1, 4)
    machine.check()
    assert machine.executed == 4
    torch.testing.assert_close(c, expected.expand(4, 16, 16), rtol=1e-5, atol=1e-5)
