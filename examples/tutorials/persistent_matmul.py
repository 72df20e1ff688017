"""Tutorial 9, persistent matrix product: as many programs as processors, each taking tile after tile.

With pointers, or with tensor descriptors made in the kernel or by the caller.
"""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def place_of_tile(tile, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """First row and column of a tile; GROUP rows of tiles are walked down before the next column."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = tile // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    place = tile % (GROUP * columns)
    return (first + place % height) * BM, place // height * BN


@triton.jit
def pointer_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        row, column = place_of_tile(tile, M, N, BM, BN, GROUP)
        m, n = row + tl.arange(0, BM), column + tl.arange(0, BN)
        m_near, n_near = tl.where(m < M, m, 0), tl.where(n < N, n, 0)  # rows that are there, so that K alone is masked
        sums = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(K, BK)):
            k = step * BK + tl.arange(0, BK)
            left = tl.load(a + m_near[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
            right = tl.load(b + n_near[None, :] * K + k[:, None], mask=k[:, None] < K, other=0.0)
            sums = tl.dot(left, right, sums, input_precision="ieee")
        at = c + m[:, None].to(tl.int64) * N + n[None, :]
        tl.store(at, sums, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def descriptor_kernel(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, MAKE: tl.constexpr
):
    if MAKE:
        a = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
        b = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
        c = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        row, column = place_of_tile(tile, M, N, BM, BN, GROUP)
        sums = tl.zeros((BM, BN), tl.float32)
        for start in range(0, K, BK):
            sums = tl.dot(a.load([row, start]), b.load([column, start]).T, sums, input_precision="ieee")
        c.store([row, column], sums.to(c.dtype))


BLOCKS = {"BM": 64, "BN": 64, "BK": 64}
KINDS = ("pointers", "made descriptors", "given descriptors")


def matmul(a: torch.Tensor, b: torch.Tensor, kind: str = "pointers", programs: int | None = None) -> torch.Tensor:
    """a @ b.T of contiguous [M, K] and [N, K], summed in f32; [M, N] of their dtype.

    `kind` is one of KINDS; descriptors want rows of whole 16 bytes. `programs` share the tiles: by default one for each
    processor of the device.
    """
    (M, K), N = a.shape, b.shape[0]
    if b.shape[1] != K or a.dtype != b.dtype or not (a.is_contiguous() and b.is_contiguous()) or kind not in KINDS:
        raise ValueError(f"{kind}: a is {tuple(a.shape)} of {a.dtype}, b is {tuple(b.shape)} of {b.dtype}")
    c = torch.empty(M, N, device=a.device, dtype=a.dtype)
    active = triton.runtime.driver.active
    if programs is None:
        programs = active.utils.get_device_properties(active.get_current_device())["multiprocessor_count"]
    grid = (min(programs, triton.cdiv(M, BLOCKS["BM"]) * triton.cdiv(N, BLOCKS["BN"])),)
    if kind == "pointers":
        pointer_kernel[grid](a, b, c, M, N, K, GROUP=8, **BLOCKS)
    elif kind == "made descriptors":
        # memory for the descriptors, where a device keeps them there
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device=a.device, dtype=torch.int8))
        descriptor_kernel[grid](a, b, c, M, N, K, GROUP=8, MAKE=True, **BLOCKS)
    else:
        given = [
            TensorDescriptor.from_tensor(tensor, [BLOCKS[rows], BLOCKS[columns]])
            for tensor, rows, columns in ((a, "BM", "BK"), (b, "BN", "BK"), (c, "BM", "BN"))
        ]
        descriptor_kernel[grid](*given, M, N, K, GROUP=8, MAKE=False, **BLOCKS)
    return c


def main(device: str | None = None) -> None:
    """Compare with PyTorch on a device, by default that of Triton's active driver."""
    on = torch.device(device or triton.runtime.driver.active.get_active_torch_device())
    a, b = torch.randn(500, 384, device=on), torch.randn(328, 384, device=on)
    error = max((matmul(a, b, kind) - a @ b.T).abs().max().item() for kind in KINDS)
    assert error < 1e-3, f"largest difference to PyTorch: {error}"
    print(f"persistent_matmul on {on}: {', '.join(KINDS)}, within {error:.1e} of PyTorch")


if __name__ == "__main__":
    main(*sys.argv[1:])
