"""One prompt being answered: its tokens, its limits, and how it ends."""

from collections.abc import Iterable, Sequence

from engine.config import SamplingParams
from engine.draft.base import Draft
from engine.errors import PromptError
from engine.kv.table import Row
from engine.stats import RequestStats


def token_budget(prompt_length: int, context_length: int, params: SamplingParams) -> int:
    """Tokens an answer may have: what was asked for, as far as the context reaches.

    Raises PromptError if the prompt is empty or leaves no position for an answer.
    """
    if not prompt_length:
        raise PromptError("the prompt is empty")
    if prompt_length >= context_length:
        raise PromptError(f"the prompt has {prompt_length} tokens; the context of {context_length} leaves no answer")
    return min(params.max_new_tokens, context_length - prompt_length)


class Request:
    """A prompt, the tokens emitted so far, and where its KV and its drafting state are.

    root: the last emitted token, whose KV is not in the pool yet. finish_reason: None while it runs, then "stop" (a
    stop token) or "length" (the budget is used up).
    """

    def __init__(self, prompt_ids: Sequence[int], budget: int, stop_ids: Iterable[int], row: Row, draft: Draft) -> None:
        self.prompt_ids = list(prompt_ids)
        self.budget = budget
        self.stop_ids = frozenset(stop_ids)
        self.row = row
        self.draft = draft
        self.root = -1
        self.token_ids: list[int] = []
        self.finish_reason: str | None = None if budget else "length"
        self.stats = RequestStats()

    @property
    def remaining(self) -> int:
        """Tokens that may still be emitted."""
        return self.budget - len(self.token_ids)

    def receive(self, run: Sequence[int]) -> list[int]:
        """Append verified tokens up to the first stop token or the end of the budget; returns those appended.

        A stop token within the budget wins over the budget's end.
        """
        kept: list[int] = []
        for token in run[: self.remaining]:
            kept.append(token)
            if token in self.stop_ids:
                self.finish_reason = "stop"
                break
        self.token_ids += kept
        if self.finish_reason is None and self.remaining == 0:
            self.finish_reason = "length"
        return kept
