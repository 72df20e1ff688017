"""tl.dot on AMX tiles, emulated: every shape, layout and dtype that tiles multiply, and ops made of them."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_close, assert_equal
from triton_spec.attention.decode import decode_attention
from triton_spec.attention.extend import extend_attention
from triton_spec.layers import reference
from triton_spec.layers.linear import linear


@triton.jit
def product_kernel(a, b, c, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ALONG_K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    if ALONG_K:
        right = tl.trans(tl.load(b + n[:, None] * K + k[None, :]))
    else:
        right = tl.load(b + k[:, None] * N + n[None, :])
    places = m[:, None] * N + n[None, :]
    total = tl.dot(left, right, tl.load(c + places), out_dtype=c.dtype.element_ty)
    tl.store(out + places, total)


SHAPES = [(1, 1, 1), (1, 16, 32), (16, 16, 32), (2, 4, 8), (16, 64, 64), (32, 16, 128), (64, 64, 32), (1, 128, 256),
          (48 - 16, 8, 2), (4, 32, 4), (128, 1, 64)]  # fmt: skip


def operands(m: int, n: int, k: int, dtype: torch.dtype, along_k: bool) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(m * 10007 + n * 101 + k)
    if dtype == torch.int8:
        a, b, c = (torch.randint(-128, 128, size, generator=generator) for size in ((m, k), (k, n), (m, n)))
        return a.to(dtype), (b.T if along_k else b).contiguous().to(dtype), c.to(torch.int32)
    a, b, c = (torch.randn(size, generator=generator) for size in ((m, k), (k, n), (m, n)))
    return a.to(dtype), (b.T if along_k else b).contiguous().to(dtype), c


@pytest.mark.parametrize("along_k", [True, False], ids=["along k", "along n"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8], ids=["bf16", "int8"])
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_product(tile_machine, m, n, k, dtype, along_k):
    a, b, c = operands(m, n, k, dtype, along_k)
    out = torch.empty_like(c)
    product_kernel[(1,)](a, b, c, out, M=m, N=n, K=k, ALONG_K=along_k)
    right = b.T if along_k else b
    depth = 64 if dtype == torch.int8 else 32
    assert tile_machine.executed == -(-m // 16) * -(-n // 16) * -(-k // depth)
    if dtype == torch.int8:
        assert_equal(out, (c.long() + a.long() @ right.long()).int())
    else:
        assert_close(out, (c.double() + a.double() @ right.double()).float(), "linear f32")


def test_the_bits_of_a_row_do_not_depend_on_the_others(tile_machine):
    x, weight = torch.randn(37, 96).bfloat16(), torch.randn(40, 96).bfloat16()
    whole = linear(x, weight)
    assert tile_machine.executed > 0
    for rows in (range(1), range(5, 7), range(20, 37)):
        assert_equal(linear(x[rows], weight), whole[rows])


@pytest.mark.parametrize("rows", [1, 3, 16, 33])
def test_linear(tile_machine, rows):
    x, weight, bias = torch.randn(rows, 80).bfloat16(), torch.randn(50, 80).bfloat16(), torch.randn(50)
    assert_close(linear(x, weight, bias), reference.linear(x, weight, bias), "linear bf16")
    assert tile_machine.executed > 0


def test_a_tree_node_is_decoding_of_its_path(tile_machine):
    """The contract of bits, on tiles: verification of a chain equals decoding it token by token."""
    prefix, nodes, heads, dim = 45, 3, 6, 32
    q = torch.randn(nodes, heads, dim).bfloat16()
    keys, values = torch.randn(2, 64, 2, dim).bfloat16()
    table = torch.randperm(64)[None].int()
    row, lengths = torch.tensor([0]), torch.tensor([prefix + nodes])
    chain = torch.ones(nodes, nodes, dtype=torch.bool).tril().flatten()
    tree = extend_attention(
        q, keys, values, table, row, lengths, torch.tensor([nodes]), torch.tensor([0]), nodes, 0.2, chain
    )
    for node in range(nodes):
        alone = decode_attention(q[node : node + 1], keys, values, table, row, torch.tensor([prefix + node + 1]), 0.2)
        assert_equal(tree[node : node + 1], alone)
    assert tile_machine.executed > 0
