"""Bound launches: arguments packed once, replaced by name, checked against the compiled specialisation."""

import gc
import struct
import weakref

import pytest
import torch
import triton
import triton.language as tl

from tests.triton_cpu.hand_lowered import TEAM_COUNTER, spy
from triton_cpu import bind
from triton_cpu.errors import ArgumentError, LaunchError


@triton.jit
def kernel(out, n, ratio, half: tl.bfloat16, N: tl.constexpr = 8):
    pass


@pytest.fixture
def out(lowering):
    """A buffer that every launch of `kernel` fills with its 4 slots, grid and thread count."""
    lowering(spy(4), ["ptr", "i32", "f32", "bf16"])
    return torch.zeros(16, dtype=torch.int64)


def slots(out):
    pointer, n, _, ratio, half, _ = struct.unpack("<Qi4sf4xH6s", out.numpy().tobytes()[:32])
    return pointer, n, ratio, half


def test_binding_does_not_launch(out):
    bind(kernel, (1,), out, 5, 0.5, 1.0)
    assert not out.any()


def test_call_runs_with_the_bound_arguments(out):
    bound = bind(kernel, (2, 3), out, 5, ratio=0.5, half=1.0, num_warps=4)
    bound()
    assert slots(out) == (out.data_ptr(), 5, 0.5, 0x3F80)
    assert struct.unpack("<4i", out.numpy().tobytes()[32:48]) == (2, 3, 1, torch.get_num_threads())


def test_grid_may_be_a_function(out):
    bind(kernel, lambda arguments: (arguments["N"] * 2,), out, 5, 0.5, 1.0)()
    assert struct.unpack("<i", out.numpy().tobytes()[32:36]) == (16,)


def test_update_replaces_arguments(out):
    bound = bind(kernel, (1,), out, 5, 0.5, 1.0)
    other = torch.zeros(16, dtype=torch.int64)
    bound.update(out=other, n=7, ratio=2.0, half=-1.0)
    bound()
    assert not out.any()
    assert slots(other) == (other.data_ptr(), 7, 2.0, 0xBF80)


def test_failed_update_changes_nothing(out):
    bound = bind(kernel, (1,), out, 5, 0.5, 1.0)
    with pytest.raises(ArgumentError):
        bound.update(n=7, ratio="x")
    bound()
    assert slots(out)[1:3] == (5, 0.5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"m": 3}, "no argument 'm'; it has out, n"),
        ({"N": 16}, "'N'.*bind anew"),
        ({"n": 2**40}, "i64"),
        ({"n": 32}, "'D'"),
        ({"n": 1}, "constexpr"),
        ({"n": 2.0}, "fp32"),
        ({"out": torch.zeros(4)}, "fp32"),
        ({"out": None}, "constexpr"),
        ({"out": torch.zeros(17, dtype=torch.int64)[1:]}, "'D'"),
    ],
    ids=["unknown name", "constexpr", "wider int", "divisible", "one", "float", "dtype", "none", "unaligned"],
)
def test_update_that_needs_other_code_is_refused(out, change, words):
    bound = bind(kernel, (1,), out, 5, 0.5, 1.0)
    with pytest.raises(ArgumentError, match=words):
        bound.update(**change)


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((5, 0.5), {"half": 1.0}, "ratio|missing"),
        ((5, 0.5, 1.0), {"BLOCK": 4}, "BLOCK"),
        ((5, 0.5, 1.0, 8, 9), {}, "positional"),
        ((5, object(), 1.0), {}, "object"),
    ],
    ids=["missing", "unknown", "too many", "no Triton type"],
)
def test_arguments_that_do_not_fit_are_refused(out, args, kwargs, words):
    with pytest.raises(ArgumentError, match=words):
        bind(kernel, (1,), out, *args[: 1 if "missing" in words else None], **kwargs)


@pytest.mark.parametrize("grid", [(), (1, 2, 3, 4), (-1,)], ids=str)
def test_wrong_grid_is_refused(out, grid):
    with pytest.raises(LaunchError, match="grid"):
        bind(kernel, grid, out, 5, 0.5, 1.0)


def test_empty_grid_runs_nothing(out):
    bind(kernel, (0, 4), out, 5, 0.5, 1.0)()
    assert not out.any()


def test_tensor_of_another_device_is_refused(out):
    with pytest.raises(ArgumentError, match="meta"):
        bind(kernel, (1,), torch.zeros(16, dtype=torch.int64, device="meta"), 5, 0.5, 1.0)


def test_autotuned_kernel_is_refused(out):
    tuned = triton.autotune([triton.Config({"N": 4})], key=[])(kernel)
    with pytest.raises(ArgumentError, match="Autotuner"):
        bind(tuned, (1,), out, 5, 0.5, 1.0)


def test_tensors_are_kept_alive_and_released_with_the_handle(out):
    tensor = torch.zeros(16, dtype=torch.int64)
    alive = weakref.ref(tensor)
    bound = bind(kernel, (1,), tensor, 5, 0.5, 1.0)
    del tensor
    gc.collect()
    assert alive() is not None
    bound.update(out=out)
    gc.collect()
    assert alive() is None


def test_thread_count_of_the_moment_is_used(lowering):
    lowering(TEAM_COUNTER, ["ptr"])

    @triton.jit
    def count(counter):
        pass

    counter, before = torch.zeros(4, dtype=torch.int32), torch.get_num_threads()
    bound = bind(count, (1,), counter)
    try:
        torch.set_num_threads(3)
        bound()
    finally:
        torch.set_num_threads(before)
    assert counter[0] == 3
