"""The embedded model from prompt to text: speculation changes no token and no bit, and Triton's kernels do the work."""

import re
from collections import Counter

import pytest
import torch
import triton
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaForCausalLM

import engine.step
from engine import LLM, SamplingParams, SpeculativeConfig
from engine.bench.compare import fixed_prompts
from engine.model.runner import ModelRunner
from engine.request import Request
from tests.compare import assert_close, assert_equal
from triton_cpu.runtime.record import Recording
from triton_spec.layers.linear import linear_kernel

PROMPTS = fixed_prompts()
REWRITE = 5  # asks for a paragraph again: nearly every draft is right
NAMES = [re.sub(r"\W+", " ", prompt)[:24].strip() for prompt in PROMPTS]
F32_INDICES = [index if index in (1, 5, 8) else pytest.param(index, marks=pytest.mark.slow) for index in range(12)]
BUDGET = SamplingParams(max_new_tokens=64)
TDPBF16PS = re.compile(rb"\xc4\xe2[\x02\x0a\x12\x1a\x22\x2a\x32\x3a\x42\x4a\x52\x5a\x62\x6a\x72\x7a]\x5c")  # any tiles
MOVES = {  # operations of PyTorch that may give floats while decoding: they move numbers and compute none
    "empty", "fill_", "view", "flatten", "split_with_sizes", "slice", "select", "index", "clone", "copy_", "max",
    "detach", "unsqueeze", "t", "transpose", "expand", "as_strided", "index_select", "_unsafe_view", "lift_fresh",
}  # fmt: skip


@pytest.fixture(scope="module")
def plain():
    """Plain decoding in bf16."""
    return LLM("smollm2")


@pytest.fixture(scope="module")
def ngram():
    """N-gram speculation in bf16."""
    return LLM("smollm2", SpeculativeConfig("ngram"))


@pytest.fixture(scope="module")
def plain_answer(plain):
    """From the number of a prompt to its plain answer of 64 tokens, decoded once."""
    answers = {}

    def answer(index):
        if index not in answers:
            answers[index] = plain.generate([PROMPTS[index]], BUDGET)[0]
        return answers[index]

    return answer


@pytest.fixture(scope="module")
def plain_f32():
    """Plain decoding in f32."""
    return LLM("smollm2", dtype="float32")


@pytest.fixture(scope="module")
def transformers_f32(plain_f32):
    """The same files in transformers, in f32."""
    return LlamaForCausalLM.from_pretrained(plain_f32.engine.directory, dtype=torch.float32).eval()


@pytest.fixture
def logits_of(monkeypatch):
    """A function that decodes one prompt and returns the answer and the logits [tokens, vocab] its tokens come from."""

    def decode(llm, prompt, params=BUDGET):
        found = []
        forward, verify = ModelRunner.forward, engine.step.verify_greedy

        def recording_forward(self, token_ids, positions, out_cache_loc, batch, rows=None):
            logits = forward(self, token_ids, positions, out_cache_loc, batch, rows)
            if rows is not None:  # the prompt
                found.append(logits)
            return logits

        def recording_verify(plan, tree, logits):
            verified = verify(plan, tree, logits)
            found.append(logits[verified.accept_index[verified.accept_index >= 0].long()])
            return verified

        with monkeypatch.context() as patch:
            patch.setattr(ModelRunner, "forward", recording_forward)
            patch.setattr(engine.step, "verify_greedy", recording_verify)
            result = llm.generate([prompt], params)[0]
        return result, torch.cat(found)[: len(result.token_ids)]

    return decode


@pytest.fixture
def runs_of(monkeypatch):
    """A function that decodes one prompt and returns the answer and [tokens verified, tokens kept] of each round."""

    def decode(llm, prompt, params=BUDGET):
        runs, receive = [], Request.receive

        def recording(self, run):
            kept = receive(self, run)
            runs.append((len(run), len(kept)))
            return kept

        with monkeypatch.context() as patch:
            patch.setattr(Request, "receive", recording)
            return llm.generate([prompt], params)[0], runs

    return decode


@pytest.fixture
def launches(monkeypatch):
    """Launches of compiled kernels by name, and by the identity of their function: Triton's own hook counts those that
    go through Triton, and each replay of a recording counts for all that it holds."""
    names, functions = Counter(), Counter()
    replay = Recording.replay

    def count_replay(recording):
        replay(recording)
        for index in range(len(recording)):
            names[recording[index].name] += 1
            functions[id(recording[index].function)] += 1

    monkeypatch.setattr(Recording, "replay", count_replay)

    def count(metadata):
        values = metadata.get()
        names[values["name"]] += 1
        functions[id(values["function"])] += 1

    hook = triton.knobs.runtime.launch_enter_hook
    hook.add(count)
    yield names, functions
    hook.remove(count)


@pytest.fixture
def threads():
    """A function that sets PyTorch's number of threads; it is set back afterwards."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("index", range(12), ids=NAMES)
def test_ngram_speculation_gives_the_tokens_of_plain_decoding(plain_answer, ngram, index):
    expected, actual = plain_answer(index), ngram.generate([PROMPTS[index]], BUDGET)[0]
    assert actual.token_ids == expected.token_ids
    assert (actual.text, actual.finish_reason) == (expected.text, expected.finish_reason)
    assert expected.metrics.accept_length == 1
    if index == REWRITE:
        assert actual.metrics.accept_length > 3


@pytest.mark.parametrize("index", F32_INDICES, ids=NAMES)
def test_plain_f32_is_the_greedy_answer_of_transformers(plain_f32, transformers_f32, logits_of, index):
    """Each token is transformers' greedy choice after the tokens before it, so the answers are the same."""
    result, logits = logits_of(plain_f32, PROMPTS[index])
    messages = [{"role": "user", "content": PROMPTS[index]}]
    prompt_ids = plain_f32.engine.tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    with torch.inference_mode():
        tokens = torch.tensor([[*prompt_ids, *result.token_ids[:-1]]])
        expected = transformers_f32(tokens, logits_to_keep=len(result.token_ids)).logits[0]
    assert expected.argmax(dim=-1).tolist() == result.token_ids
    assert_close(logits, expected, "logits f32")
    assert set(result.token_ids[:-1]).isdisjoint(plain_f32.engine.model_config.eos_token_ids)


def test_accepted_drafts_have_the_bits_of_plain_decoding(plain, ngram, logits_of):
    params = SamplingParams(max_new_tokens=32)
    (expected, plain_logits), (actual, logits) = (logits_of(llm, PROMPTS[REWRITE], params) for llm in (plain, ngram))
    assert actual.token_ids == expected.token_ids
    assert actual.metrics.verify_rounds < 16
    assert_equal(logits, plain_logits)


@pytest.mark.parametrize("count", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_number_of_threads_changes_no_bit(plain, ngram, logits_of, threads, count):
    params = SamplingParams(max_new_tokens=12)
    expected, plain_logits = logits_of(plain, PROMPTS[REWRITE], params)
    threads(count)
    actual, logits = logits_of(ngram, PROMPTS[REWRITE], params)
    assert actual.token_ids == expected.token_ids
    assert_equal(logits, plain_logits)


@pytest.mark.parametrize("rows", [7, 64, pytest.param(1, marks=pytest.mark.slow)])
def test_the_pieces_of_a_prompt_change_no_bit(plain, logits_of, monkeypatch, rows):
    params = SamplingParams(max_new_tokens=3)
    expected, whole_logits = logits_of(plain, PROMPTS[REWRITE], params)
    monkeypatch.setattr(engine.step, "PREFILL_ROWS", rows)
    actual, logits = logits_of(plain, PROMPTS[REWRITE], params)
    assert actual.token_ids == expected.token_ids
    assert_equal(logits[-3:], whole_logits)


@pytest.mark.parametrize("budget", [0, 1, 2, 6, 7, 8, 9])
def test_the_budget_is_exact_inside_of_accepted_runs(plain_answer, ngram, budget):
    result = ngram.generate([PROMPTS[REWRITE]], SamplingParams(max_new_tokens=budget))[0]
    assert (result.token_ids, result.finish_reason) == (plain_answer(REWRITE).token_ids[:budget], "length")


def test_a_stop_token_inside_of_an_accepted_run_ends_the_answer_there(plain_answer, ngram, runs_of):
    tokens = plain_answer(REWRITE).token_ids
    _, runs = runs_of(ngram, PROMPTS[REWRITE], SamplingParams(max_new_tokens=32))
    starts = [sum(kept for _, kept in runs[:round]) for round in range(len(runs))]
    inside = [
        place
        for start, (_, kept) in zip(starts, runs, strict=True)
        for place in range(start, start + kept - 1)  # tokens of the run follow
        if tokens.index(tokens[place]) == place
    ]
    for place in (inside[0], inside[-1]):
        result, runs = runs_of(ngram, PROMPTS[REWRITE], SamplingParams(64, stop_token_ids=(tokens[place],)))
        assert (result.token_ids, result.finish_reason) == (tokens[: place + 1], "stop")
        verified, kept = runs[-1]
        assert verified > kept


def test_the_end_token_is_the_last_one_and_no_text(plain_answer, ngram):
    ended = plain_answer(1)
    end = ngram.engine.model_config.eos_token_ids[0]
    assert ended.finish_reason == "stop"
    assert ended.token_ids.index(end) == len(ended.token_ids) - 1
    assert "<|im_end|>" not in ended.text
    params = SamplingParams(max_new_tokens=len(ended.token_ids) + 2, ignore_eos=True)
    further = ngram.generate([PROMPTS[1]], params)[0]
    assert further.token_ids[:-2] == ended.token_ids
    assert further.finish_reason == "length"


def test_pieces_of_a_stream_join_to_the_text(ngram):
    prompt = "Repeat exactly: Ünïcödé, 日本語, 👩‍🚀 and 🎉🎉, Ünïcödé, 日本語, 👩‍🚀 and 🎉🎉."
    stream = ngram.stream(prompt, SamplingParams(max_new_tokens=40))
    pieces = list(stream)
    tokens = stream.result.token_ids
    assert "".join(pieces) == stream.result.text == ngram.engine.tokenizer.decode(tokens, skip_special_tokens=True)
    assert len(pieces) > 2
    assert all(pieces)
    assert any(ord(letter) > 127 for letter in stream.result.text)


def test_a_stream_that_is_left_frees_what_it_holds(plain_answer, ngram):
    slots = ngram.engine.slots
    with ngram.stream(PROMPTS[0]) as stream:
        next(stream)
        assert slots.free_count < slots.total
        with pytest.raises(RuntimeError, match="running already"):
            ngram.generate([PROMPTS[1]])
    assert stream.result is None
    assert slots.free_count == slots.total
    assert ngram.generate([PROMPTS[0]], BUDGET)[0].token_ids == plain_answer(0).token_ids


def test_triton_serves_every_op(ngram):
    decisions = ngram.engine.plan.decisions
    assert len(decisions) == 15
    assert {decision.provider for decision in decisions} == {"triton"}
    for decision in decisions:
        function = getattr(ngram.engine.plan, decision.op)
        assert function.__module__.startswith("triton_spec.")
        assert not function.__module__.endswith(".reference")


@pytest.mark.parametrize("algorithm", ["none", "ngram"])
def test_compiled_kernels_run_every_layer_of_every_step(plain, ngram, launches, algorithm):
    llm = ngram if algorithm == "ngram" else plain
    result = llm.generate([PROMPTS[REWRITE]], SamplingParams(max_new_tokens=24))[0]
    names, _ = launches
    rounds = result.metrics.verify_rounds
    steps, layers = rounds + 1, llm.engine.model_config.num_layers
    expected = {
        "linear_kernel": steps * (4 * layers + 1),
        "rms_norm_kernel": steps * (2 * layers + 1),
        "rotary_kernel": steps * layers,
        "store_kv_cache_kernel": steps * layers,
        "attention_kernel": steps * layers,
        "silu_and_mul_kernel": steps * layers,
        "reconstruct_kernel": rounds,
        "verify_tree_greedy_kernel": rounds,
        "fill_bonus_tokens_kernel": rounds,
    }
    assert {name: names[name] for name in expected} == expected
    assert names["slots_kernel"] > rounds


def test_pytorch_computes_no_float_while_decoding(ngram):
    computed = Counter()

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            made = function(*args, **(kwargs or {}))
            results = made if isinstance(made, tuple | list) else [made]
            if any(isinstance(result, torch.Tensor) and result.is_floating_point() for result in results):
                computed[function.overloadpacket.__name__] += 1
            return made

    with Watch():
        ngram.generate([PROMPTS[REWRITE]], SamplingParams(max_new_tokens=16))
    assert computed["empty"] > 100
    assert set(computed) <= MOVES


@pytest.mark.amx
def test_linear_layers_in_bf16_run_on_amx_tiles(ngram, launches):
    ngram.generate([PROMPTS[REWRITE]], SamplingParams(max_new_tokens=8))
    _, functions = launches
    kernels, *_ = next(iter(linear_kernel.device_caches.values()))
    launched = [kernel for kernel in kernels.values() if functions[id(kernel.function)]]
    assert sum(functions[id(kernel.function)] for kernel in launched) > 200
    for kernel in launched:
        assert kernel.metadata.uses_tiles
        assert TDPBF16PS.search(kernel.asm["obj"])
