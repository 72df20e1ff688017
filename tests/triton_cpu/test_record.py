"""Recorded sequences: capture, replay, lifetimes, memory that went, what is refused."""

import gc
import os
import threading
import weakref
from itertools import pairwise

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal
from tests.triton_cpu.scaling import numbers, scale, scale_kernel
from triton_cpu import bind, record
from triton_cpu.errors import LaunchError
from triton_spec.layers.linear import linear
from triton_spec.layers.norm import rms_norm


@triton.jit
def add_one_kernel(counter):
    tl.atomic_add(counter, 1)


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.fixture
def scaled():
    """(recording of one launch, its input, its output): output = input * 2, n = 100."""
    x = numbers()
    with record() as recording:
        y = scale(x, 2.0)
    return recording, x, y


def test_the_block_runs_and_the_replay_repeats_it(threads):
    x = numbers(1000)
    with record() as recording:
        z = scale(scale(scale(x, 2.0), 3.0), 0.5)
    assert len(recording) == 3
    assert_equal(z, x * 2.0 * 3.0 * 0.5)
    x.copy_(numbers(1000, seed=1))
    z.fill_(float("nan"))
    recording.replay()
    assert_equal(z, x * 2.0 * 3.0 * 0.5)


def test_replays_accumulate():
    counter = torch.zeros(1, dtype=torch.int32)
    with record() as recording:
        for _ in range(3):
            add_one_kernel[(2,)](counter)
    for _ in range(1000):
        recording.replay()
    assert counter.item() == 6 * 1001


def test_the_thread_count_of_the_replay_counts():
    x, before = numbers(5000), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with record() as recording:
            y = scale(x, 2.0)
        torch.set_num_threads(2)
        y.zero_()
        recording.replay()
    finally:
        torch.set_num_threads(before)
    assert_equal(y, x * 2.0)


def test_ops_give_the_bits_of_plain_calls(threads):
    generator = torch.Generator().manual_seed(3)
    x, residual = (torch.randn(5, 96, generator=generator).bfloat16() for _ in range(2))
    gain, weight = torch.randn(96, generator=generator).bfloat16(), torch.randn(80, 96, generator=generator).bfloat16()

    def layer(residual):
        return linear(rms_norm(x, gain, 1e-5, residual), weight)

    recorded_residual = residual.clone()
    with record() as recording:
        y = layer(recorded_residual)
    assert len(recording) == 2
    for seed in range(3):
        x.copy_(torch.randn(5, 96, generator=torch.Generator().manual_seed(seed)))
        recorded_residual.copy_(residual)
        recording.replay()
        plain_residual = residual.clone()
        assert_equal(y, layer(plain_residual))
        assert_equal(recorded_residual, plain_residual)


def test_bound_handles_are_captured_as_they_are_then():
    x, y, other = numbers(), torch.empty(100), torch.zeros(100)
    bound = bind(scale_kernel, (7,), x, y, 100, 2.0, B=16)
    with record() as recording:
        bound()
    bound.update(y=other, factor=5.0)
    y.zero_()
    recording.replay()
    assert_equal(y, x * 2.0)
    assert not other.any()


def test_empty_grids_are_not_captured():
    x = numbers(16)
    with record() as recording:
        scale_kernel[(0,)](x, x, 16, 2.0, B=16)
        bind(scale_kernel, (0, 3), x, x, 16, 2.0, B=16)()
    assert len(recording) == 0
    recording.replay()


def test_launches_outside_of_the_block_are_not_captured():
    x = numbers()
    with record() as recording:
        y = scale(x, 2.0)
    scale(x, 3.0)
    assert len(recording) == 1
    assert_equal(y, x * 2.0)


def test_launches_of_other_threads_are_not_captured():
    x = numbers()
    with record() as recording:
        thread = threading.Thread(target=scale, args=(x, 3.0))
        thread.start()
        thread.join()
    assert len(recording) == 0


def test_threads_record_at_once_without_mixing():
    x, counts, both = numbers(), {}, threading.Barrier(2)

    def work(times):
        with record() as recording:
            both.wait()
            for _ in range(times):
                scale(x, 2.0)
            both.wait()
        counts[times] = len(recording)

    workers = [threading.Thread(target=work, args=(times,)) for times in (2, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert counts == {2: 2, 5: 5}


def test_trials_of_an_autotuner_are_not_captured():
    tuned = triton.autotune([triton.Config({"B": 16}), triton.Config({"B": 32})], key=["n"])(scale_kernel)
    x = numbers(64)
    with record() as recording:
        y = torch.empty_like(x)
        tuned[lambda arguments: (triton.cdiv(64, arguments["B"]),)](x, y, 64, 2.0)
    assert len(recording) == 1
    y.zero_()
    recording.replay()
    assert_equal(y, x * 2.0)


def test_buffers_of_the_block_stay_valid():
    x = numbers(4096)
    with record() as recording:
        z = scale(scale(x, 2.0), 3.0)
    gc.collect()
    strangers = [torch.full((4096,), 7.0) for _ in range(20)]
    for _ in range(3):
        z.zero_()
        recording.replay()
        assert_equal(z, x * 2.0 * 3.0)
    assert all((stranger == 7.0).all() for stranger in strangers)


def test_tensors_live_as_long_as_the_recording():
    x, y = numbers(), torch.empty(100)
    alive = weakref.ref(x)
    with record() as recording:
        scale(x, 2.0, y)
    del x
    gc.collect()
    assert alive() is not None
    recording.replay()
    del recording
    gc.collect()
    assert alive() is None


def test_code_lives_as_long_as_the_recording():
    @triton.jit
    def passing_kernel(x, y):
        tl.store(y, tl.load(x) + 1.0)

    x, y = torch.ones(1), torch.zeros(1)
    with record() as recording:
        passing_kernel[(1,)](x, y)
    code = weakref.ref(passing_kernel)
    del passing_kernel
    gc.collect()
    y.zero_()
    recording.replay()
    assert y.item() == 2.0
    assert code() is not None
    del recording


def free(tensor):
    tensor.untyped_storage().resize_(0)


def grow(tensor):
    tensor.untyped_storage().resize_(1 << 20)


def repoint(tensor):
    tensor.set_(torch.zeros(100))


def swap_data(tensor):
    tensor.data = torch.zeros(100)


@pytest.mark.parametrize("change", [free, grow, repoint, swap_data, torch.Tensor.share_memory_])
@pytest.mark.parametrize("which", ["x", "y"])
def test_memory_that_went_is_a_loud_error_and_nothing_runs(change, which):
    counter = torch.zeros(1, dtype=torch.int32)
    tensors = {"x": numbers(), "y": torch.zeros(100)}
    with record() as recording:
        add_one_kernel[(1,)](counter)
        scale(tensors["x"], 2.0, tensors["y"])
    change(tensors[which])
    with pytest.raises(LaunchError, match=f"launch 1 .*'scale_kernel'.*'{which}' was freed or moved.*nothing was run"):
        recording.replay()
    assert counter.item() == 1
    new = torch.ones(100)
    recording[1].update(**{which: new})
    recording.replay()
    assert counter.item() == 2


def test_long_recordings_watch_every_tensor():
    buffers = [torch.ones(16) for _ in range(201)]
    with record() as recording:
        for source, out in pairwise(buffers):
            scale(source, 0.5, out)
    for buffer in buffers[1:]:
        buffer.zero_()
    recording.replay()
    assert_equal(buffers[100], torch.full((16,), 0.5**100))
    free(buffers[200])
    with pytest.raises(LaunchError, match=r"launch 199 .*'y'"):
        recording.replay()
    last = torch.zeros(16)
    recording.replace(buffers[200], last)
    recording.replay()
    assert_equal(last[:1], buffers[199][:1] * 0.5)


def test_tensors_patched_in_one_launch_stay_watched_for_the_others():
    x = numbers()
    with record() as recording:
        scale(x, 2.0)
        y = scale(x, 3.0)
    for seed in range(200):
        new = numbers(seed=seed)
        recording[0].update(x=new)
        recording.replay()
    assert_equal(y, x * 3.0)
    free(x)
    with pytest.raises(LaunchError, match=r"launch 1 .*'x'"):
        recording.replay()
    recording[1].update(x=new)
    recording.replay()
    assert_equal(y, new * 3.0)
    free(new)
    with pytest.raises(LaunchError, match=r"launch 0 .*'x'"):
        recording.replay()


def test_memory_freed_through_the_base_of_a_view_is_noticed():
    base, y = numbers(200), torch.zeros(100)
    with record() as recording:
        scale(base[100:], 2.0, y)
    free(base)
    with pytest.raises(LaunchError, match="'x' was freed"):
        recording.replay()


def test_memory_that_came_back_to_its_place_is_fine(scaled):
    recording, x, y = scaled
    storage = x.untyped_storage()
    was = x.data_ptr()
    other = torch.ones(100)
    x.set_(other)
    with pytest.raises(LaunchError):
        recording.replay()
    x.set_(storage, 0, (100,), (1,))
    assert x.data_ptr() == was
    recording.replay()
    assert_equal(y, x * 2.0)


def test_a_recorded_tensor_cannot_be_swapped_away(scaled):
    recording, x, y = scaled
    with pytest.raises(RuntimeError):
        torch.utils.swap_tensors(x, torch.zeros(100))
    recording.replay()
    assert_equal(y, x * 2.0)


def test_a_block_that_raises_leaves_nothing():
    x = numbers()
    with pytest.raises(KeyError), record() as recording:  # noqa: PT012  # the launch before the error is the point
        scale(x, 2.0)
        raise KeyError("stop")
    assert len(recording) == 0
    with pytest.raises(LaunchError, match=r"KeyError.*stop"):
        recording.replay()
    with record() as recording:
        scale(x, 2.0)
    assert len(recording) == 1


def test_a_launch_that_fails_is_not_captured():
    x = numbers()
    with record() as recording:
        with pytest.raises(LaunchError):
            scale_kernel[(2**31,)](x, x, 100, 2.0, B=16)
        y = scale(x, 2.0)
    assert len(recording) == 1
    recording.replay()
    assert_equal(y, x * 2.0)


def test_nested_recordings_are_refused():
    x = numbers()
    with record() as outer:
        scale(x, 2.0)
        with pytest.raises(LaunchError, match="nested"), record():
            pass
        scale(x, 3.0)
    assert len(outer) == 2


def test_replay_inside_a_block_is_refused(scaled):
    recording = scaled[0]
    with record() as other:
        with pytest.raises(LaunchError, match="not captured"):
            recording.replay()
        with pytest.raises(LaunchError, match="not captured"):
            other.replay()
    recording.replay()
    other.replay()


def test_replay_by_another_thread_before_the_end_is_refused():
    errors = []

    def replay(recording):
        try:
            recording.replay()
        except LaunchError as error:
            errors.append(str(error))

    with record() as recording:
        thread = threading.Thread(target=replay, args=(recording,))
        thread.start()
        thread.join()
    assert "still being made" in errors[0]


def test_forked_children_replay():
    counter = torch.zeros(1, dtype=torch.int32).share_memory_()
    with record() as recording:
        add_one_kernel[(64,)](counter)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            recording.replay()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    recording.replay()
    assert counter.item() == 3 * 64
