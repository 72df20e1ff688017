"""Argument checks of the verify ops, shared by their references and their launchers."""

from __future__ import annotations

import torch

from triton_spec.checks import require_indices, require_same_device


def require_verify_greedy_arguments(
    predicts: torch.Tensor,
    accept_index: torch.Tensor,
    accept_token_num: torch.Tensor,
    candidates: torch.Tensor,
    retrieve_index: torch.Tensor,
    retrieve_next_token: torch.Tensor,
    retrieve_next_sibling: torch.Tensor,
    target_predict: torch.Tensor,
) -> None:
    """Raise ValueError or TypeError unless predicts is [b * n], accept_index [b, W], and so on for indices."""
    require_indices("candidates", candidates, (None, None))
    batch, nodes = candidates.shape
    require_indices("predicts", predicts, (batch * nodes,))
    require_indices("accept_index", accept_index, (batch, None))
    require_indices("accept_token_num", accept_token_num, (batch,))
    if batch and (nodes == 0 or accept_index.shape[1] == 0):
        raise ValueError(
            f"candidates has {nodes} columns and accept_index {accept_index.shape[1]}, expected at least 1: the root"
        )
    require_indices("retrieve_index", retrieve_index, (batch, nodes))
    require_indices("retrieve_next_token", retrieve_next_token, (batch, nodes))
    require_indices("retrieve_next_sibling", retrieve_next_sibling, (batch, nodes))
    require_indices("target_predict", target_predict, (batch, nodes))
    require_same_device(
        predicts=predicts,
        accept_index=accept_index,
        accept_token_num=accept_token_num,
        candidates=candidates,
        retrieve_index=retrieve_index,
        retrieve_next_token=retrieve_next_token,
        retrieve_next_sibling=retrieve_next_sibling,
        target_predict=target_predict,
    )
