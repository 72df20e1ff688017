"""Rotary embedding: agreement with the reference and with transformers, positions, strides, bits."""

from __future__ import annotations

import pytest
import torch

from tests.compare import assert_close, assert_equal
from tests.triton_spec.floating import load_op
from triton_spec.layers import reference

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
HEADS = [pytest.param(14, 2, id="gqa14-2"), pytest.param(9, 3, id="gqa9-3"), pytest.param(1, 1, id="gqa1-1")]


@pytest.fixture
def rotary(form):
    return load_op(form, "triton_spec.layers.rotary", "rotary")


def tables(length: int, head_dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin [length, head_dim / 2] of base 10000."""
    frequencies = 10000.0 ** (-torch.arange(head_dim // 2) / (head_dim // 2))
    angles = torch.arange(length)[:, None] * frequencies
    return angles.cos(), angles.sin()


def inputs(rows: int, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """q and k [rows, heads, head_dim]."""
    generator = torch.Generator().manual_seed(rows + head_dim)
    return tuple(torch.randn(rows, count, head_dim, generator=generator).to(dtype) for count in (heads, kv_heads))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("head_dim", [2, 64, 80, 96, 128])
@pytest.mark.parametrize(("heads", "kv_heads"), HEADS)
@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=["int32", "int64"])
def test_agrees_with_reference(rotary, dtype, heads, kv_heads, head_dim, index):
    q, k = inputs(3, heads, kv_heads, head_dim, DTYPES[dtype])
    expected_q, expected_k = q.clone(), k.clone()
    cos, sin = tables(50, head_dim)
    positions = torch.tensor([0, 49, 7], dtype=index)
    rotary(q, k, cos, sin, positions)
    reference.rotary(expected_q, expected_k, cos, sin, positions)
    assert_close(q, expected_q, f"rotary {dtype}")
    assert_close(k, expected_k, f"rotary {dtype}")


def test_agrees_with_transformers(rotary):
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    q, k = inputs(5, 9, 3, 64, torch.float32)
    cos, sin = tables(50, 64)
    positions = torch.tensor([11, 12, 12, 13, 40])
    full_cos, full_sin = (table[positions].repeat(1, 2)[None] for table in (cos, sin))
    expected = apply_rotary_pos_emb(q.transpose(0, 1)[None], k.transpose(0, 1)[None], full_cos, full_sin)
    rotary(q, k, cos, sin, positions)
    for actual, part in zip((q, k), expected, strict=True):
        assert_close(actual, part[0].transpose(0, 1), "rotary f32")


def test_siblings_share_a_position(rotary):
    """A tree in the order root, A, B, C below A stands at positions 10, 11, 11, 12, each as in its plain sequence."""
    q, k = inputs(4, 2, 1, 64, torch.bfloat16)
    q, k = q[:1].repeat(4, 1, 1), k[:1].repeat(4, 1, 1)
    cos, sin = tables(50, 64)
    plain_q, plain_k = q[:3].clone(), k[:3].clone()
    rotary(plain_q, plain_k, cos, sin, torch.tensor([10, 11, 12]))
    rotary(q, k, cos, sin, torch.tensor([10, 11, 11, 12]))
    assert_equal(q, plain_q[[0, 1, 1, 2]])
    assert_equal(k, plain_k[[0, 1, 1, 2]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_of_a_row_do_not_depend_on_its_company(rotary, dtype):
    q, k = inputs(17, 9, 3, 64, DTYPES[dtype])
    cos, sin = tables(50, 64)
    positions = torch.arange(17) * 2
    whole_q, whole_k = q.clone(), k.clone()
    rotary(whole_q, whole_k, cos, sin, positions)
    for row in (0, 5, 16):
        one_q, one_k = q[row : row + 1].clone(), k[row : row + 1].clone()
        rotary(one_q, one_k, cos, sin, positions[row : row + 1])
        assert_equal(one_q, whole_q[row : row + 1])
        assert_equal(one_k, whole_k[row : row + 1])


def test_views_into_a_fused_projection(rotary):
    q, k = inputs(4, 6, 2, 16, torch.float32)
    cos, sin = tables(9, 16)
    positions = torch.tensor([8, 0, 3, 3])
    fused = torch.full((4, 170), 7.0)
    fused[:, 5:101], fused[:, 101:133] = q.flatten(1), k.flatten(1)
    rotary(fused[:, 5:101].view(4, 6, 16), fused[:, 101:133].view(4, 2, 16), cos, sin, positions)
    heads_first = q.transpose(0, 1).contiguous().transpose(0, 1), k.transpose(0, 1).contiguous().transpose(0, 1)
    rotary(*heads_first, cos, sin, positions)
    rotary(q, k, cos, sin, positions)
    assert_equal(fused[:, 5:101].contiguous(), q.flatten(1))
    assert_equal(fused[:, 101:133].contiguous(), k.flatten(1))
    assert fused[:, :5].eq(7).all()
    assert fused[:, 133:].eq(7).all()
    assert_equal(heads_first[0].contiguous(), q)
    assert_equal(heads_first[1].contiguous(), k)


def test_position_outside_the_tables_is_nan(rotary):
    q, k = inputs(4, 2, 1, 16, torch.float32)
    cos, sin = tables(9, 16)
    rotary(q, k, cos, sin, torch.tensor([-1, 8, 9, 2**40]))
    assert q[[0, 2, 3]].isnan().all()
    assert k[[0, 2, 3]].isnan().all()
    assert q[1].isfinite().all()


def test_no_rows(rotary):
    cos, sin = tables(9, 16)
    rotary(torch.empty(0, 2, 16), torch.empty(0, 1, 16), cos, sin, torch.empty(0, dtype=torch.int64))


ERRORS = {
    "odd head": ({"q": torch.zeros(2, 3, 5), "k": torch.zeros(2, 1, 5)}, ValueError, "q has head size 5"),
    "rows": ({"k": torch.zeros(3, 1, 8)}, ValueError, r"k has shape \[3, 1, 8\], expected \[2, any, 8\]"),
    "dtypes": ({"k": torch.zeros(2, 1, 8).half()}, TypeError, "k has dtype torch.float16"),
    "table dtype": ({"cos": torch.zeros(9, 4).half()}, TypeError, "cos has dtype torch.float16"),
    "table width": ({"sin": torch.zeros(9, 8)}, ValueError, r"sin has shape \[9, 8\], expected \[9, 4\]"),
    "table stride": ({"cos": torch.zeros(4, 9).T}, ValueError, "cos has strides"),
    "positions": ({"positions": torch.zeros(3, dtype=torch.int64)}, ValueError, r"positions has shape \[3\]"),
    "float positions": ({"positions": torch.zeros(2)}, TypeError, "positions has dtype torch.float32"),
}


@pytest.mark.parametrize(("changes", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_arguments_that_do_not_fit(rotary, changes, error, message):
    fitting = {"q": torch.zeros(2, 3, 8), "k": torch.zeros(2, 1, 8), "cos": torch.zeros(9, 4), "sin": torch.zeros(9, 4),
                   "positions": torch.zeros(2, dtype=torch.int64)}  # fmt: skip
    with pytest.raises(error, match=message):
        rotary(**{**fitting, **changes})
