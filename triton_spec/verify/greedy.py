"""Greedy verification: how far a draft tree agrees with the target model's most likely tokens."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_spec.verify.arguments import require_verify_greedy_arguments


@triton.jit(do_not_specialize=["total", "nodes", "width"])
def verify_tree_greedy_kernel(
    predicts, accept_index, accept_token_num, candidates, retrieve_index, retrieve_next_token, retrieve_next_sibling,
    target_predict, total, nodes, width,
):  # fmt: skip
    """One program: a request. Links outside 1..nodes-1 end a chain, and so does its nodes-th hop."""
    request = tl.program_id(0).to(tl.int64)
    row = request * nodes
    accepted = accept_index + request * width
    place = tl.load(retrieve_index + row).to(tl.int64)
    wanted = tl.load(target_predict + row).to(tl.int64)
    tl.store(accepted, place.to(accept_index.dtype.element_ty))
    child = tl.load(retrieve_next_token + row).to(tl.int64)
    count = 0
    hops = 0
    while (child > 0) & (child < nodes) & (hops < nodes) & (count < width - 1):
        token = tl.load(candidates + row + child).to(tl.int64)
        if token == wanted:
            tl.store(predicts + place, wanted.to(predicts.dtype.element_ty), mask=(place >= 0) & (place < total))
            count += 1
            hops = 0
            place = tl.load(retrieve_index + row + child).to(tl.int64)
            wanted = tl.load(target_predict + row + child).to(tl.int64)
            tl.store(accepted + count, place.to(accept_index.dtype.element_ty))
            child = tl.load(retrieve_next_token + row + child).to(tl.int64)
        else:
            hops += 1
            child = tl.load(retrieve_next_sibling + row + child).to(tl.int64)
    tl.store(predicts + place, wanted.to(predicts.dtype.element_ty), mask=(place >= 0) & (place < total))
    tl.store(accept_token_num + request, count.to(accept_token_num.dtype.element_ty))


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
    """Walk each tree from its root to the first child, in link order, whose token the target predicts, and so on.

    candidates [b, n]: tokens of the nodes, the root first; target_predict [b, n]: the target's most likely token after
    each node; retrieve_index, retrieve_next_token, retrieve_next_sibling [b, n]: as ``build_tree_kernel_efficient``
    writes them. In place: accept_index [b, W]: retrieve_index of the nodes that were walked, at most W, the root first;
    the rest keeps the caller's -1. accept_token_num [b]: how many there are without the root. predicts [b * n]: the
    target's token at each of them, the last being the bonus token; the rest keeps the caller's fill.
    All are int32 or int64, contiguous. A link outside 1..n-1 or back into its chain ends the chain.
    Raises ValueError or TypeError for arguments that do not fit.
    """
    require_verify_greedy_arguments(
        predicts, accept_index, accept_token_num, candidates, retrieve_index, retrieve_next_token,
        retrieve_next_sibling, target_predict)  # fmt: skip
    batch, nodes = candidates.shape
    if batch == 0:
        return
    verify_tree_greedy_kernel[(batch,)](
        predicts, accept_index, accept_token_num, candidates, retrieve_index, retrieve_next_token,
        retrieve_next_sibling, target_predict, batch * nodes, nodes, accept_index.shape[1])  # fmt: skip
