"""fill_bonus_tokens: the last token of each accepted run."""

from __future__ import annotations

import pytest
import torch

from tests.triton_spec.floating import load_op

KEPT = -9


@pytest.fixture
def op(form):
    return load_op(form, "triton_spec.accept.advance", "fill_bonus_tokens")


@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=["int32", "int64"])
def test_the_stride_is_the_width_of_a_run(op, index):
    bonus = torch.empty(4, dtype=torch.int32)
    op(torch.arange(100, 116, dtype=index), torch.tensor([1, 4, 2, 3], dtype=index), bonus, 4)
    assert bonus.tolist() == [100, 107, 109, 114]


@pytest.mark.parametrize("batch", [1, 63, 64, 65, 130])
@pytest.mark.parametrize("stride", [1, 3, 16])
def test_sizes(op, batch, stride):
    tokens = torch.randint(0, 2**31 - 1, (batch, stride), dtype=torch.int32)
    lengths = torch.randint(1, stride + 1, (batch,), dtype=torch.int32)
    bonus = torch.empty(batch, dtype=torch.int64)
    op(tokens.flatten(), lengths, bonus, stride)
    assert bonus.tolist() == [row[length - 1] for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)]


def test_a_run_of_no_tokens_has_no_last_one(op):
    bonus = torch.full((4,), KEPT, dtype=torch.int32)
    op(torch.arange(8, dtype=torch.int32), torch.tensor([0, 3, 2, -1], dtype=torch.int32), bonus, 2)
    assert bonus.tolist() == [KEPT, KEPT, 5, KEPT]


def test_no_requests(op):
    none = torch.empty(0, dtype=torch.int32)
    op(none, none, none, 4)


ERRORS = {
    "stride": ({"stride": 0}, ValueError, "stride is 0"),
    "nodes for stride": ({"stride": 8}, ValueError, r"accept_tokens has shape \[8\], expected \[16\]"),
    "bonus": ({"bonus_tokens": torch.zeros(3, dtype=torch.int32)}, ValueError, "bonus_tokens has shape"),
    "float": ({"accept_lens": torch.ones(2)}, TypeError, "accept_lens has dtype torch.float32"),
    "strided": ({"accept_tokens": torch.zeros(16, dtype=torch.int32)[::2]}, ValueError, "accept_tokens has strides"),
}


@pytest.mark.parametrize(("changes", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_arguments_that_do_not_fit(op, changes, error, message):
    fitting = {"accept_tokens": torch.zeros(8, dtype=torch.int32), "accept_lens": torch.ones(2, dtype=torch.int32),
               "bonus_tokens": torch.zeros(2, dtype=torch.int32), "stride": 4}  # fmt: skip
    with pytest.raises(error, match=message):
        op(**{**fitting, **changes})
