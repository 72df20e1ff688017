"""Whole answers: speculation changes no token, limits are exact, and every slot comes back."""

import random

import pytest
import torch

from engine.config import SamplingParams, SpeculativeConfig
from engine.errors import ModelError, PromptError
from tests.engine.decoding import VOCAB, OracleDrafter, Rig, attentive, continuation, rambling

NGRAM = SpeculativeConfig("ngram")


@pytest.mark.parametrize("next_token", [rambling, attentive])
@pytest.mark.parametrize("nodes", [2, 4, 7, 16])
@pytest.mark.parametrize("algorithm", ["none", "ngram"])
def test_every_algorithm_gives_the_plain_answer(algorithm, nodes, next_token):
    rig = Rig(SpeculativeConfig(algorithm, nodes), next_token, nodes, context_length=200)
    request = rig.answer([5, 6, 7, 8, 5, 6, 7], SamplingParams(max_new_tokens=100))
    assert request.token_ids == continuation(next_token, request.prompt_ids, 100)
    assert request.finish_reason == "length"
    assert rig.slots.free_count == rig.slots.total


@pytest.mark.parametrize("nodes", [2, 5, 8])
@pytest.mark.parametrize("seed", range(8))
def test_random_trees_give_the_plain_answer(seed, nodes):
    rig = Rig(OracleDrafter(attentive, nodes, seed), attentive, nodes)
    request = rig.answer([3, 1, 4], SamplingParams(max_new_tokens=40))
    assert request.token_ids == continuation(attentive, [3, 1, 4], 40)
    assert request.stats.metrics().accept_length > 1


def test_repetition_is_accepted():
    rig = Rig(NGRAM, next_token=lambda tokens: tokens[-3])
    metrics = rig.answer([1, 2, 3, 1, 2, 3], SamplingParams(max_new_tokens=41)).stats.metrics()
    assert metrics.accept_length >= 3
    assert metrics.verify_rounds == len(rig.model.rows_run) - 1


def test_a_round_without_a_draft_is_a_plain_step():
    rig = Rig(NGRAM, next_token=lambda tokens: tokens[-1] + 1)
    request = rig.answer([1, 2, 3], SamplingParams(max_new_tokens=5))
    assert rig.model.rows_run == [3, 1, 1, 1, 1]
    assert request.stats.metrics().accept_length == 1.0


def test_a_long_prompt_runs_in_pieces(monkeypatch):
    monkeypatch.setattr("engine.step.PREFILL_ROWS", 5)
    rig = Rig(next_token=attentive)
    prompt = list(range(13))
    assert rig.answer(prompt, SamplingParams(max_new_tokens=6)).token_ids == continuation(attentive, prompt, 6)
    assert rig.model.rows_run[:4] == [5, 5, 3, 1]


@pytest.mark.parametrize("nodes", [2, 4, 7])
@pytest.mark.parametrize("drafter", ["none", "ngram", "oracle"])
def test_a_stop_token_inside_a_run_cuts_there(drafter, nodes):
    prompt = [5, 6, 7, 8, 5, 6, 7]
    plain = continuation(attentive, prompt, 12)
    assert plain[4] not in plain[:4]
    made = OracleDrafter(attentive, nodes, 1) if drafter == "oracle" else SpeculativeConfig(drafter, nodes)
    rig = Rig(made, attentive, nodes)
    unused = next(token for token in range(VOCAB) if token not in plain)
    request = rig.answer(prompt, SamplingParams(max_new_tokens=12), eos_ids=(unused, plain[4]))
    assert (request.token_ids, request.finish_reason) == (plain[:5], "stop")
    stopped = rig.answer(prompt, SamplingParams(max_new_tokens=12, stop_token_ids=(plain[4],)))
    assert (stopped.token_ids, stopped.finish_reason) == (plain[:5], "stop")
    ignoring = rig.answer(prompt, SamplingParams(max_new_tokens=12, ignore_eos=True), eos_ids=(plain[4],))
    assert (ignoring.token_ids, ignoring.finish_reason) == (plain, "length")
    assert rig.slots.free_count == rig.slots.total


@pytest.mark.parametrize("cap", [0, 1, 2, 3])
def test_the_cap_is_exact(cap):
    rig = Rig(SpeculativeConfig("ngram", 4), num_draft_tokens=4, next_token=lambda tokens: tokens[-4])
    request = rig.answer([5, 6, 7, 8, 5, 6, 7], SamplingParams(max_new_tokens=cap))
    assert request.token_ids == [8, 5, 6][:cap]
    assert request.finish_reason == "length"
    assert rig.slots.free_count == rig.slots.total


@pytest.mark.parametrize("length", [30, 60, 62, 63])
@pytest.mark.parametrize("drafter", ["none", "ngram", "oracle"])
def test_the_context_is_never_passed(drafter, length):
    prompt = [place % 4 for place in range(length)]
    made = OracleDrafter(attentive, 5, 1) if drafter == "oracle" else SpeculativeConfig(drafter, 5)
    rig = Rig(made, attentive, 5, context_length=64)  # the model checks positions
    request = rig.answer(prompt, SamplingParams(max_new_tokens=1000))
    assert request.token_ids == continuation(attentive, prompt, 64 - length)
    assert request.finish_reason == "length"


@pytest.mark.parametrize("length", [0, 64, 65])
def test_prompts_that_do_not_fit_are_refused(length):
    rig = Rig(context_length=64)
    with pytest.raises(PromptError):
        rig.answer([1] * length, SamplingParams())
    assert rig.answer([1], SamplingParams(max_new_tokens=1)).token_ids == [rambling([1])]


def test_other_slots_are_not_written():
    rig = Rig(OracleDrafter(attentive, 5, 3), attentive, 5, requests=2, slots=2 * 69)
    held = rig.slots.allocate(69)
    pattern = torch.arange(69.0)[:, None, None].expand(69, 1, 2)
    for buffer in (*rig.pool.keys, *rig.pool.values):
        buffer[held] = pattern
    rig.answer([1] * 62, SamplingParams(max_new_tokens=1000))
    rig.answer([1, 2, 3], SamplingParams(max_new_tokens=1000))
    assert all(torch.equal(buffer[held], pattern) for buffer in (*rig.pool.keys, *rig.pool.values))


def test_requests_in_one_batch_get_their_own_answers():
    rig = Rig(OracleDrafter(attentive, 6, 7), attentive, 6, requests=3)
    prompts = [[1, 2, 3], [9] * 20, [4]]
    requests = [
        rig.decoder.open(prompt, SamplingParams(max_new_tokens=cap), ())
        for prompt, cap in zip(prompts, (30, 7, 18), strict=True)
    ]
    for request in requests:
        rig.decoder.prefill(request)
    while running := [request for request in requests if request.finish_reason is None]:
        rig.decoder.round(running)
    for request, prompt in zip(requests, prompts, strict=True):
        assert request.token_ids == continuation(attentive, prompt, request.budget)
        rig.decoder.close(request)
    assert rig.slots.free_count == rig.slots.total


class Cancelled(Exception):
    """Raised between draft and verification."""


def test_no_history_of_requests_loses_a_slot():
    generator = random.Random(5)
    rig = Rig(OracleDrafter(attentive, 5, 11), attentive, 5, context_length=27, slots=32)
    forward = rig.model.forward
    for number in range(200):
        prompt = [generator.randrange(VOCAB) for _ in range(5)]
        plain = continuation(attentive, prompt, 16)
        ending = ("stop", "length", "cancel")[number % 3]
        calls = generator.randint(1, 4)

        def cancelling(*arguments, calls=calls, **named):
            cancelling.left = getattr(cancelling, "left", calls) - 1
            if cancelling.left == 0:
                raise Cancelled
            return forward(*arguments, **named)

        rig.model.forward = cancelling if ending == "cancel" else forward
        eos = (plain[generator.randint(0, 15)],) if ending == "stop" else ()
        params = SamplingParams(max_new_tokens=generator.randint(1, 16) if ending == "length" else 16)
        try:
            request = rig.answer(prompt, params, eos)
        except Cancelled:
            assert ending == "cancel"
        else:
            end = plain.index(eos[0]) + 1 if eos else params.max_new_tokens
            assert request.token_ids == plain[:end]
        assert rig.slots.free_count == 32
        assert sorted(rig.slots._free) == list(range(32))


def test_a_drafter_that_fails_keeps_no_row():
    class Broken:
        def open(self):
            raise Cancelled

    rig = Rig(next_token=rambling)
    drafter, rig.decoder._drafter = rig.decoder._drafter, Broken()
    with pytest.raises(Cancelled):
        rig.answer([1, 2], SamplingParams())
    rig.decoder._drafter = drafter
    assert rig.answer([1, 2], SamplingParams(max_new_tokens=3)).token_ids == continuation(rambling, [1, 2], 3)


def test_nan_logits_end_the_request_and_not_the_engine():
    rig = Rig(next_token=rambling)
    forward = rig.model.forward
    rig.model.forward = lambda *arguments: forward(*arguments) * float("nan")
    with pytest.raises(ModelError, match="NaN logits"):
        rig.answer([1, 2], SamplingParams())
    rig.model.forward = forward
    assert rig.answer([1, 2], SamplingParams(max_new_tokens=3)).token_ids == continuation(rambling, [1, 2], 3)
    assert rig.slots.free_count == rig.slots.total
