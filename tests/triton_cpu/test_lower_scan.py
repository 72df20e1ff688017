"""Lowering of scans, against PyTorch: any axis, forwards and backwards, own functions of several values."""

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_equal

CASES = [(shape, axis) for shape in [(1,), (2,), (256,), (4, 8), (64, 2), (2, 4, 64)] for axis in range(len(shape))]


@triton.jit
def scan_kernel(x, out, PRODUCT: tl.constexpr, BACK: tl.constexpr, AXIS: tl.constexpr,
                A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):  # fmt: skip
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    place = a * B * C + b * C + c
    cube = tl.load(x + place)
    if PRODUCT:
        result = tl.cumprod(cube, AXIS, reverse=BACK)
    else:
        result = tl.cumsum(cube, AXIS, reverse=BACK)
    tl.store(out + place, result)


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b)


@triton.jit
def affine(scale_a, shift_a, scale_b, shift_b):
    return scale_a * scale_b, shift_a * scale_b + shift_b


@triton.jit
def own_functions_kernel(x, scale, running, state, N: tl.constexpr, BACK: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    s = tl.load(scale + i)
    tl.store(running + i, tl.associative_scan(a, 0, maximum, reverse=BACK))
    _, shift = tl.associative_scan((s, a), 0, affine, reverse=BACK)
    tl.store(state + i, shift)


@triton.jit
def compact_kernel(x, out, count, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n, other=-1)
    keep = a >= 0
    place = tl.cumsum(keep.to(tl.int32), 0) - 1
    tl.store(out + place, a, mask=keep)
    tl.store(count, tl.max(place, 0) + 1)


@triton.jit
def typed_kernel(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0))


@pytest.mark.parametrize("back", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize(("shape", "axis"), CASES, ids=str)
def test_cumulative_sum(shape, axis, back):
    x = torch.randint(-9, 9, shape, dtype=torch.int32)
    out = torch.empty(shape, dtype=torch.int32)
    A, B, C = (1,) * (3 - len(shape)) + shape
    scan_kernel[(1,)](x, out, PRODUCT=False, BACK=back, AXIS=axis + 3 - len(shape), A=A, B=B, C=C)
    expected = x.flip(axis).cumsum(axis).flip(axis) if back else x.cumsum(axis)
    assert torch.equal(out, expected.int())


@pytest.mark.parametrize("back", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_cumulative_product(axis, back):
    x = 2.0 ** torch.randint(-1, 2, (2, 4, 64))  # exact
    out = torch.empty(2, 4, 64)
    scan_kernel[(1,)](x, out, PRODUCT=True, BACK=back, AXIS=axis, A=2, B=4, C=64)
    assert_equal(out, x.flip(axis).cumprod(axis).flip(axis) if back else x.cumprod(axis))


@pytest.mark.parametrize("back", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("size", [1, 4, 128])
def test_own_functions(size, back):
    x, scale = torch.randint(-9, 9, (size,)).float(), torch.randint(-1, 2, (size,)).float()
    running, state = torch.empty(size), torch.empty(size)
    own_functions_kernel[(1,)](x, scale, running, state, N=size, BACK=back)
    order = range(size - 1, -1, -1) if back else range(size)
    largest, value = float("-inf"), 0.0
    for i in order:
        largest, value = max(largest, x[i].item()), value * scale[i].item() + x[i].item()
        assert running[i].item() == largest
        assert state[i].item() == value


@pytest.mark.parametrize("n", [0, 1, 40, 64])
def test_compaction(n):
    x = torch.randint(-5, 5, (64,), dtype=torch.int32)
    out, count = torch.full((64,), -7, dtype=torch.int32), torch.empty(1, dtype=torch.int32)
    compact_kernel[(1,)](x, out, count, n, B=64)
    kept = x[:n][x[:n] >= 0]
    assert count.item() == len(kept)
    assert torch.equal(out[: len(kept)], kept)
    assert (out[len(kept) :] == -7).all()


@pytest.mark.parametrize("dtype", [torch.int64, torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
def test_types(dtype):
    x = torch.randint(-1, 2, (64,)).to(dtype)
    out = torch.empty(64, dtype=dtype)
    typed_kernel[(1,)](x, out, B=64)
    assert_equal(out, x.cumsum(0))
