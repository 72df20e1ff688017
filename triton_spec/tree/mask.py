"""How the attention mask of a batch of draft trees is stored."""

from __future__ import annotations

from enum import IntEnum

import torch

WORD_DTYPES = {8: torch.uint8, 16: torch.uint16, 32: torch.uint32}  # most nodes -> dtype of a packed row


class TreeMaskMode(IntEnum):
    """Layout of a tree mask of b requests with n nodes each. Cell (i, k): node i sees node k.

    FULL_MASK: bool, for each request a dense [n, seq_len + n] block, one after the other; the prefix columns are the
    caller's. QLEN_ONLY: bool [b, n, n]. QLEN_ONLY_BITPACKING: a word per node [b, n], bit k is column k; uint8 for
    n <= 8, uint16 for n <= 16, uint32 for n <= 32.
    """

    FULL_MASK = 0
    QLEN_ONLY = 1
    QLEN_ONLY_BITPACKING = 2


def word_dtype(nodes: int) -> torch.dtype:
    """The dtype of a packed row of ``nodes`` bits. Raises ValueError for more than 32."""
    for most, dtype in WORD_DTYPES.items():
        if nodes <= most:
            return dtype
    raise ValueError(f"a packed mask row has at most 32 nodes, not {nodes}: use TreeMaskMode.QLEN_ONLY")


def new_tree_mask(mode: TreeMaskMode, seq_lens: torch.Tensor, nodes: int) -> torch.Tensor:
    """A mask buffer as ``build_tree_kernel_efficient`` expects it: flat, all True, or zero words.

    seq_lens: [b], the committed tokens of each request; nodes: n.
    """
    batch = seq_lens.shape[0]
    if mode == TreeMaskMode.QLEN_ONLY_BITPACKING:
        return torch.zeros(batch * nodes, dtype=word_dtype(nodes), device=seq_lens.device)
    prefixes = int(seq_lens.sum()) if mode == TreeMaskMode.FULL_MASK else 0
    return torch.ones(nodes * prefixes + batch * nodes * nodes, dtype=torch.bool, device=seq_lens.device)
