"""What cannot be lowered is an error that names the operation and the line of the kernel's source."""

from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from triton_cpu.errors import UnsupportedOpError


@triton.jit
def assembly(x):
    return tl.inline_asm_elementwise("nop", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)  # in the helper


@triton.jit
def assembly_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = tl.inline_asm_elementwise("nop", "=r,r", [a], dtype=tl.int32, is_pure=True, pack=1)  # in the kernel
    tl.store(x + i, b)


@triton.jit
def helped_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, assembly(tl.load(x + i)))


@triton.jit
def nested_kernel(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for _ in range(n):
        if n > 3:
            tl.store(x + i, assembly(tl.load(x + i)))


@triton.jit
def branching(a, b):
    if a > b:
        tl.device_print("never")
    return a + b


@triton.jit
def branching_kernel(x, B: tl.constexpr):
    tl.store(x, tl.reduce(tl.load(x + tl.arange(0, B)), 0, branching))


def line_of(comment):
    """Number of the line of this file that ends with a comment."""
    (found,) = [n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.endswith(f"# {comment}")]
    return found


@pytest.mark.parametrize(
    ("kernel", "arguments", "comment"),
    [
        (assembly_kernel, (), "in the kernel"),
        (helped_kernel, (), "in the helper"),
        (nested_kernel, (5,), "in the helper"),
    ],
    ids=["kernel", "helper", "loop and branch"],
)
def test_operation_and_line(kernel, arguments, comment):
    with pytest.raises(UnsupportedOpError) as caught:
        kernel[(1,)](torch.zeros(16, dtype=torch.int32), *arguments, B=16)
    assert caught.value.op == "tt.elementwise_inline_asm"
    file, line, _ = caught.value.location.rsplit(":", 2)
    assert (Path(file).name, int(line)) == (Path(__file__).name, line_of(comment))
    assert f"{Path(__file__).name}:{line_of(comment)}" in str(caught.value)


def test_nothing_is_written_by_a_kernel_that_does_not_compile():
    x = torch.arange(16, dtype=torch.int32)
    with pytest.raises(UnsupportedOpError):
        assembly_kernel[(1,)](x, B=16)
    assert torch.equal(x, torch.arange(16, dtype=torch.int32))


def test_functions_of_reductions_that_touch_the_world():
    with pytest.raises(UnsupportedOpError, match=r"scf.if in tt.reduce"):
        branching_kernel[(1,)](torch.zeros(16), B=16)
