"""What an engine is made of, and what it refuses before it loads anything."""

import sys

import pytest
import triton
from triton.runtime.jit import JITFunction

from dispatch.errors import DispatchError
from dispatch.target import Target
from engine.build import build
from engine.config import EngineConfig, SamplingParams, SpeculativeConfig
from engine.errors import EngineError
from engine.llm import LLM
from tests.tiny import save_tiny_model


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """The directory of a tiny model."""
    path = tmp_path_factory.mktemp("tiny")
    save_tiny_model(path)
    return str(path)


def test_a_gpu_target_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr("engine.build.probe_target", lambda: Target("cuda", "cuda 90", frozenset({"triton"})))
    with pytest.raises(EngineError, match=r"cuda 'cuda 90'.* set TRITON_DEFAULT_BACKEND=cpu"):
        build(EngineConfig("no such model"))


def test_a_choice_that_cannot_be_met_ends_the_build(monkeypatch, directory):
    monkeypatch.setenv("TRITON_SPEC_PROVIDERS", "linear=nobody")
    with pytest.raises(DispatchError, match="nobody"):
        build(EngineConfig(directory))


@pytest.mark.parametrize("algorithm", ["none", "ngram"])
def test_stages_are_reported_to_their_end_and_leave_no_slot_taken(directory, algorithm):
    reports = {}
    engine = build(
        EngineConfig(directory, SpeculativeConfig(algorithm)),
        lambda stage, done, total: reports.update({stage: (done, total)}),
    )
    assert set(reports) == {"loading weights", "compiling kernels"}
    assert all(done == total > 0 for done, total in reports.values())
    assert engine.slots.free_count == engine.slots.total


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_bytes_per_token_are_those_of_the_matrices_and_norms(tmp_path, directory, dtype):
    hidden, intermediate, vocabulary, layers, key_value = 64, 96, 262, 2, 32
    layer = hidden * (2 * hidden + 2 * key_value + 3 * intermediate + 2)
    expected = (layers * layer + hidden * (vocabulary + 1)) * (2 if dtype == "bfloat16" else 4)
    assert build(EngineConfig(directory, dtype=dtype)).weight_bytes == expected
    save_tiny_model(tmp_path, tie_word_embeddings=True)
    assert build(EngineConfig(str(tmp_path), dtype=dtype)).weight_bytes == expected


@pytest.mark.parametrize("algorithm", ["none", "ngram"])
def test_no_answer_waits_for_a_compilation(monkeypatch, directory, algorithm):
    kernels = {
        id(member): member
        for name, module in list(sys.modules.items())
        if name.startswith("triton_spec.")
        for member in vars(module).values()
        if isinstance(member, JITFunction)
    }.values()
    for kernel in kernels:
        kernel.device_caches.clear()  # as in a fresh process
    llm = LLM(directory, SpeculativeConfig(algorithm, num_draft_tokens=4))
    compiled = []
    monkeypatch.setattr(triton.knobs.runtime, "jit_post_compile_hook", lambda **about: compiled.append(about["repr"]))
    for tokens in (33, 47, 64, 90, 128):
        prompt, params = "ab" * tokens, SamplingParams(max_new_tokens=24, ignore_eos=True)
        assert len(llm.generate([prompt], params, raw=True)[0].token_ids) == 24
    assert compiled == []
