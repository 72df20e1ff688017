"""Tutorial 6, flash attention: softmax and both products block by block, so that no score is kept in memory."""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def rows_of(pointer, first, N, D: tl.constexpr, BLOCK: tl.constexpr):
    """Rows first, first + 1, ... of [N, D]; zeros past the end."""
    row = first + tl.arange(0, BLOCK)[:, None]
    return tl.load(pointer + row * D + tl.arange(0, D)[None, :], mask=row < N, other=0.0)


@triton.jit
def store_rows(pointer, value, first, N, D: tl.constexpr, BLOCK: tl.constexpr):
    row = first + tl.arange(0, BLOCK)[:, None]
    tl.store(pointer + row * D + tl.arange(0, D)[None, :], value, mask=row < N)


@triton.jit
def visible(m, n, N, CAUSAL: tl.constexpr):
    """Whether query m sees key n."""
    seen = n < N
    if CAUSAL:
        seen &= n <= m
    return seen


@triton.jit
def forward_kernel(
    q, k, v, out, sums, N, scale, CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    head, first = tl.program_id(1).to(tl.int64) * N, tl.program_id(0) * BM
    m = first + tl.arange(0, BM)
    query = rows_of(q + head * D, first, N, D, BM)
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    mix = tl.zeros((BM, D), tl.float32)
    end = min(N, first + BM) if CAUSAL else N
    for start in range(0, end, BN):
        key = rows_of(k + head * D, start, N, D, BN)
        scores = tl.dot(query, tl.trans(key), input_precision="ieee") * (scale * LOG2E)
        seen = visible(m[:, None], start + tl.arange(0, BN)[None, :], N, CAUSAL)
        scores = tl.where(seen, scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))  # finite from the first block on: key 0 is visible to all
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(top - higher)
        total = total * shrink + tl.sum(weights, 1)
        value = rows_of(v + head * D, start, N, D, BN)
        mix = tl.dot(weights.to(value.dtype), value, mix * shrink[:, None], input_precision="ieee")
        top = higher
    store_rows(out + head * D, mix / total[:, None], first, N, D, BM)
    tl.store(sums + head + m, top + tl.log2(total), mask=m < N)  # log2 of the sum of exponentials


@triton.jit
def delta_kernel(out, dout, delta, N, D: tl.constexpr, BM: tl.constexpr):
    head, first = tl.program_id(1).to(tl.int64) * N, tl.program_id(0) * BM
    product = rows_of(out + head * D, first, N, D, BM).to(tl.float32) * rows_of(dout + head * D, first, N, D, BM)
    m = first + tl.arange(0, BM)
    tl.store(delta + head + m, tl.sum(product, 1), mask=m < N)


@triton.jit
def weights_and_gradient(query, key, value, dout, sums, delta, m, n, N, scale, CAUSAL: tl.constexpr):
    """Of a block of scores [BM, BN]: the softmax, and the gradient of the scaled scores."""
    scores = tl.dot(query, tl.trans(key), input_precision="ieee") * (scale * LOG2E)
    total = tl.load(sums + m, mask=m < N, other=0.0)
    seen = visible(m[:, None], n[None, :], N, CAUSAL) & (m[:, None] < N)
    weights = tl.where(seen, tl.exp2(scores - total[:, None]), 0.0)
    dweights = tl.dot(dout, tl.trans(value), input_precision="ieee")
    return weights, weights * (dweights - tl.load(delta + m, mask=m < N, other=0.0)[:, None])


@triton.jit
def key_value_kernel(
    q, k, v, dout, sums, delta, dk, dv, N, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    head, first = tl.program_id(1).to(tl.int64) * N, tl.program_id(0) * BN
    n = first + tl.arange(0, BN)
    key, value = rows_of(k + head * D, first, N, D, BN), rows_of(v + head * D, first, N, D, BN)
    dkey, dvalue = tl.zeros((BN, D), tl.float32), tl.zeros((BN, D), tl.float32)
    for start in range(first // BM * BM if CAUSAL else 0, N, BM):
        m = start + tl.arange(0, BM)
        query, grad = rows_of(q + head * D, start, N, D, BM), rows_of(dout + head * D, start, N, D, BM)
        weights, dscores = weights_and_gradient(
            query, key, value, grad, sums + head, delta + head, m, n, N, scale, CAUSAL
        )
        dvalue = tl.dot(tl.trans(weights.to(grad.dtype)), grad, dvalue, input_precision="ieee")
        dkey = tl.dot(tl.trans(dscores.to(query.dtype)), query, dkey, input_precision="ieee")
    store_rows(dk + head * D, dkey * scale, first, N, D, BN)
    store_rows(dv + head * D, dvalue, first, N, D, BN)


@triton.jit
def query_kernel(
    q, k, v, dout, sums, delta, dq, N, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    head, first = tl.program_id(1).to(tl.int64) * N, tl.program_id(0) * BM
    m = first + tl.arange(0, BM)
    query, grad = rows_of(q + head * D, first, N, D, BM), rows_of(dout + head * D, first, N, D, BM)
    dquery = tl.zeros((BM, D), tl.float32)
    for start in range(0, min(N, first + BM) if CAUSAL else N, BN):
        n = start + tl.arange(0, BN)
        key, value = rows_of(k + head * D, start, N, D, BN), rows_of(v + head * D, start, N, D, BN)
        _, dscores = weights_and_gradient(query, key, value, grad, sums + head, delta + head, m, n, N, scale, CAUSAL)
        dquery = tl.dot(dscores.to(key.dtype), key, dquery, input_precision="ieee")
    store_rows(dq + head * D, dquery * scale, first, N, D, BM)


class Attention(torch.autograd.Function):
    """See attention."""

    @staticmethod
    def forward(ctx, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float) -> torch.Tensor:
        """Contiguous [batch, heads, tokens, width]; width a power of two from 16 on."""
        batch, heads, N, D = q.shape
        out, sums = torch.empty_like(q), torch.empty(batch, heads, N, device=q.device)
        grid, blocks = (triton.cdiv(N, 64), batch * heads), {"CAUSAL": causal, "D": D, "BM": 64, "BN": 64}
        forward_kernel[grid](q, k, v, out, sums, N, scale, **blocks)
        ctx.save_for_backward(q, k, v, out, sums)
        ctx.grid, ctx.blocks, ctx.scale = grid, blocks, scale
        return out

    @staticmethod
    def backward(ctx, dout: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of q, k and v."""
        q, k, v, out, sums = ctx.saved_tensors
        dout, delta, N, D = dout.contiguous(), torch.empty_like(sums), q.shape[2], q.shape[3]
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        delta_kernel[ctx.grid](out, dout, delta, N, D=D, BM=64)
        key_value_kernel[ctx.grid](q, k, v, dout, sums, delta, dk, dv, N, ctx.scale, **ctx.blocks)
        query_kernel[ctx.grid](q, k, v, dout, sums, delta, dq, N, ctx.scale, **ctx.blocks)
        return dq, dk, dv, None, None


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False) -> torch.Tensor:
    """softmax(q k^T / sqrt(width)) v over [batch, heads, tokens, width]; differentiable."""
    return Attention.apply(q.contiguous(), k.contiguous(), v.contiguous(), causal, q.shape[-1] ** -0.5)


def main(device: str | None = None) -> None:
    """Compare with PyTorch on a device, by default that of Triton's active driver."""
    on = torch.device(device or triton.runtime.driver.active.get_active_torch_device())
    inputs = [tensor.requires_grad_() for tensor in torch.randn(3, 1, 4, 333, 64, device=on).unbind()]
    actual = attention(*inputs, causal=True)
    expected = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True)
    dout = torch.randn_like(actual)
    pairs = [(actual, expected)]
    pairs += zip(torch.autograd.grad(actual, inputs, dout), torch.autograd.grad(expected, inputs, dout), strict=True)
    error = max((ours - theirs).abs().max().item() for ours, theirs in pairs)
    assert error < 1e-4, f"largest difference to PyTorch: {error}"
    print(f"flash_attention on {on}: result and gradients within {error:.1e} of PyTorch")


if __name__ == "__main__":
    main(*sys.argv[1:])
