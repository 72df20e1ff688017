"""Recorded sequences: arguments replaced, one by one and by storage, and what does not fit."""

import gc
import weakref

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.compare import assert_equal
from tests.triton_cpu.scaling import numbers, scale, scale_kernel
from triton_cpu import record
from triton_cpu.errors import ArgumentError, LaunchError


@triton.jit
def add_tuple_kernel(tensors, out, n: tl.int64, B: tl.constexpr):
    x, y = tensors
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0.0) + tl.load(y + i, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def optional_kernel(x, extra, stride, negate, out):
    value = tl.load(x + stride)
    if extra is not None:
        value += tl.load(extra)
    tl.store(out, tl.where(negate, -value, value))


@pytest.fixture
def scaled():
    """(recording of one launch, its input, its output): output = input * 2, n = 100."""
    x = numbers()
    with record() as recording:
        y = scale(x, 2.0)
    return recording, x, y


@pytest.mark.parametrize(
    ("change", "factor", "n"),
    [({"factor": -1.5}, -1.5, 100), ({"n": 37}, 2.0, 37), ({"n": 96}, 2.0, 96), ({"n": 1, "factor": 3.0}, 3.0, 1)],
    ids=["float", "int", "divisible by 16", "one"],
)
def test_scalars_can_be_patched(scaled, change, factor, n):
    recording, x, y = scaled
    y.zero_()
    recording[0].update(**change)
    recording.replay()
    assert_equal(y, torch.cat([x[:n] * factor, torch.zeros(100 - n)]))


def test_pointers_can_be_patched(scaled):
    recording, _, y = scaled
    source, out = numbers(seed=5), torch.zeros(100)
    y.zero_()
    recording[0].update(x=source, y=out)
    recording.replay()
    assert_equal(out, source * 2.0)
    assert not y.any()


def test_replaced_tensors_are_released_and_new_ones_kept():
    x, y, new = numbers(), torch.zeros(100), numbers(seed=5)
    with record() as recording:
        scale(x, 2.0, y)
    old, kept, expected = weakref.ref(x), weakref.ref(new), new * 2.0
    recording[0].update(x=new)
    del x, new
    gc.collect()
    assert old() is None
    assert kept() is not None
    recording.replay()
    assert_equal(y, expected)


def test_constants_may_be_named_as_they_are(scaled):
    recording, x, y = scaled
    recording[0].update(B=16, factor=3.0)
    recording.replay()
    assert_equal(y, x * 3.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"m": 3}, "launch 0 of the recording .kernel 'scale_kernel'. has no argument 'm'; it has x, y, n, factor, B"),
        ({"B": 32}, "'B'.*16 is compiled in"),
        ({"n": 2.0}, "'n'.*fp32.*i32"),
        ({"n": True}, "'n'.*u1.*i32"),
        ({"n": 2**40}, "'n'.*i32"),
        ({"n": None}, "'n'.*NoneType.*i32"),
        ({"factor": 3}, "'factor'.*i32.*fp32"),
        ({"factor": "x"}, "'factor'"),
        ({"x": torch.zeros(100, dtype=torch.float64)}, r"'x'.*\*fp64.*\*fp32"),
        ({"x": torch.zeros(101)[1:]}, "'x'.*multiple of 16"),
        ({"x": None}, "'x'.*NoneType"),
        ({"x": 64}, r"'x'.*i32.*\*fp32"),
        ({"x": torch.zeros(100, device="meta")}, "'x'"),
    ],
    ids=["unknown name", "constexpr", "float for int", "bool for int", "beyond i32", "none for int", "int for float",
         "text", "dtype", "unaligned", "none for pointer", "int for pointer", "device"],
)  # fmt: skip
def test_values_that_do_not_fit_are_refused_and_nothing_changes(scaled, change, words):
    recording, x, y = scaled
    with pytest.raises(ArgumentError, match=words):
        recording[0].update(**{"factor": 9.0, **change})
    y.zero_()
    recording.replay()
    assert_equal(y, x * 2.0)


def test_what_was_compiled_in_stays():
    x, out = numbers(16), torch.zeros(1)
    with record() as recording:
        optional_kernel[(1,)](x, None, 1, True, out)
    for change in ({"extra": x}, {"stride": 2}, {"negate": 1}):
        with pytest.raises(ArgumentError, match=r"compiled in|u1"):
            recording[0].update(**change)
    recording[0].update(extra=None, stride=1, negate=False)
    recording.replay()
    assert_equal(out, x[1:2])


def test_an_argument_that_must_be_divisible_stays_so():
    x, y = numbers(96), torch.zeros(96)
    with record() as recording:
        scale(x, 2.0, y)
    with pytest.raises(ArgumentError, match=r"'n'.*multiple of 16"):
        recording[0].update(n=95)
    recording[0].update(n=32)


def test_unaligned_recordings_take_any_address():
    x, y = numbers(101)[1:], torch.zeros(101)
    with record() as recording:
        scale(x, 2.0, y[1:])
    recording[0].update(y=y[:100])
    recording.replay()
    assert_equal(y[:100], x * 2.0)


def test_tuples_can_be_patched():
    x, y, out = numbers(16), numbers(16, seed=1), torch.zeros(16)
    with record() as recording:
        add_tuple_kernel[(1,)]((x, y), out, 16, B=16)
    other = numbers(16, seed=2)
    recording[0].update(tensors=(other, y))
    recording.replay()
    assert_equal(out, other + y)
    recording.replace(y, x)
    recording.replay()
    assert_equal(out, other + x)
    with pytest.raises(ArgumentError, match=r"'tensors'.*tuple of 2"):
        recording[0].update(tensors=(x,))
    x.untyped_storage().resize_(0)
    with pytest.raises(LaunchError, match="'tensors'"):
        recording.replay()


def test_replace_moves_all_pointers_into_a_storage():
    cache, z = numbers(128), torch.zeros(64)
    with record() as recording:
        middle = scale(cache[:64], 2.0)
        scale(cache[64:], 3.0, z)
    new = numbers(128, seed=1)
    recording.replace(cache, new)
    cache.fill_(float("nan"))
    recording.replay()
    assert_equal(middle, new[:64] * 2.0)
    assert_equal(z, new[64:] * 3.0)


def test_replace_by_a_part_of_a_larger_tensor():
    pool, (x, y) = numbers(640), (numbers(64), torch.zeros(64))
    with record() as recording:
        scale(x, 2.0, y)
    recording.replace(x, pool[128:192])
    recording.replay()
    assert_equal(y, pool[128:192] * 2.0)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("x", torch.zeros(50), "shape"),
        ("x", torch.zeros(100, dtype=torch.int32), "dtype"),
        ("x", torch.zeros(200)[::2], "stride"),
        ("x", 3, "CPU memory"),
        ("x", torch.zeros(101)[1:], "multiple of 16"),
        ("stranger", torch.zeros(100), "no launch"),
    ],
    ids=["shape", "dtype", "strides", "not a tensor", "unaligned", "not recorded"],
)
def test_replacements_that_do_not_fit_are_refused(scaled, old, new, words):
    recording, x, y = scaled
    with pytest.raises(ArgumentError, match=words):
        recording.replace(x if old == "x" else torch.zeros(100), new)
    recording.replay()
    assert_equal(y, x * 2.0)


def test_replace_changes_all_launches_or_none():
    cache, y = numbers(128), torch.zeros(64)
    with record() as recording:
        scale(cache[64:], 2.0, y)
        scale(cache[:64], 3.0)
    with pytest.raises(ArgumentError, match=r"launch 0.*possible.*as much memory"):
        recording.replace(cache[:64], torch.zeros(64))
    recording.replay()
    assert_equal(y, cache[64:] * 2.0)


def test_empty_tensors_and_reinterpreted_ones():
    x, y, nothing = numbers(16), torch.zeros(16, dtype=torch.int32), torch.zeros(0)
    with record() as recording:
        scale_kernel[(1,)](x, triton.reinterpret(y, tl.float32), 16, 2.0, B=16)
        scale_kernel[(1,)](nothing, nothing, 0, 2.0, B=16)
    y.zero_()
    recording.replay()
    assert_equal(y.view(torch.float32), x * 2.0)
    new = torch.zeros(16, dtype=torch.int32)
    recording.replace(y, new)
    recording.replay()
    assert_equal(new.view(torch.float32), x * 2.0)
    new.untyped_storage().resize_(0)
    with pytest.raises(LaunchError, match="'y' was freed"):
        recording.replay()


def test_tensor_descriptors_are_recorded_but_not_replaced():
    @triton.jit
    def sum_kernel(descriptor, out):
        tl.store(out, tl.sum(tl.sum(descriptor.load([0, 0]), 1), 0))

    data, out = torch.ones(8, 16), torch.zeros(1)
    with record() as recording:
        sum_kernel[(1,)](TensorDescriptor.from_tensor(data, [4, 8]), out)
    data.fill_(2.0)
    recording.replay()
    assert out.item() == 64.0
    with pytest.raises(ArgumentError, match="record anew"):
        recording.replace(data, torch.ones(8, 16))
    data.untyped_storage().resize_(0)
    with pytest.raises(LaunchError, match="freed"):
        recording.replay()
