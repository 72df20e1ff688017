"""Object code to functions: optimisation, linking, one thread pool, clear errors."""

import ctypes
import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.triton_cpu.hand_lowered import TEAM_COUNTER, spy
from triton_cpu.errors import CompileError, LoadError
from triton_cpu.host import host
from triton_cpu.llvm.optimize import compile_to_object
from triton_cpu.runtime.load import load_kernel, pool_symbols


def compiled(llvm_ir):
    return compile_to_object(llvm_ir, host().llvm_features)


def block(*tensors):
    return (ctypes.c_uint64 * len(tensors))(*[tensor.data_ptr() for tensor in tensors])


def test_code_is_deterministic():
    assert compiled(TEAM_COUNTER) == compiled(TEAM_COUNTER)


def test_threads_may_compile_and_load_at_once():
    def build(number):
        code = compiled(spy(1))
        out = torch.zeros(8, dtype=torch.int32)
        load_kernel(f"spy{number}", code).call(block(out), number, 0, 0, 0)
        return out[2].item()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(build, range(16))) == list(range(16))


def test_grid_and_threads_arrive():
    out = torch.zeros(8, dtype=torch.int32)
    load_kernel("spy", compiled(spy(1))).call(block(out), 2, 3, 4, 5)
    assert out[2:6].tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_team_of_the_asked_size_runs(threads):
    counter = torch.zeros(1, dtype=torch.int32)
    load_kernel("count", compiled(TEAM_COUNTER)).call(block(counter), 1, 1, 1, threads)
    assert counter.item() == threads


def test_the_pool_is_the_one_torch_uses():
    address = pool_symbols()["GOMP_parallel"]
    with open("/proc/self/maps") as maps:
        ranges = [(line.split()[0].split("-"), line) for line in maps]
    owner = next(line for (low, high), line in ranges if int(low, 16) <= address < int(high, 16))
    folder = torch.__path__[0]
    assert folder in owner or "omp" in owner


def test_maths_functions_resolve():
    ir = """
    declare float @erff(float)
    declare double @cos(double)
    define void @launch(ptr %a, i32 %x, i32 %y, i32 %z, i32 %t) {
      %p = load ptr, ptr %a
      %e = call float @erff(float 0.5)
      store float %e, ptr %p
      ret void
    }"""
    out = torch.zeros(1)
    load_kernel("maths", compiled(ir)).call(block(out), 1, 1, 1, 1)
    torch.testing.assert_close(out, torch.erf(torch.tensor([0.5])))


def test_the_function_keeps_the_code_alive():
    call = load_kernel("spy", compiled(spy(1))).call
    gc.collect()
    out = torch.zeros(8, dtype=torch.int32)
    call(block(out), 7, 1, 1, 1)
    assert out[2] == 7


@pytest.mark.parametrize("cut", [0, 4, 100, 0.5], ids=["empty", "4 bytes", "100 bytes", "half"])
def test_cut_object_is_a_clear_error(cut):
    code = compiled(spy(1))
    size = int(len(code) * cut) if isinstance(cut, float) else cut
    with pytest.raises(LoadError, match="'broken'"):
        load_kernel("broken", code[:size])


def test_missing_symbol_is_a_clear_error():
    ir = """
    declare void @no_such_function()
    define void @launch(ptr %a, i32 %x, i32 %y, i32 %z, i32 %t) {
      call void @no_such_function()
      ret void
    }"""
    with pytest.raises(LoadError, match="lost"):
        load_kernel("lost", compiled(ir))


def test_invalid_ir_quotes_the_line():
    with pytest.raises(CompileError, match="line 2:   nonsense here"):
        compile_to_object("define void @f() {\n  nonsense here\n}", "")


def test_ir_that_parses_but_is_wrong_is_refused():
    ir = "define i32 @f() {\n  %a = add i32 %b, 1\n  %b = add i32 %a, 1\n  ret i32 %b\n}"
    with pytest.raises(CompileError):
        compile_to_object(ir, "")
