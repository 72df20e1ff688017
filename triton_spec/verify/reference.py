"""What the verify ops mean, in plain PyTorch. The docstrings of the launchers beside this file say the rest."""

from __future__ import annotations

import torch

from triton_spec.verify.arguments import require_verify_greedy_arguments


def verify_tree_greedy(
    predicts: torch.Tensor,
    accept_index: torch.Tensor,
    accept_token_num: torch.Tensor,
    candidates: torch.Tensor,
    retrieve_index: torch.Tensor,
    retrieve_next_token: torch.Tensor,
    retrieve_next_sibling: torch.Tensor,
    target_predict: torch.Tensor,
) -> None:
    """Walk each tree from its root, on to the first child whose token is the target's prediction, written in place."""
    require_verify_greedy_arguments(
        predicts, accept_index, accept_token_num, candidates, retrieve_index, retrieve_next_token,
        retrieve_next_sibling, target_predict)  # fmt: skip
    levels = accept_index.shape[1] - 1
    for request in range(candidates.shape[0]):
        tokens, wanted = candidates[request].tolist(), target_predict[request].tolist()
        first_child, sibling = retrieve_next_token[request].tolist(), retrieve_next_sibling[request].tolist()
        path = [0]
        while len(path) <= levels:
            children = _chain(first_child[path[-1]], sibling)
            matching = [child for child in children if tokens[child] == wanted[path[-1]]]
            if not matching:
                break
            path.append(matching[0])
        flat = retrieve_index[request, path].long()
        accept_index[request, : len(path)] = flat.to(accept_index.dtype)
        accept_token_num[request] = len(path) - 1
        for place, node in zip(flat.tolist(), path, strict=True):
            if 0 <= place < len(predicts):
                predicts[place] = wanted[node]


def _chain(first: int, sibling: list[int]) -> list[int]:
    """The nodes from ``first`` along the sibling links, to a link that is no child's number or leads back."""
    chain = []
    while 0 < first < len(sibling) and first not in chain:
        chain.append(first)
        first = sibling[first]
    return chain
