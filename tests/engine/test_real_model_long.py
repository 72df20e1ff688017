"""The embedded model at length: long answers and prompts, other trees, transformers' greedy search (make soak)."""

import pytest
import torch
from transformers import LlamaForCausalLM

from engine import LLM, SamplingParams, SpeculativeConfig
from engine.bench.compare import fixed_prompts

pytestmark = pytest.mark.slow

PARAGRAPH = (
    "The old bridge crosses the river where it bends. Every spring the water rises to the third stone, and every "
    "spring somebody paints a line there with the year. In {year} the line was drawn by {name}, who later kept bees. "
)
NAMES = ("Ada", "Bo", "Chen", "Dina", "Emil", "Fay", "Goran", "Hana")
STORY = "".join(PARAGRAPH.format(year=1900 + 7 * index, name=name) for index, name in enumerate(NAMES * 3))
PROMPTS = {
    "numbers": "Count from 1 to 60, separated by commas.",
    "table": "Write a Markdown table of the first ten elements with symbol, name and atomic number.",
    "json": "Give three fictional users as a JSON list with id, name, email and city.",
    "code": "Write a Python class for a stack with push, pop, peek and len, each with a docstring, then again.",
    "poem": "Write a poem of four stanzas in which every line begins with the word River.",
    "unicode": "Écris trois phrases en français, puis les mêmes en 日本語, avec des emoji 🎉.",
    "rewrite": "Rewrite this text with every sentence unchanged, but with 'bridge' replaced by 'dam': " + PARAGRAPH,
    "long prompt": STORY + "Rewrite the text above, word for word, from its beginning.",
    "longer than one step": STORY * 2 + "Which names occur in this text? List them in order.",
}


@pytest.fixture(scope="module")
def plain():
    """Plain decoding in bf16."""
    return LLM("smollm2")


@pytest.fixture(scope="module")
def plain_answer(plain):
    """From a prompt to its plain answer of 256 tokens, decoded once."""
    answers = {}

    def answer(prompt):
        if prompt not in answers:
            answers[prompt] = plain.generate([prompt], SamplingParams(max_new_tokens=256))[0]
        return answers[prompt]

    return answer


@pytest.fixture(scope="module", params=[(8, 2, 4), (2, 1, 1), (3, 1, 4), (16, 2, 6), (33, 1, 3)], ids=str)
def ngram(request):
    """Speculation with (num_draft_tokens, ngram_min, ngram_max)."""
    return LLM("smollm2", SpeculativeConfig("ngram", *request.param))


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS.keys())
def test_long_answers_are_those_of_plain_decoding(plain_answer, ngram, prompt):
    actual = ngram.generate([prompt], SamplingParams(max_new_tokens=256))[0]
    assert actual.token_ids == plain_answer(prompt).token_ids
    assert actual.text == plain_answer(prompt).text


def test_prompts_are_as_long_as_they_say(plain):
    lengths = {name: len(plain.engine.tokenizer(prompt)["input_ids"]) for name, prompt in PROMPTS.items()}
    assert lengths["long prompt"] > 1000
    assert lengths["longer than one step"] > 2048


def test_copying_is_several_times_fewer_rounds(plain_answer):
    llm = LLM("smollm2", SpeculativeConfig("ngram", 16))
    result = llm.generate([PROMPTS["long prompt"]], SamplingParams(max_new_tokens=256))[0]
    assert result.token_ids == plain_answer(PROMPTS["long prompt"]).token_ids
    assert result.metrics.accept_length > 4


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS.keys())
@pytest.mark.parametrize("count", [1, 2, 4])
def test_threads_change_no_token(plain_answer, prompt, count):
    before = torch.get_num_threads()
    try:
        llm = LLM("smollm2", SpeculativeConfig("ngram"), threads=count)
        actual = llm.generate([prompt], SamplingParams(max_new_tokens=64))[0]
    finally:
        torch.set_num_threads(before)
    assert actual.token_ids == plain_answer(prompt).token_ids[:64]


@pytest.mark.parametrize("algorithm", ["none", "ngram"])
def test_f32_is_the_greedy_search_of_transformers(algorithm):
    llm = LLM("smollm2", SpeculativeConfig(algorithm), dtype="float32")
    model = LlamaForCausalLM.from_pretrained(llm.engine.directory, dtype=torch.float32)
    for prompt in fixed_prompts():
        messages = [{"role": "user", "content": prompt}]
        inputs = llm.engine.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt")
        output = model.generate(**inputs, max_new_tokens=64, do_sample=False)[0]
        expected = output[inputs["input_ids"].shape[1] :].tolist()
        assert llm.generate([prompt], SamplingParams(max_new_tokens=64))[0].token_ids == expected
