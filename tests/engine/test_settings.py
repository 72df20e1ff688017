"""Settings are checked when they are made: a wrong value is refused by name, never ignored."""

import pytest

from engine.config import MOST_DRAFT_TOKENS, EngineConfig, SamplingParams, SpeculativeConfig
from engine.errors import EngineError
from triton_spec.tree.arguments import MOST_NODES


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SamplingParams(max_new_tokens=-1), "max_new_tokens is -1; it must be an integer of at least 0"),
        (lambda: SamplingParams(max_new_tokens=2.5), "max_new_tokens is 2.5"),
        (lambda: SamplingParams(max_new_tokens=True), "max_new_tokens is True"),
        (lambda: SamplingParams(stop_token_ids=7), "stop_token_ids is 7; it must be a list"),
        (lambda: SamplingParams(stop_token_ids=None), "stop_token_ids is None; it must be a list"),
        (lambda: SamplingParams(stop_token_ids=(1, -7)), "a stop token id is -7"),
        (lambda: SamplingParams(stop_token_ids=("</s>",)), "a stop token id is '</s>'"),
        (lambda: SamplingParams(ignore_eos=1), "ignore_eos is 1"),
        (lambda: SpeculativeConfig("eagle9"), "'eagle9' is unknown; known: none, ngram"),
        (lambda: SpeculativeConfig("ngram", num_draft_tokens=1), "num_draft_tokens is 1; .* at least 2"),
        (lambda: SpeculativeConfig("ngram", num_draft_tokens=1025), "num_draft_tokens is 1025; .* at most 1024"),
        (lambda: SpeculativeConfig("ngram", ngram_min=0), "ngram_min is 0"),
        (lambda: SpeculativeConfig("ngram", ngram_min=4, ngram_max=3), "ngram_min 4 is above ngram_max 3"),
        (lambda: EngineConfig(dtype="int8"), "dtype 'int8' is not supported; supported: bfloat16, float32"),
        (lambda: EngineConfig(threads=0), "threads is 0"),
        (lambda: EngineConfig(threads=1025), "threads is 1025; it must be at most 1024"),
    ],
)
def test_wrong_values_are_refused(make, message):
    with pytest.raises(EngineError, match=message):
        make()


def test_the_largest_tree_is_that_of_the_ops():
    assert MOST_DRAFT_TOKENS == MOST_NODES


def test_a_setting_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match="temperature"):
        SamplingParams(temperature=0.7)


def test_settings_do_not_change():
    with pytest.raises(AttributeError):
        SamplingParams().max_new_tokens = 3
