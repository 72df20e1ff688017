"""Tutorial 8, grouped matrix products: a few programs work through the tiles of many products of any sizes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch
import triton
import triton.language as tl

DTYPES = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}


@triton.jit
def grouped_kernel(
    addresses, sizes, strides, groups,
    DTYPE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)  # this program's next one, counted over all products
    before = 0  # tiles of the products before this one
    for group in range(groups):
        M, N, K = tl.load(sizes + group * 3), tl.load(sizes + group * 3 + 1), tl.load(sizes + group * 3 + 2)
        columns = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * columns
        while tile >= before and tile < before + tiles:
            a = tl.load(addresses + group * 3).to(tl.pointer_type(DTYPE))
            b = tl.load(addresses + group * 3 + 1).to(tl.pointer_type(DTYPE))
            c = tl.load(addresses + group * 3 + 2).to(tl.pointer_type(DTYPE))
            a_m, b_k = tl.load(strides + group * 3), tl.load(strides + group * 3 + 1)
            c_m = tl.load(strides + group * 3 + 2)
            m = (tile - before) // columns * BM + tl.arange(0, BM)
            n = (tile - before) % columns * BN + tl.arange(0, BN)
            sums = tl.zeros((BM, BN), tl.float32)
            for start in range(0, K, BK):
                k = start + tl.arange(0, BK)
                left_mask, right_mask = (m[:, None] < M) & (k[None, :] < K), (k[:, None] < K) & (n[None, :] < N)
                left = tl.load(a + m[:, None] * a_m + k[None, :], mask=left_mask, other=0.0)
                right = tl.load(b + k[:, None] * b_k + n[None, :], mask=right_mask, other=0.0)
                sums = tl.dot(left, right, sums, input_precision="ieee")
            tl.store(c + m[:, None] * c_m + n[None, :], sums, mask=(m[:, None] < M) & (n[None, :] < N))
            tile += tl.num_programs(0)
        before += tiles


def grouped_gemm(
    lefts: Sequence[torch.Tensor], rights: Sequence[torch.Tensor], programs: int | None = None
) -> list[torch.Tensor]:
    """a @ b for each pair of [M, K] and [K, N], all of one dtype (f32, f16, bf16), with rows of neighbouring elements.

    `programs` is how many share the work: by default one for each processor of the device.
    """
    first = lefts[0]
    for a, b in zip(lefts, rights, strict=True):
        if a.shape[1] != b.shape[0] or {a.dtype, b.dtype} != {first.dtype} or (a.stride(1), b.stride(1)) != (1, 1):
            raise ValueError(
                f"{tuple(a.shape)} of {a.dtype} and {tuple(b.shape)} of {b.dtype}: contiguous [M, K] and [K, N] of one "
                f"dtype ({first.dtype}) are needed"
            )
    outs = [a.new_empty(a.shape[0], b.shape[1]) for a, b in zip(lefts, rights, strict=True)]
    triples = list(zip(lefts, rights, outs, strict=True))
    addresses = [[tensor.data_ptr() for tensor in triple] for triple in triples]
    sizes = [[a.shape[0], b.shape[1], b.shape[0]] for a, b, _ in triples]
    strides = [[tensor.stride(0) for tensor in triple] for triple in triples]
    if programs is None:
        active = triton.runtime.driver.active
        programs = active.utils.get_device_properties(active.get_current_device())["multiprocessor_count"]
    grouped_kernel[(programs,)](
        torch.tensor(addresses, dtype=torch.int64, device=first.device),
        torch.tensor(sizes, dtype=torch.int32, device=first.device),
        torch.tensor(strides, dtype=torch.int32, device=first.device),
        len(outs), DTYPE=DTYPES[first.dtype], BM=64, BN=64, BK=32,
    )  # fmt: skip
    return outs


def main(device: str | None = None) -> None:
    """Compare with PyTorch on a device, by default that of Triton's active driver."""
    on = torch.device(device or triton.runtime.driver.active.get_active_torch_device())
    shapes = [(256, 256, 256), (100, 200, 50), (1, 64, 300), (128, 96, 33)]
    lefts = [torch.randn(M, K, device=on) for M, _, K in shapes]
    rights = [torch.randn(K, N, device=on) for _, N, K in shapes]
    triples = zip(lefts, rights, grouped_gemm(lefts, rights), strict=True)
    error = max((c - a @ b).abs().max().item() for a, b, c in triples)
    assert error < 1e-3, f"largest difference to PyTorch: {error}"
    print(f"grouped_gemm on {on}: within {error:.1e} of PyTorch")


if __name__ == "__main__":
    main(*sys.argv[1:])
