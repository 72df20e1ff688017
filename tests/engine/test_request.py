"""How an answer ends inside a run of accepted tokens, and what the figures say."""

import pytest

from engine.config import SamplingParams
from engine.draft.base import DraftTree
from engine.errors import PromptError
from engine.kv.table import Row
from engine.request import Request, token_budget
from engine.stats import RequestStats


class Undrafted:
    """A drafting state that is not asked."""

    def extend(self, token_ids):
        """Nothing."""

    def propose(self, max_depth):
        """Only the root."""
        return DraftTree()


def running(budget=6, out=(), stop_ids=(2, 9)):
    request = Request([5, 6], budget, stop_ids, Row(0), Undrafted())
    assert request.receive(out) == list(out)
    return request


@pytest.mark.parametrize(
    ("run", "kept", "reason"),
    [
        ([301, 2, 302, 303], [301, 2], "stop"),
        ([301, 302, 2], [301, 302], "length"),
        ([301, 2], [301, 2], "stop"),
        ([9], [9], "stop"),
        ([2, 9], [2], "stop"),
        ([301, 302], [301, 302], "length"),
        ([301], [301], None),
    ],
    ids=["stop inside", "stop beyond the cap", "stop at the cap", "another stop id", "two stops", "cap", "goes on"],
)
def test_a_run_is_cut_where_the_answer_ends(run, kept, reason):
    request = running(out=(11, 12, 13, 14))
    assert request.receive(run) == kept
    assert request.token_ids == [11, 12, 13, 14, *kept]
    assert request.finish_reason == reason
    assert request.remaining == 2 - len(kept)


def test_no_budget_gives_no_token():
    request = running(budget=0)
    assert request.finish_reason == "length"
    assert request.receive([301]) == []
    assert request.token_ids == []


def test_without_stop_ids_only_the_budget_ends_it():
    request = running(budget=3, stop_ids=())
    assert request.receive([2, 2, 2, 2]) == [2, 2, 2]
    assert request.finish_reason == "length"


@pytest.mark.parametrize(
    ("prompt", "asked", "budget"), [(30, 20, 20), (62, 20, 2), (63, 20, 1), (1, 100, 63), (10, 0, 0)]
)
def test_the_budget_ends_with_the_context(prompt, asked, budget):
    assert token_budget(prompt, 64, SamplingParams(max_new_tokens=asked)) == budget


@pytest.mark.parametrize("prompt", [64, 65])
def test_a_prompt_without_room_for_an_answer_is_refused(prompt):
    with pytest.raises(PromptError, match=f"the prompt has {prompt} tokens; the context of 64 leaves no answer"):
        token_budget(prompt, 64, SamplingParams())


def test_an_empty_prompt_is_refused():
    with pytest.raises(PromptError, match="the prompt is empty"):
        token_budget(0, 64, SamplingParams())


def test_figures_of_rounds():
    stats = RequestStats()
    stats.prefilled()
    for tokens in (3, 1, 4, 0):
        stats.round_done(tokens)
    metrics = stats.metrics()
    assert metrics.verify_rounds == 4
    assert metrics.accept_length == 2.0
    assert metrics.ttft_s > 0
    assert metrics.decode_tokens_per_s > 0


def test_figures_of_an_answer_without_rounds():
    stats = RequestStats()
    assert (stats.metrics().ttft_s, stats.metrics().accept_length) == (None, None)
    stats.prefilled()
    assert stats.metrics().ttft_s > 0
    assert (stats.metrics().decode_tokens_per_s, stats.metrics().verify_rounds) == (None, 0)
