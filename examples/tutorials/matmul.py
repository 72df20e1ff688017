"""Tutorial 3, matrix product: tiles in an order that keeps operands in the cache, and an activation at the end."""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def leaky_relu(x):
    """x where it is positive, else a hundredth of it."""
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def grouped_tile(program, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Row and column of a program's tile: programs walk down GROUP rows of tiles before the next column."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = program // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    place = program % (GROUP * columns)
    return first + place % height, place // height


@triton.jit
def matmul_kernel(
    a, b, c, M, N, K, a_m, a_k, b_k, b_n, c_m, c_n,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    row, column = grouped_tile(tl.program_id(0), M, N, BM, BN, GROUP)
    m = (row * BM + tl.arange(0, BM)) % M  # what lies past the end wraps around, so that loads need no mask for it
    n = (column * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    a_at = a + m[:, None] * a_m + k[None, :] * a_k
    b_at = b + k[:, None] * b_k + n[None, :] * b_n
    sums = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a_at, mask=k[None, :] < K - start, other=0.0)
        right = tl.load(b_at, mask=k[:, None] < K - start, other=0.0)
        sums = tl.dot(left, right, sums, input_precision="ieee")
        a_at += BK * a_k
        b_at += BK * b_k
    if ACTIVATION is not None:
        sums = ACTIVATION(sums)
    m, n = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
    at = c + m[:, None].to(tl.int64) * c_m + n[None, :] * c_n
    tl.store(at, sums, mask=(m[:, None] < M) & (n[None, :] < N))


BLOCKS = {"BM": 64, "BN": 64, "BK": 64, "GROUP": 8}
tuned_matmul_kernel = triton.autotune([triton.Config(BLOCKS), triton.Config(BLOCKS | {"BN": 128})], ["M", "N", "K"])(
    matmul_kernel
)


def matmul(
    a: torch.Tensor, b: torch.Tensor, activation: triton.JITFunction | None = None, tune: bool = False
) -> torch.Tensor:
    """activation(a @ b) of [M, K] and [K, N] with any strides, summed in f32; [M, N] of their dtype.

    With `tune`, the first call for a shape measures which tiles are best.
    """
    (M, K), N = a.shape, b.shape[1]
    if b.shape[0] != K or a.dtype != b.dtype:
        raise ValueError(f"a is {tuple(a.shape)} of {a.dtype}, b is {tuple(b.shape)} of {b.dtype}: they do not fit")
    c = torch.empty(M, N, device=a.device, dtype=a.dtype)
    if not c.numel():
        return c
    kernel, blocks = (tuned_matmul_kernel, {}) if tune else (matmul_kernel, BLOCKS)
    kernel[lambda meta: (triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]),)](
        a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), ACTIVATION=activation, **blocks
    )
    return c


def main(device: str | None = None) -> None:
    """Compare with PyTorch on a device, by default that of Triton's active driver."""
    on = torch.device(device or triton.runtime.driver.active.get_active_torch_device())
    a, b = torch.randn(2, 512, 512, device=on, dtype=torch.float16)
    expected = torch.nn.functional.leaky_relu(a.float() @ b.float())
    error = (matmul(a, b, leaky_relu, tune=True) - expected).abs().max().item()
    assert error < 0.1, f"largest difference to PyTorch: {error}"
    print(f"matmul on {on}: within {error:.1e} of PyTorch in f32")


if __name__ == "__main__":
    main(*sys.argv[1:])
