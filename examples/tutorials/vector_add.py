"""Tutorial 1, vector addition: a grid of programs, each of which handles one block of a vector."""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n  # the last block may reach past the end
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x + y, for contiguous tensors of one shape and dtype."""
    out = torch.empty_like(x)
    add_kernel[lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)](x, y, out, out.numel(), BLOCK=1024)
    return out


def main(device: str | None = None) -> None:
    """Compare with PyTorch on a device, by default that of Triton's active driver."""
    on = torch.device(device or triton.runtime.driver.active.get_active_torch_device())
    x, y = torch.rand(2, 98432, device=on)
    error = (add(x, y) - (x + y)).abs().max().item()
    assert error == 0, f"largest difference to PyTorch: {error}"
    print(f"vector_add on {on}: equal to PyTorch")


if __name__ == "__main__":
    main(*sys.argv[1:])
