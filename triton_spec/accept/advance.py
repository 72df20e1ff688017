"""The last token of each accepted run: the bonus token, root of the next round's tree."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_spec.accept.arguments import require_bonus_arguments

BLOCK = 64  # requests per program


@triton.jit(do_not_specialize=["batch", "stride"])
def fill_bonus_tokens_kernel(accept_tokens, accept_lens, bonus_tokens, batch, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    length = tl.load(accept_lens + row, mask=row < batch, other=0).to(tl.int64)
    known = (length >= 1) & (length <= stride)
    token = tl.load(accept_tokens + row * stride + length - 1, mask=known, other=0)
    tl.store(bonus_tokens + row, token.to(bonus_tokens.dtype.element_ty), mask=known)


def fill_bonus_tokens(
    accept_tokens: torch.Tensor, accept_lens: torch.Tensor, bonus_tokens: torch.Tensor, stride: int
) -> None:
    """``bonus_tokens[r]`` = token ``accept_lens[r] - 1`` of row r of ``accept_tokens``, in place.

    accept_tokens [b * stride]: the new tokens of each request, padded to ``stride``, the width of accept_index (not the
    number of nodes); accept_lens [b]: how many they are, the bonus token included; bonus_tokens [b]. All int32 or
    int64, contiguous. A length outside 1..stride leaves its request's bonus token as it is.
    Raises ValueError or TypeError for other shapes, dtypes, devices or strides.
    """
    require_bonus_arguments(accept_tokens, accept_lens, bonus_tokens, stride)
    batch = accept_lens.shape[0]
    if batch:
        grid = (triton.cdiv(batch, BLOCK),)
        fill_bonus_tokens_kernel[grid](accept_tokens, accept_lens, bonus_tokens, batch, stride, BLOCK=BLOCK)
