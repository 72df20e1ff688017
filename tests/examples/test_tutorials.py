"""The kernels of examples/tutorials against PyTorch in f64, over odd sizes."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from examples.tutorials import (
    dropout,
    extern_functions,
    flash_attention,
    fused_softmax,
    grouped_gemm,
    layer_norm,
    matmul,
    persistent_matmul,
    vector_add,
)  # fmt: skip
from tests import target
from tests.compare import assert_close, assert_equal

NAMES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}
TUTORIALS = sorted(path.stem for path in Path(matmul.__file__).parent.glob("*.py"))
dtypes = pytest.mark.parametrize("name", ["f32", "f16", "bf16"])


def made(*sizes: int, name: str = "f32", seed: int = 0) -> torch.Tensor:
    """Normal random numbers on the device under test."""
    numbers = torch.randn(sizes, generator=torch.Generator().manual_seed(seed))
    return numbers.to(target.device(), NAMES[name])


def leaves(*tensors: torch.Tensor) -> list[torch.Tensor]:
    return [tensor.requires_grad_() for tensor in tensors]


def doubled(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same inputs in f64, for the reference."""
    return leaves(*(tensor.detach().double() for tensor in tensors))


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_main_says_one_line(tutorial, capsys):
    importlib.import_module(f"examples.tutorials.{tutorial}").main(target.device())
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{tutorial} on {target.device()}")


@dtypes
@pytest.mark.parametrize("size", [1, 3, 1000, 1024, 5001])
def test_vector_add(size, name):
    x, y = made(size, name=name), made(size, name=name, seed=1)
    assert_equal(vector_add.add(x, y), x + y)


@dtypes
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (70, 64), (5, 781), (0, 5)], ids=str)
def test_softmax(shape, name):
    x = made(*shape, name=name)
    assert_close(fused_softmax.softmax(x), torch.softmax(x.double(), 1).to(x.dtype), f"softmax {name}")


def test_softmax_of_rows_that_lie_apart():
    x = made(6, 40)[::2, 5:30]
    assert_close(fused_softmax.softmax(x), torch.softmax(x.double(), 1).float(), "softmax f32")
    with pytest.raises(ValueError, match="contiguous"):
        fused_softmax.softmax(x.T)


@dtypes
@pytest.mark.parametrize("shape", [(1, 1, 1), (64, 64, 64), (65, 33, 130), (3, 200, 65), (130, 70, 7)], ids=str)
@pytest.mark.parametrize("transposed", ["neither", "a", "b"])
def test_matmul(shape, transposed, name):
    M, N, K = shape
    a = made(K, M, name=name).T if transposed == "a" else made(M, K, name=name)
    b = made(N, K, name=name, seed=1).T if transposed == "b" else made(K, N, name=name, seed=1)
    assert_close(matmul.matmul(a, b), (a.double() @ b.double()).to(a.dtype), f"linear {name}")


def test_matmul_with_activation_and_tuning():
    a, b = made(70, 50), made(50, 90, seed=1)
    expected = F.leaky_relu(a.double() @ b.double()).float()
    assert_close(matmul.matmul(a, b, matmul.leaky_relu), expected, "linear f32")
    assert_close(matmul.matmul(a, b, matmul.leaky_relu, tune=True), expected, "linear f32")
    with pytest.raises(ValueError, match="do not fit"):
        matmul.matmul(a, a)


@dtypes
@pytest.mark.parametrize("shape", [(1,), (1025,), (7, 333)], ids=str)
def test_masked_dropout(shape, name):
    x, keep = made(*shape, name=name), made(*shape, seed=1) > 0
    # the kernel divides in f32 and rounds once, as PyTorch does by a number
    assert_equal(dropout.masked_dropout(x, keep, 0.25), torch.where(keep, x / 0.75, 0.0))


def test_seeded_dropout_depends_on_seed_and_column_alone():
    x = made(4, 3001)
    seeds = torch.tensor([5, 6, 5, 7], dtype=torch.int32, device=x.device)
    out = dropout.seeded_dropout(x, seeds, 0.5)
    kept = out != 0
    assert_equal(out, torch.where(kept, x / 0.5, 0.0))
    assert_equal(kept[0], kept[2])
    assert not torch.equal(kept[0], kept[1])
    assert_equal(dropout.seeded_dropout(x[1:3], seeds[1:3], 0.5), out[1:3])
    assert_equal(dropout.seeded_dropout(x[:, :100].contiguous(), seeds, 0.5), out[:, :100].contiguous())
    assert_equal(dropout.seeded_dropout(x, seeds, 0.0), x)


def test_seeded_dropout_drops_the_share_asked_for():
    x = torch.ones(16, 4096, device=target.device())
    seeds = torch.arange(16, dtype=torch.int32, device=x.device)
    for p in (0.1, 0.5, 0.9):
        share = (dropout.seeded_dropout(x, seeds, p) == 0).double().mean().item()
        assert abs(share - p) < 5 * (p * (1 - p) / x.numel()) ** 0.5, p  # five standard deviations


@dtypes
@pytest.mark.parametrize("shape", [(1, 5), (3, 7), (70, 128), (2, 5, 1111), (65, 2049)], ids=str)
def test_layer_norm(shape, name):
    n = shape[-1]
    inputs = leaves(made(*shape, name=name), made(n, name=name, seed=1), made(n, name=name, seed=2))
    dy = made(*shape, name=name, seed=3)
    x, weight, bias = wide = doubled(inputs)
    actual, expected = layer_norm.layer_norm(*inputs), F.layer_norm(x, (n,), weight, bias)
    assert_close(actual.detach(), expected.detach().to(dy.dtype), f"layer_norm {name}")
    gradients = zip(torch.autograd.grad(actual, inputs, dy), torch.autograd.grad(expected, wide, dy), strict=True)
    for ours, theirs in gradients:
        assert_close(ours, theirs.to(dy.dtype), f"layer_norm gradient {name}")


@dtypes
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("shape", [(1, 1, 3, 16), (2, 3, 65, 32), (1, 2, 200, 64)], ids=str)
def test_attention(shape, causal, name):
    inputs = leaves(*(made(*shape, name=name, seed=seed) for seed in range(3)))
    dout = made(*shape, name=name, seed=3)
    wide = doubled(inputs)
    actual = flash_attention.attention(*inputs, causal)
    expected = F.scaled_dot_product_attention(*wide, is_causal=causal)
    assert_close(actual.detach(), expected.detach().to(dout.dtype), f"attention {name}")
    gradients = zip(torch.autograd.grad(actual, inputs, dout), torch.autograd.grad(expected, wide, dout), strict=True)
    for ours, theirs in gradients:
        assert_close(ours, theirs.to(dout.dtype), f"attention gradient {name}")


@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize("size", [1, 7, 1024, 3000])
def test_extern_functions(size, name):
    x, y = made(size, name=name), made(size, name=name, seed=1)
    asin, atan2 = extern_functions.asin(x), extern_functions.atan2(y, x)
    assert_close(asin, torch.asin(x.double()).to(x.dtype), f"library_function {name}")
    assert_close(atan2, torch.atan2(y.double(), x.double()).to(x.dtype), f"library_function {name}")


@dtypes
@pytest.mark.parametrize("programs", [1, 3, 50])
def test_grouped_gemm(programs, name):
    shapes = [(1, 1, 1), (130, 70, 33), (64, 64, 64), (3, 200, 100)]
    lefts = [made(M, K, name=name, seed=K) for M, N, K in shapes]
    rights = [made(K, N, name=name, seed=M) for M, N, K in shapes]
    for a, b, c in zip(lefts, rights, grouped_gemm.grouped_gemm(lefts, rights, programs), strict=True):
        assert_close(c, (a.double() @ b.double()).to(a.dtype), f"linear {name}")
    with pytest.raises(ValueError, match="are needed"):
        grouped_gemm.grouped_gemm(lefts, rights[::-1])


@dtypes
@pytest.mark.parametrize("kind", persistent_matmul.KINDS)
@pytest.mark.parametrize("shape", [(64, 64, 64), (1, 8, 8), (130, 72, 200), (65, 200, 8)], ids=str)
def test_persistent_matmul(shape, kind, name):
    M, N, K = shape
    a, b = made(M, K, name=name), made(N, K, name=name, seed=1)
    for programs in (1, 3):
        c = persistent_matmul.matmul(a, b, kind, programs)
        assert_close(c, (a.double() @ b.double().T).to(a.dtype), f"linear {name}")


@dtypes
@pytest.mark.slow
def test_large_products(name):
    a, b = made(1000, 1100, name=name) / 32, made(900, 1100, name=name, seed=1)  # so that results are about 1
    expected = (a.double() @ b.double().T).to(a.dtype)
    assert_close(matmul.matmul(a, b.T), expected, f"linear {name}")
    assert_close(matmul.matmul(a, b.T.contiguous()), expected, f"linear {name}")
    for kind in ("pointers", "made descriptors"):
        assert_close(persistent_matmul.matmul(a, b, kind), expected, f"linear {name}")
