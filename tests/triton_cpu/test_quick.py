"""The quick way of `kernel[grid](...)`: taken where nothing has changed, with the result of Triton's own way."""

import pytest
import torch
import triton
import triton.language as tl
from triton.backends import backends
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from triton_cpu import record
from triton_cpu.errors import ArgumentError, LaunchError

SIZE = 8
FACTOR = tl.constexpr(3)


def scale(out, x, n, pair, half: tl.bfloat16, *rest, SCALE: tl.constexpr = 2):
    i = tl.arange(0, 8)
    at = tl.program_id(0) + 10 * tl.program_id(1) + 100 * tl.program_id(2)
    y = tl.load(x + i) * SCALE + n + pair[1] + half + rest[0]
    tl.store(out + at * 8 + i, y.to(out.dtype.element_ty))


def factor(out):
    tl.store(out, FACTOR)


def tensors(offset=0, dtype=torch.float32):
    """Input and a zeroed output, `offset` elements behind an aligned address."""
    x, out = torch.arange(2 * SIZE, dtype=dtype), torch.zeros(112 * SIZE + 2, dtype=dtype)
    return out[offset:], x[offset:]


@pytest.fixture
def triton_runs(monkeypatch):
    """The arguments of every launch that Triton's own method has carried out."""
    seen, run = [], JITFunction.run

    def counting(*args, **kwargs):
        seen.append(kwargs)
        return run(*args, **kwargs)

    monkeypatch.setattr(JITFunction, "run", counting)
    return seen


@pytest.fixture
def kernel(triton_runs):
    """A kernel that has been launched before."""
    made = triton.jit(scale)
    for _ in range(3):
        launch(made)
    triton_runs.clear()
    return made


def launch(kernel, grid=(1,), out=None, x=None, n=7, pair=(1, 2), half=0.5, rest=4, **options):
    made, given = tensors()
    out, x = made if out is None else out, given if x is None else x
    kernel[grid](out, x, n, pair, half, rest, **options)
    return out


def expected(x, n=7, pair=(1, 2), half=0.5, rest=4, SCALE=2):
    return (x[:SIZE].double() * SCALE + n + pair[1] + half + rest).to(x.dtype)


def test_equal_launches_take_the_quick_way(kernel, triton_runs):
    out, x = tensors()
    assert launch(kernel, out=out, x=x) is out
    assert torch.equal(out[:SIZE], expected(x))
    assert not triton_runs


CHANGES = {
    "type of a tensor": {"dtype": torch.float64},
    "16 bits": {"dtype": torch.bfloat16},
    "integers": {"dtype": torch.int32},
    "address": {"offset": 1},
    "one": {"n": 1},
    "divisible": {"n": 32},
    "64 bits": {"n": 2**40, "dtype": torch.float64},
    "float": {"n": 1.25},
    "boolean": {"n": True},
    "constant": {"SCALE": 5},
    "option": {"num_warps": 8},
    "in a tuple": {"pair": (1, 2.5)},
    "in the rest": {"rest": 0.25},
    "debug": {"debug": True},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_launch_of_another_kind_gets_its_own_code(kernel, triton_runs, change):
    change = dict(change)
    place = {name: change.pop(name) for name in ("offset", "dtype") if name in change}
    numbers = {name: value for name, value in change.items() if name not in ("num_warps", "debug")}
    for turn in range(3):
        out, x = tensors(**place)
        launch(kernel, out=out, x=x, **change)
        assert torch.equal(out[:SIZE], expected(x, **numbers)), turn
        assert len(triton_runs) == 1, turn


@pytest.mark.parametrize("changed", [{"n": 9}, {"half": 2.25}, {"pair": (1, 6)}, {"rest": 21}], ids=str)
def test_values_of_the_same_kind_are_passed(kernel, triton_runs, changed):
    out, x = tensors()
    launch(kernel, out=out, x=x, **changed)
    assert torch.equal(out[:SIZE], expected(x, **changed))
    assert not triton_runs


@pytest.mark.parametrize("grid", [
    pytest.param((3,), id="tuple"), pytest.param([3], id="list"), pytest.param((2, 2), id="two dimensions"),
    pytest.param((2, 1, 2), id="three dimensions"), pytest.param(lambda args: (args["n"], 2), id="function"),
])  # fmt: skip
def test_grid(kernel, triton_runs, grid):
    out = launch(kernel, grid)
    programs = (out[:-2].view(-1, SIZE) != 0).any(1).nonzero().flatten().tolist()
    x, y, z = (*(grid({"n": 7}) if callable(grid) else grid), 1, 1)[:3]
    assert programs == [i + 10 * j + 100 * k for k in range(z) for j in range(y) for i in range(x)]
    assert not triton_runs


@pytest.mark.parametrize("grid", [(0,), (2, 0), (1, 1, 0)], ids=str)
def test_an_empty_grid_runs_nothing(kernel, grid):
    assert not launch(kernel, grid).any()


@pytest.mark.parametrize("grid", [(-1,), (2**31,), (1, -5)], ids=str)
def test_a_grid_out_of_range_is_an_error(kernel, grid):
    with pytest.raises(LaunchError, match="grid"):
        launch(kernel, grid)


def test_the_compiled_kernel_is_returned(kernel, triton_runs):
    out, x = tensors()
    (compiled,) = kernel.device_caches[0][0].values()
    assert kernel.run(out, x, 7, (1, 2), 0.5, 4, grid=(1,), warmup=False) is compiled
    assert not triton_runs


def test_a_subclass_of_tensors_is_a_pointer(kernel):
    out, x = tensors()
    for _ in range(3):
        launch(kernel, out=torch.nn.Parameter(out, requires_grad=False), x=x)
        assert torch.equal(out[:SIZE], expected(x))
        out.zero_()


def test_a_tensor_of_another_device_is_refused(kernel):
    for _ in range(2):
        with pytest.raises(ArgumentError, match="device meta"):
            launch(kernel, x=torch.zeros(16, device="meta"))


def test_missing_arguments_are_named(kernel):
    with pytest.raises(TypeError, match="half"):
        kernel[(1,)](*tensors(), 7, (1, 2))


def test_launches_are_recorded(kernel, triton_runs):
    out, x = tensors()
    with record() as recording:
        launch(kernel, out=out, x=x)
    assert not triton_runs
    x += 1
    recording.replay()
    assert torch.equal(out[:SIZE], expected(x))


@pytest.mark.parametrize("knob", ["launch_enter_hook", "launch_exit_hook"])
@pytest.mark.parametrize("how", ["added", "replaced"])
def test_hooks_are_called(kernel, triton_runs, hooks, knob, how):
    names = []

    def hook(metadata):
        names.append(metadata.get()["name"])

    chain = getattr(hooks, knob)
    if how == "added":
        chain.add(hook)
    else:
        setattr(hooks, knob, hook)
    launch(kernel)
    assert names == ["scale"]
    assert len(triton_runs) == 1


def test_hooks_before_the_run_are_called_with_what_was_given(kernel):
    seen = []
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append((args[2], kwargs["SCALE"])))
    launch(kernel, SCALE=2)
    assert seen == [(7, 2)]


def test_debugging_is_switched_on(kernel, triton_runs, hooks):
    hooks.debug = True
    launch(kernel)
    assert len(triton_runs) == 1
    assert triton_runs[0]["warmup"] is False


def test_another_driver_takes_over(kernel, triton_runs):
    class Other(backends["cpu"].driver):
        pass

    previous = driver.active
    driver.set_active(Other())
    try:
        launch(kernel)
    finally:
        driver.set_active(previous)
    assert len(triton_runs) == 1


@pytest.mark.parametrize("how", ["all", "of the device", "of the code"])
def test_a_cleared_cache_compiles_anew(kernel, triton_runs, how):
    (old,) = kernel.device_caches[0][0].values()
    if how == "all":
        kernel.device_caches.clear()
    elif how == "of the device":
        del kernel.device_caches[0]
    else:
        kernel.device_caches[0][0].clear()
    out, x = tensors()
    launch(kernel, out=out, x=x)
    (new,) = kernel.device_caches[0][0].values()
    assert new is not old
    assert torch.equal(out[:SIZE], expected(x))


def test_a_changed_global_is_an_error(monkeypatch):
    made, out = triton.jit(factor), torch.zeros(1)
    for _ in range(3):
        made[(1,)](out)
    assert out == 3
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(4))
    with pytest.raises(RuntimeError, match="FACTOR has changed"):
        made[(1,)](out)


def test_warming_up_launches_nothing(kernel, triton_runs):
    out, x = tensors()
    kernel.warmup(out, x, 7, (1, 2), 0.5, 4, grid=(1,))
    assert not out.any()
    assert triton_runs[-1]["warmup"] is True
