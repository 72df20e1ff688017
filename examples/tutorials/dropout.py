"""Tutorial 4, dropout without a mask in memory: what is dropped follows from a seed and the place of an element."""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def masked_dropout_kernel(x, keep, out, n, p, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    kept = tl.load(keep + at, mask=inside)
    value = tl.load(x + at, mask=inside)
    tl.store(out + at, tl.where(kept, value / (1 - p), 0.0), mask=inside)


@triton.jit
def seeded_dropout_kernel(x, seeds, out, columns, p, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    at = row.to(tl.int64) * columns + column
    kept = tl.rand(tl.load(seeds + row), column) > p  # uniform in [0, 1)
    value = tl.load(x + at, mask=inside)
    tl.store(out + at, tl.where(kept, value / (1 - p), 0.0), mask=inside)


def masked_dropout(x: torch.Tensor, keep: torch.Tensor, p: float) -> torch.Tensor:
    """x / (1 - p) where `keep` (bool, of x's shape) is true, else 0; contiguous floats of any shape, 0 <= p < 1."""
    out = torch.empty_like(x)
    masked_dropout_kernel[(triton.cdiv(x.numel(), 1024),)](x, keep, out, x.numel(), p, BLOCK=1024)
    return out


def seeded_dropout(x: torch.Tensor, seeds: torch.Tensor, p: float) -> torch.Tensor:
    """x / (1 - p) with probability 1 - p, else 0; contiguous floats [rows, columns], one seed (int32) a row.

    The same seed drops the same columns, whatever the other rows are.
    """
    rows, columns = x.shape
    out = torch.empty_like(x)
    if x.numel():
        seeded_dropout_kernel[(rows, triton.cdiv(columns, 1024))](x, seeds, out, columns, p, BLOCK=1024)
    return out


def main(device: str | None = None) -> None:
    """Compare with PyTorch on a device, by default that of Triton's active driver."""
    on = torch.device(device or triton.runtime.driver.active.get_active_torch_device())
    x, p = torch.randn(3, 10001, device=on), 0.5
    keep = torch.rand(x.shape, device=on) > p
    assert torch.equal(masked_dropout(x, keep, p), torch.where(keep, x / (1 - p), 0.0)), "dropped other elements"
    dropped = seeded_dropout(x, torch.tensor([123, 123, 512], dtype=torch.int32, device=on), p) == 0
    assert torch.equal(dropped[0], dropped[1]), "one seed dropped two sets of columns"
    share = dropped.float().mean().item()
    assert abs(share - p) < 0.02, f"{share} of the elements were dropped, expected {p}"
    print(f"dropout on {on}: equal to PyTorch with a mask, dropped {share:.3f} of the elements with seeds")


if __name__ == "__main__":
    main(*sys.argv[1:])
