"""device_print writes whole lines; device_assert ends a program and raises in Python, in debug mode only."""

import re
import time

import pytest
import torch
import triton
import triton.language as tl

THREADS = 4


@triton.jit
def print_kernel(x, n, B: tl.constexpr):
    a = tl.load(x + tl.arange(0, B))
    tl.device_print('100% "quoted" \\ back', a)
    tl.device_print("scalar", n)
    tl.device_print("no value")


@triton.jit
def print_several_kernel(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.device_print("both", tl.load(x + i), tl.load(y + i))


@triton.jit
def print_bits_kernel(x, B: tl.constexpr):
    tl.device_print("bits", tl.load(x + tl.arange(0, B)), hex=True)


@triton.jit
def print_matrix_kernel(B: tl.constexpr):
    tl.device_print("at", tl.arange(0, B)[:, None] * 10 + tl.arange(0, 2)[None, :])


@triton.jit
def print_from_threads_kernel(x, B: tl.constexpr):
    total = tl.sum(tl.exp(tl.load(x + tl.arange(0, B))), 0)
    if tl.program_id(0) % 64 == 0:
        tl.device_print("program", total, tl.program_id(0))


@triton.jit
def assert_kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + tl.program_id(0) * B + i)
    tl.device_assert(a >= 0, "100% of x must be ≥ 0", mask=i < n)
    tl.store(out + tl.program_id(0) * B + i, a)


@triton.jit
def scalar_assert_kernel(out, n):
    for k in range(n):
        tl.device_assert(k < 3, "too many turns")
        tl.store(out + k, k)


def lines(capfd):
    return capfd.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("dtype", "values", "texts"),
    [
        (torch.int32, [1, -2], ["1", "-2"]),
        (torch.uint8, [255, 0], ["255", "0"]),
        (torch.bool, [True, False], ["1", "0"]),
        (torch.float32, [0.1, float("-inf")], ["0.100000001", "-inf"]),
        (torch.bfloat16, [1.5, float("nan")], ["1.5", "nan"]),
        (torch.float64, [0.1, 1e300], ["0.10000000000000001", "1.0000000000000001e+300"]),
    ],
    ids=str,
)
def test_printed_values(capfd, dtype, values, texts):
    print_kernel[(1,)](torch.tensor(values, dtype=dtype), -7, B=2)
    prefix = '100% "quoted" \\ back: '
    expected = [f"pid (0, 0, 0) idx ({i}) {prefix}{text}" for i, text in enumerate(texts)]
    got = [line.replace("-nan", "nan") for line in lines(capfd)]
    assert got == [*expected, "pid (0, 0, 0) scalar: -7", "pid (0, 0, 0) no value"]


def test_several_operands_bits_and_dimensions(capfd):
    x = torch.tensor([-1, 16], dtype=torch.int16)
    print_several_kernel[(1,)](x, x + 1, B=2)
    print_bits_kernel[(1,)](x, B=2)
    print_matrix_kernel[(1,)](B=2)
    got = [line.removeprefix("pid (0, 0, 0) idx ") for line in lines(capfd)]
    assert got == [
        "(0) both: (operand 0) -1", "(1) both: (operand 0) 16", "(0) both: (operand 1) 0", "(1) both: (operand 1) 17",
        "(0) bits: 0xffff", "(1) bits: 0x0010",
        "(0, 0) at: 0", "(0, 1) at: 1", "(1, 0) at: 10", "(1, 1) at: 11",
    ]  # fmt: skip


def test_more_lines_than_a_buffer_holds(capfd):
    x = torch.arange(1024, dtype=torch.int32)
    print_bits_kernel[(1,)](x, B=1024)
    assert lines(capfd) == [f"pid (0, 0, 0) idx ({i}) bits: 0x{i:08x}" for i in range(1024)]


def test_threads_do_not_mix_lines(capfd):
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    print_from_threads_kernel[(1 << 14,)](torch.zeros(64), B=64)
    torch.set_num_threads(before)
    got = lines(capfd)
    pattern = re.compile(r"pid \((\d+), 0, 0\) program: \(operand (\d)\) (\d+)")
    found = [tuple(map(int, pattern.fullmatch(line).groups())) for line in got]
    assert sorted(found) == sorted(row for p in range(0, 1 << 14, 64) for row in [(p, 0, 64), (p, 1, p)])
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert first[0] == second[0]  # the lines of a program stay together


def launch(kernel, *arguments, grid=(1,), **options):
    """Run a kernel, and a little Python after it: the error comes when the interpreter next looks."""
    kernel[grid](*arguments, **options)
    for _ in range(100):
        time.sleep(0)


def test_a_failed_assertion_is_raised_once_and_ends_its_program_alone():
    x = torch.arange(256, dtype=torch.int32).view(4, 64).clone()
    x[2, 5] = x[1, 9] = -1
    out = torch.full((4, 64), -7, dtype=torch.int32)
    with pytest.raises(
        AssertionError, match=r"test_lower_debug.py:\d+:\d+: 100% of x must be ≥ 0 \(in program 1, 0, 0\)"
    ):
        launch(assert_kernel, x, out, 64, grid=(4,), B=64, debug=True)
    assert torch.equal(out[[0, 3]], x[[0, 3]])
    assert (out[[1, 2]] == -7).all()
    launch(assert_kernel, x.abs(), out, 64, grid=(4,), B=64, debug=True)
    assert torch.equal(out, x.abs())
    with pytest.raises(AssertionError):  # again
        launch(assert_kernel, x, out, 64, grid=(4,), B=64, debug=True)


def test_masked_lanes_are_not_checked():
    x, out = torch.arange(64, dtype=torch.int32), torch.empty(64, dtype=torch.int32)
    x[40] = -1
    launch(assert_kernel, x, out, 40, B=64, debug=True)
    assert torch.equal(out, x)


def test_assertions_cost_nothing_without_debug():
    x, out = torch.full((64,), -1, dtype=torch.int32), torch.empty(64, dtype=torch.int32)
    launch(assert_kernel, x, out, 64, B=64)
    assert torch.equal(out, x)


def test_an_assertion_in_a_loop():
    out = torch.full((8,), -7, dtype=torch.int32)
    with pytest.raises(AssertionError, match="too many turns"):
        launch(scalar_assert_kernel, out, 5, debug=True)
    assert out.tolist() == [0, 1, 2, -7, -7, -7, -7, -7]
