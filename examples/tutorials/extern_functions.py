"""Tutorial 7, functions of a library: triton.language.extra.libdevice, which each backend maps to its own."""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def asin_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, libdevice.asin(tl.load(x + at, mask=at < n)), mask=at < n)


@triton.jit
def atan2_kernel(y, x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, libdevice.atan2(tl.load(y + at, mask=inside), tl.load(x + at, mask=inside)), mask=inside)


def asin(x: torch.Tensor) -> torch.Tensor:
    """Arc sine of contiguous f32 or f64; NaN outside of [-1, 1]."""
    return _apply(asin_kernel, x)


def atan2(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Angle of the points (x, y), contiguous f32 or f64 of one shape."""
    return _apply(atan2_kernel, y, x)


def _apply(kernel: triton.JITFunction, *tensors: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(tensors[0])
    kernel[(triton.cdiv(out.numel(), 1024),)](*tensors, out, out.numel(), BLOCK=1024)
    return out


def main(device: str | None = None) -> None:
    """Compare with PyTorch on a device, by default that of Triton's active driver."""
    on = torch.device(device or triton.runtime.driver.active.get_active_torch_device())
    x, y = torch.rand(2, 98432, device=on) * 2 - 1
    error = max((asin(x) - torch.asin(x)).abs().max().item(), (atan2(y, x) - torch.atan2(y, x)).abs().max().item())
    assert error < 1e-6, f"largest difference to PyTorch: {error}"
    print(f"extern_functions on {on}: within {error:.1e} of PyTorch")


if __name__ == "__main__":
    main(*sys.argv[1:])
