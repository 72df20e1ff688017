"""Tutorial 5, layer normalisation: the backward pass adds up gradients of the weights under locks, then over groups."""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl

GROUPS = 64  # partial sums of the gradients of weight and bias


@triton.jit
def forward_kernel(x, out, weight, bias, means, rstds, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    mean_of = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mean_of += tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(mean_of, 0) / columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        value = tl.where(at < columns, value - mean, 0.0)
        squares += value * value
    rstd = 1 / tl.sqrt(tl.sum(squares, 0) / columns + eps)
    tl.store(means + row, mean)
    tl.store(rstds + row, rstd)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        scale, shift = tl.load(weight + at, mask=inside), tl.load(bias + at, mask=inside)
        value = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + row * columns + at, (value - mean) * rstd * scale + shift, mask=inside)


@triton.jit
def backward_kernel(dy, dx, dw, db, x, weight, means, rstds, locks, columns, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    gradient = tl.load(dy + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    rstd = tl.load(rstds + row)
    normal = tl.where(inside, (value - tl.load(means + row)) * rstd, 0.0)
    scaled = gradient * tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    along = tl.sum(normal * scaled, 0) / columns
    average = tl.sum(scaled, 0) / columns
    tl.store(dx + row * columns + at, (scaled - (normal * along + average)) * rstd, mask=inside)
    group = row % GROUPS
    lock, used = locks + group, locks + GROUPS + group
    dw_at, db_at = dw + group * columns + at, db + group * columns + at
    dw_part, db_part = gradient * normal, gradient
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(used) == 0:  # the first one of a group: memory holds nothing yet
        tl.atomic_xchg(used, 1)
    else:
        dw_part += tl.load(dw_at, mask=inside)
        db_part += tl.load(db_at, mask=inside)
    tl.store(dw_at, dw_part, mask=inside)
    tl.store(db_at, db_part, mask=inside)
    tl.debug_barrier()  # every thread of the program has stored before another program may enter
    tl.atomic_xchg(lock, 0)


@triton.jit
def sum_groups_kernel(parts, total, groups, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    sums = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, groups, ROWS):
        group = start + tl.arange(0, ROWS)[:, None]
        sums += tl.load(parts + group * columns + at, mask=(group < groups) & (at < columns), other=0.0)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(total + column, tl.sum(sums, 0), mask=column < columns)


class LayerNorm(torch.autograd.Function):
    """Normalise the last dimension, of contiguous tensors; see layer_norm."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
        """Rows of the last dimension; f32 inside."""
        columns = x.shape[-1]
        rows = x.numel() // columns
        out, (means, rstds) = torch.empty_like(x), torch.empty(2, rows, device=x.device)
        block = min(1024, triton.next_power_of_2(columns))
        forward_kernel[(rows,)](x, out, weight, bias, means, rstds, columns, eps, BLOCK=block)
        ctx.save_for_backward(x, weight, means, rstds)
        return out

    @staticmethod
    def backward(ctx, dy: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, None]:
        """Gradients of x, weight and bias."""
        x, weight, means, rstds = ctx.saved_tensors
        columns, rows, dx = x.shape[-1], means.numel(), torch.empty_like(x)
        groups = min(GROUPS, rows)
        locks = torch.zeros(2 * groups, dtype=torch.int32, device=x.device)  # and whether a group has been used
        parts = torch.empty(2, groups, columns, device=x.device)
        backward_kernel[(rows,)](
            dy.contiguous(), dx, *parts, x, weight, means, rstds, locks, columns,
            GROUPS=groups, BLOCK=triton.next_power_of_2(columns),
        )  # fmt: skip
        dw, db = torch.empty_like(weight), torch.empty_like(weight)
        for part, total in zip(parts, (dw, db), strict=True):
            sum_groups_kernel[(triton.cdiv(columns, 128),)](part, total, groups, columns, ROWS=32, BLOCK=128)
        return dx, dw, db, None


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last dimension; differentiable."""
    return LayerNorm.apply(x, weight, bias, eps)


def main(device: str | None = None) -> None:
    """Compare with PyTorch on a device, by default that of Triton's active driver."""
    on = torch.device(device or triton.runtime.driver.active.get_active_torch_device())
    x, dy = torch.randn(2, 151, 1111, device=on)
    inputs = [tensor.requires_grad_() for tensor in (x, *torch.rand(2, 1111, device=on).unbind())]
    actual, expected = layer_norm(*inputs), torch.nn.functional.layer_norm(x, (1111,), *inputs[1:])
    pairs = [(actual, expected)]
    pairs += zip(torch.autograd.grad(actual, inputs, dy), torch.autograd.grad(expected, inputs, dy), strict=True)
    error = max((ours - theirs).abs().max().item() for ours, theirs in pairs)
    assert error < 1e-4, f"largest difference to PyTorch: {error}"
    print(f"layer_norm on {on}: result and gradients within {error:.1e} of PyTorch")


if __name__ == "__main__":
    main(*sys.argv[1:])
