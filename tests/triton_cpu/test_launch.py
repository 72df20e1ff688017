"""Packing arguments and launching through Triton's own path."""

import struct

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.compiler import Language
from triton.tools.tensor_descriptor import TensorDescriptor

from tests.triton_cpu.hand_lowered import spy
from triton_cpu.errors import ArgumentError, CompileError, LaunchError
from triton_cpu.runtime.pack import Packer

BASE_SLOTS = 4  # of a descriptor test kernel: out and n, the descriptor's padding and rounding flags


def packed(type_, value):
    return Packer({"a": type_}).pack((value,))


def slot(format_, value):
    return struct.pack(f"<{format_}", value).ljust(8, b"\0")


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("i1", True, slot("?", True)),
        ("u1", False, slot("?", False)),
        ("i8", -3, slot("b", -3)),
        ("u8", 250, slot("B", 250)),
        ("i16", -300, slot("h", -300)),
        ("i32", -(2**31), slot("i", -(2**31))),
        ("u32", 2**32 - 1, slot("I", 2**32 - 1)),
        ("i64", -(2**63), slot("q", -(2**63))),
        ("u64", 2**64 - 1, slot("Q", 2**64 - 1)),
        ("fp32", 0.1, slot("f", 0.1)),
        ("fp32", 3, slot("f", 3.0)),
        ("fp32", 1e300, slot("f", float("inf"))),
        ("fp64", 0.1, slot("d", 0.1)),
        ("fp16", 0.1, slot("e", 0.1)),
        ("fp16", -1e6, slot("e", float("-inf"))),
        ("bf16", 1.0, slot("H", 0x3F80)),
        ("bf16", 1.00390625, slot("H", 0x3F80)),
        ("bf16", 1.01171875, slot("H", 0x3F82)),
        ("bf16", -3.4e38, slot("H", 0xFF80)),
        ("*fp32", None, slot("Q", 0)),
    ],
)
def test_slot_of_a_value(type_, value, expected):
    assert packed(type_, value) == expected


def test_bf16_agrees_with_torch():
    for value in (0.1, -2.7, 1e-40, 65504.0, 3e38, 3.4e38):
        bits = torch.tensor(value, dtype=torch.float64).float().bfloat16().view(torch.int16).item() & 0xFFFF
        assert packed("bf16", value) == slot("H", bits)


def test_bf16_nan_stays_nan():
    bits = struct.unpack("<H", packed("bf16", float("nan"))[:2])[0]
    assert bits & 0x7F80 == 0x7F80
    assert bits & 0x7F


def test_tensor_offset_is_honoured():
    tensor = torch.zeros(10)[3:]
    assert packed("*fp32", tensor) == slot("Q", tensor.data_ptr())


def test_anything_with_data_ptr_is_a_pointer():
    class Buffer:
        def data_ptr(self):
            return 4096

    assert packed("*i8", Buffer()) == slot("Q", 4096)


def test_constexpr_takes_no_slot_and_tuples_take_one_per_leaf():
    packer = Packer({"x": "*fp32", "N": "constexpr", "t": ("i32", ("fp32", "constexpr")), "s": "i64"})
    tensor = torch.zeros(4)
    block = packer.pack((tensor, 128, (7, (1.5, None)), 9))
    assert packer.slots == 4
    assert block == slot("Q", tensor.data_ptr()) + slot("i", 7) + slot("f", 1.5) + slot("q", 9)


@pytest.mark.parametrize(
    ("type_", "value", "words"),
    [
        ("i32", 2**31, "2147483648"),
        ("i32", 1.5, "1.5"),
        ("u8", -1, "-1"),
        ("fp32", "text", "text"),
        ("*fp32", 1.5, "float"),
        ("*fp32", torch.zeros(2, device="meta"), "meta"),
    ],
    ids=["too big", "float for int", "negative unsigned", "text for float", "float for pointer", "tensor elsewhere"],
)
def test_unfit_value_is_named(type_, value, words):
    with pytest.raises(ArgumentError, match="'a'") as caught:
        packed(type_, value)
    assert words in str(caught.value)


def test_unknown_type_is_named():
    with pytest.raises(ArgumentError, match="i128"):
        Packer({"a": "i128"})


@triton.jit
def typed(out, n, ratio, flag, half: tl.bfloat16, pair, N: tl.constexpr):
    pass


def test_stock_path_passes_every_kind_of_argument(lowering):
    lowering(spy(7), ["ptr"] * 7)
    out = torch.zeros(16, dtype=torch.int64)
    typed[(2, 3)](out, 2**40, 0.5, True, 1.0, (5, 2.5), N=4)
    raw = out.numpy().tobytes()
    expected = slot("Q", out.data_ptr()) + slot("q", 2**40) + slot("f", 0.5) + slot("?", True) + slot("H", 0x3F80)
    assert raw[:56] == expected + slot("i", 5) + slot("f", 2.5)
    assert struct.unpack("<4i", raw[56:72]) == (2, 3, 1, torch.get_num_threads())


def test_generic_form_reaches_the_lowering_with_source_lines(lowering):
    fake = lowering(spy(7), ["ptr"] * 7)
    typed[(1,)](torch.zeros(16, dtype=torch.int64), 3, 0.5, True, 1.0, (5, 2.5), N=4)
    assert '"tt.func"()' in fake.ttir
    assert "test_launch.py" in fake.ttir


@triton.jit
def plain(out):
    pass


@pytest.mark.parametrize("grid", [(0,), (4, 0), (1, 1, 0)], ids=str)
def test_empty_grid_runs_nothing(lowering, grid):
    lowering(spy(1), ["ptr"])
    out = torch.zeros(16, dtype=torch.int64)
    plain[grid](out)
    assert not out.any()


@pytest.mark.parametrize("grid", [(-1,), (2**31,), (1, -5)], ids=str)
def test_grid_out_of_range_is_an_error(lowering, grid):
    lowering(spy(1), ["ptr"])
    with pytest.raises(LaunchError, match="grid"):
        plain[grid](torch.zeros(16, dtype=torch.int64))


def test_tensor_descriptor_arrives_as_plain_arguments(lowering):
    fake = lowering(spy(9 + BASE_SLOTS), ["ptr"] * (9 + BASE_SLOTS))

    @triton.jit
    def kernel(out, descriptor, n):
        tl.store(out, tl.sum(tl.sum(descriptor.load([0, 0]), 0), 0) + n)

    out, data = torch.zeros(64), torch.zeros(8, 16)
    kernel[(1,)](out, TensorDescriptor.from_tensor(data, [4, 8]), 5)
    pointer, base, *sizes = struct.unpack("<6Q", out.numpy().tobytes()[:48])
    assert (pointer, base, sizes) == (out.data_ptr(), data.data_ptr(), [8, 16, 16, 1])
    header = next(line for line in fake.ttir.splitlines() if '"tt.func"()' in line)
    types = header.partition("function_type = (")[2].partition(")")[0]
    assert types.count(",") + 1 == 9 + BASE_SLOTS


def test_gluon_kernels_are_refused(cpu_driver):
    backend = triton.compiler.make_backend(cpu_driver.get_current_target())
    with pytest.raises(CompileError, match="Gluon"):
        backend.add_stages({}, backend.parse_options({}), Language.GLUON)


def test_stages_can_be_dumped(lowering, tmp_path, monkeypatch):
    lowering(spy(1), ["ptr"])
    monkeypatch.setenv("TRITON_KERNEL_DUMP", "1")
    monkeypatch.setenv("TRITON_DUMP_DIR", str(tmp_path / "dump"))

    @triton.jit
    def dumped(out):
        pass

    dumped[(1,)](torch.zeros(16, dtype=torch.int64))
    assert {path.suffix for path in (tmp_path / "dump").glob("*/*")} >= {".ttir", ".llir", ".obj"}


def test_binary_only_cache_is_refused(lowering, monkeypatch):
    lowering(spy(1), ["ptr"])
    monkeypatch.setenv("TRITON_STORE_BINARY_ONLY", "1")

    @triton.jit
    def kernel(out):
        pass

    with pytest.raises(CompileError, match="TRITON_STORE_BINARY_ONLY"):
        kernel[(1,)](torch.zeros(16, dtype=torch.int64))


def test_hooks_surround_the_launch(lowering, hooks):
    lowering(spy(1), ["ptr"])
    out, seen = torch.zeros(16, dtype=torch.int64), []
    hooks.launch_enter_hook.add(lambda metadata: seen.append(("enter", metadata.get()["name"], out[0].item())))
    hooks.launch_exit_hook.add(lambda metadata: seen.append(("exit", metadata.get()["name"], out[0].item())))
    plain[(1,)](out)
    assert seen == [("enter", "kernel", 0), ("exit", "kernel", out.data_ptr())]


def test_disagreement_about_the_slots_is_an_error(lowering):
    lowering(spy(2), ["ptr", "i32"])

    @triton.jit
    def kernel(out):
        pass

    with pytest.raises(LaunchError, match="reads 2 argument slots"):
        kernel[(1,)](torch.zeros(16, dtype=torch.int64))


def test_do_bench_times_a_kernel(lowering):
    lowering(spy(1), ["ptr"])
    out = torch.zeros(16, dtype=torch.int64)
    time = triton.testing.do_bench(lambda: plain[(1,)](out), warmup=1, rep=2)
    assert time > 0


def test_autotuner_chooses_a_configuration(lowering):
    lowering(spy(1), ["ptr"])

    @triton.autotune([triton.Config({"B": 4}), triton.Config({"B": 8}, num_warps=8)], key=[])
    @triton.jit
    def kernel(out, B: tl.constexpr):
        pass

    out = torch.zeros(16, dtype=torch.int64)
    kernel[(1,)](out)
    assert kernel.best_config.kwargs["B"] in (4, 8)
    assert out[0] == out.data_ptr()


def test_libdevice_functions_resolve(lowering):
    from triton.language.extra import libdevice

    fake = lowering(spy(1), ["ptr"])

    @triton.jit
    def kernel(out):
        tl.store(out, libdevice.tanh(tl.load(out)))

    kernel[(1,)](torch.zeros(32))
    assert "__nv_tanhf" in fake.ttir
