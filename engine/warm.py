"""Run every kernel in the shapes that decoding uses, so that no answer waits for a compilation."""

from collections.abc import Callable, Sequence

import torch

from dispatch.plan import Plan
from engine.accept import move_to_front
from engine.config import SamplingParams
from engine.draft.base import DraftTree
from engine.kv.pool import KVPool
from engine.progress import StageProgress
from engine.records import Verified
from engine.step import Decoder

WARM_LAYERS = 2  # of the model that is run: layers after the first also add to the residual stream
PROMPT_LENGTHS = (33, 64)  # prompts of a whole number of row tiles have kernels of their own
PLAIN, STAR = DraftTree(), DraftTree((0,), (0,))


class FixedDraft:
    """Drafts the same tree whatever the tokens are."""

    def __init__(self, tree: DraftTree) -> None:
        self._tree = tree

    def extend(self, token_ids: Sequence[int]) -> None:
        """Tokens are of no use here."""

    def propose(self, max_depth: int) -> DraftTree:
        """The tree."""
        return self._tree


def warm_up(decoder: Decoder, plan: Plan, pool: KVPool, tree_nodes: int, progress: StageProgress | None = None) -> None:
    """Run prompts, a plain round and, if trees have more than one node, a tree's round and the move of its KV.

    tree_nodes: nodes of the trees that will be verified, 1 for plain decoding. The KV pool must be free; `progress` is
    told after each run.
    """
    lengths = [length for length in PROMPT_LENGTHS if length + 2 < decoder.context_length] or [1]
    runs: list[Callable[[], None]] = [_answer_of(decoder, length, PLAIN) for length in lengths]
    if tree_nodes > 1:
        runs.append(_answer_of(decoder, lengths[0], STAR))
    if tree_nodes > 2:  # of two nodes each accepted one is in its place
        runs.append(_move_of(plan, pool, tree_nodes))
    for done, run in enumerate(runs):
        if progress is not None:
            progress(done, len(runs))
        run()
    if progress is not None:
        progress(len(runs), len(runs))


def _answer_of(decoder: Decoder, length: int, tree: DraftTree) -> Callable[[], None]:
    """A prompt of `length` tokens and one round with the tree."""

    def run() -> None:
        request = decoder.open([0] * length, SamplingParams(max_new_tokens=2), ())
        request.draft = FixedDraft(tree)
        try:
            decoder.prefill(request)
            decoder.round([request])
        finally:
            decoder.close(request)

    return run


def _move_of(plan: Plan, pool: KVPool, nodes: int) -> Callable[[], None]:
    """The move of one accepted draft that is not in its place."""

    def run() -> None:
        accept_index = torch.tensor([[0, 2] + [-1] * (nodes - 2)], dtype=torch.int32)
        verified = Verified(torch.zeros(nodes, dtype=torch.int32), accept_index, torch.tensor([2], dtype=torch.int32))
        move_to_front(plan, verified, torch.arange(nodes), pool)

    return run
