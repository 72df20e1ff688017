"""Lowering of what a program knows of its grid, and of the forms that arguments can take."""

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal


@triton.jit
def where_am_i_kernel(out):
    x = tl.program_id(0)
    y = tl.program_id(1)
    z = tl.program_id(2)
    row = out + ((z * tl.num_programs(1) + y) * tl.num_programs(0) + x) * 6
    tl.store(row, x)
    tl.store(row + 1, y)
    tl.store(row + 2, z)
    tl.store(row + 3, tl.num_programs(0))
    tl.store(row + 4, tl.num_programs(1))
    tl.store(row + 5, tl.num_programs(2))


@triton.jit
def many_programs_kernel(out):
    program = tl.program_id(0)
    tl.store(out + program, program * 2)


@triton.jit
def tuple_kernel(tensors, sizes, out, B: tl.constexpr):
    i = tl.arange(0, B)
    x, y = tensors
    n, (low, high) = sizes
    total = tl.load(x + i, mask=i < n, other=0.0) + tl.load(y + i)
    tl.store(out + i, tl.clamp(total, low, high))


@triton.jit
def pair_of(a, b):
    return a + b, a - b


@triton.jit
def helper_kernel(x, out, B: tl.constexpr, DOUBLE: tl.constexpr, NAME: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    total, difference = pair_of(a, 1.0)
    if DOUBLE:
        total *= 2
    if NAME == "minus":
        total = difference
    tl.store(out + i, total)


@triton.jit
def scalars_kernel(out, b, i, l, h, f, none):
    tl.store(out, b)
    tl.store(out + 1, i)
    tl.store(out + 2, l)
    tl.store(out + 3, h)
    tl.store(out + 4, f)
    if none is None:
        tl.store(out + 5, 6.0)


@triton.jit
def assumptions_kernel(x, out, n, B: tl.constexpr):
    tl.assume(n > 0)
    i = tl.max_contiguous(tl.multiple_of(tl.program_id(0) * B + tl.arange(0, B), B), B)
    tl.debug_barrier()
    tl.static_assert(B > 1)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=0.0, eviction_policy="evict_first", cache_modifier=".cg"))


@triton.jit
def nothing_kernel(x):
    pass


@pytest.mark.parametrize("grid", [(1,), (5,), (3, 2), (2, 3, 4), (1, 1, 7), (4, 1, 2)], ids=str)
def test_ids_and_sizes_of_the_grid(grid):
    full = (*grid, 1, 1)[:3]
    out = torch.full((full[2], full[1], full[0], 6), -1, dtype=torch.int32)
    where_am_i_kernel[grid](out)
    for z in range(full[2]):
        for y in range(full[1]):
            for x in range(full[0]):
                assert out[z, y, x].tolist() == [x, y, z, *full]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("programs", [1, 3, 40_000, 70_001])
def test_every_program_runs_once_on_any_number_of_threads(programs, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    out = torch.full((programs,), -1, dtype=torch.int32)
    many_programs_kernel[(programs,)](out)
    torch.set_num_threads(before)
    assert torch.equal(out, 2 * torch.arange(programs, dtype=torch.int32))


def test_no_program_writes_nothing():
    out = torch.full((4,), -1, dtype=torch.int32)
    many_programs_kernel[(0,)](out)
    assert (out == -1).all()


def test_tuples():
    x, y, out = torch.randn(32), torch.randn(32), torch.empty(32)
    tuple_kernel[(1,)]((x, y), (20, (-0.5, 0.75)), out, B=32)
    assert_equal(out, (torch.where(torch.arange(32) < 20, x, 0.0) + y).clamp(-0.5, 0.75))


@pytest.mark.parametrize(("double", "name"), [(False, "plus"), (True, "plus"), (False, "minus")])
def test_constants_choose_code(double, name):
    x, out = torch.randn(16), torch.empty(16)
    helper_kernel[(1,)](x, out, B=16, DOUBLE=double, NAME=name)
    assert_equal(out, x - 1 if name == "minus" else (x + 1) * (2 if double else 1))


@pytest.mark.parametrize("flag", [True, False])
def test_scalar_arguments(flag):
    out = torch.empty(6, dtype=torch.float64)
    scalars_kernel[(1,)](out, flag, -7, 2**40 + 1, 2**63 + 2**40, 0.1, None)
    single = torch.tensor(0.1, dtype=torch.float32).item()
    assert out.tolist() == [float(flag), -7.0, 2.0**40 + 1, float(2**63 + 2**40), single, 6.0]


def test_hints_change_nothing():
    x, out = torch.randn(48), torch.empty(64)
    assumptions_kernel[(2,)](x, out, 48, B=32)
    assert_equal(out, torch.cat([x, torch.zeros(16)]))


def test_an_empty_kernel():
    nothing_kernel[(3,)](torch.empty(1))


def test_the_name_and_the_stages_are_kept():
    out = torch.empty(1, dtype=torch.int32)
    compiled = many_programs_kernel[(1,)](out)
    assert compiled.name == "many_programs_kernel"
    assert {"ttir", "llir", "obj"} <= set(compiled.asm)
