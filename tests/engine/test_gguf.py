"""GGUF files: converted once to what transformers would run, cached, rebuilt when damaged, refused when unknown."""

import json
import resource
import shutil
import time
import warnings

import gguf
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, LlamaForCausalLM

from engine.errors import EngineError, ModelError
from engine.model.config import read_config
from engine.model.gguf import MANIFEST, check_converted, converted_directory, half_split_rows
from engine.model.gguf_metadata import config_values, read_metadata
from engine.model.gguf_tokenizer import build_tokenizer
from engine.model.locate import model_directory
from tests.tiny import VOCAB_SIZE, tiny_model, tiny_tokenizer
from tests.tiny_gguf import write_gguf

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache directory."""
    monkeypatch.setenv("TRITON_SPEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def file(tmp_path):
    """A tiny model as a GGUF file of f32 tensors."""
    path = tmp_path / "tiny.gguf"
    write_gguf(path, tiny_model(), tiny_tokenizer())
    return path


def llama3_factors(head_dim):
    """The divisors llama.cpp's converter stores for LLAMA3."""
    factors = []
    for index in range(head_dim // 2):
        wavelength = 2 * torch.pi * 500000.0 ** (2 * index / head_dim)
        if wavelength < 8192 / 4.0:
            factors.append(1.0)
        elif wavelength > 8192 / 1.0:
            factors.append(32.0)
        else:
            smooth = (8192 / wavelength - 1.0) / (4.0 - 1.0)
            factors.append(1.0 / ((1.0 - smooth) / 32.0 + smooth))
    return torch.tensor(factors)


@pytest.mark.parametrize(
    ("changes", "quantisation"),
    [
        ({}, "F32"),
        ({"tie_word_embeddings": True}, "F32"),
        ({"head_dim": 32}, "F32"),
        ({"attention_bias": True, "mlp_bias": True}, "F32"),
        ({"num_key_value_heads": 4, "num_attention_heads": 4}, "F16"),
    ],
    ids=["untied", "tied", "explicit head size", "biases", "f16"],
)
def test_weights_are_the_originals_rounded_to_bf16(tmp_path, changes, quantisation):
    model = tiny_model(**changes)
    write_gguf(tmp_path / "m.gguf", model, tiny_tokenizer(), gguf.GGMLQuantizationType[quantisation])
    converted = LlamaForCausalLM.from_pretrained(converted_directory(tmp_path / "m.gguf"), dtype=torch.float32)
    stored = torch.float16 if quantisation == "F16" else torch.float32
    expected = {name: tensor.to(stored).bfloat16().float() for name, tensor in model.state_dict().items()}
    norms = {name: tensor.bfloat16().float() for name, tensor in model.state_dict().items() if tensor.ndim == 1}
    assert converted.state_dict().keys() == expected.keys()
    for name, tensor in converted.state_dict().items():
        torch.testing.assert_close(tensor, {**expected, **norms}[name], rtol=0, atol=0)


@pytest.mark.parametrize("quantisation", ["Q8_0", "Q4_1", "Q4_0", "Q5_1"])
def test_quantised_weights_are_dequantised(tmp_path, quantisation):
    model, kind = tiny_model(), gguf.GGMLQuantizationType[quantisation]
    write_gguf(tmp_path / "m.gguf", model, tiny_tokenizer(), kind)
    weights = load_file(converted_directory(tmp_path / "m.gguf") / "model.safetensors")
    original = model.model.layers[1].mlp.down_proj.weight.detach().numpy()
    expected = gguf.quants.dequantize(gguf.quants.quantize(original, kind), kind)
    actual = weights["model.layers.1.mlp.down_proj.weight"]
    torch.testing.assert_close(actual, torch.from_numpy(expected).bfloat16(), rtol=0, atol=0)


def test_configuration_and_end_tokens(file):
    directory = converted_directory(file)
    config = read_config(directory)
    assert (config.hidden_size, config.intermediate_size, config.num_layers) == (64, 96, 2)
    assert (config.vocab_size, config.max_position_embeddings) == (VOCAB_SIZE, 256)
    assert (config.rms_eps, config.eos_token_ids, config.bos_token_id) == (1e-6, (0, 2), 1)
    assert LlamaForCausalLM.from_pretrained(directory).generation_config.eos_token_id == [0, 2]


def test_tokenizer_and_chat_template(file):
    tokenizer = AutoTokenizer.from_pretrained(converted_directory(file), local_files_only=True)
    text = "naïve 😀  12 ab\n"
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert len(ids) == len(text.encode()) - 1  # only ab is merged: digits are split before
    assert tokenizer.decode([1, *ids, 2], skip_special_tokens=True) == text
    assert tokenizer("<|im_end|>")["input_ids"] == [2]
    messages = [{"role": "user", "content": "hi"}]
    chat = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert chat == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("splitting", "expected", "first"),
    [
        ("smollm", ["a", "Ġ", "1", "2", "Ġ", "!"], []),
        ("gpt-2", ["a", "Ġ", "12", "Ġ", "!"], []),
        ("llama-bpe", ["a", "Ġ", "12", "Ġ", "!"], [1]),
    ],
)
def test_text_is_split_as_the_file_says(tmp_path, splitting, expected, first):
    write_gguf(tmp_path / "m.gguf", tiny_model(), tiny_tokenizer(), splitting=splitting)
    tokenizer = AutoTokenizer.from_pretrained(converted_directory(tmp_path / "m.gguf"), local_files_only=True)
    assert tokenizer.tokenize("a 12 !") == expected
    assert tokenizer("a")["input_ids"] == [*first, *tokenizer.convert_tokens_to_ids(["a"])]


def test_llama3_scaling_is_recognised_from_its_divisors(tmp_path):
    model = tiny_model(head_dim=64, rope_parameters=LLAMA3)
    write_gguf(tmp_path / "m.gguf", model, tiny_tokenizer(), rope_factors=llama3_factors(64))
    scaling = read_config(converted_directory(tmp_path / "m.gguf")).rope.scaling
    assert {"rope_type": "llama3", "rope_theta": 500000.0, **vars(scaling)} == LLAMA3


def test_the_second_start_uses_the_cache(file):
    first = converted_directory(file)
    stamp = (first / "model.safetensors").stat().st_mtime_ns
    seen = []
    assert converted_directory(file, lambda done, total: seen.append(done)) == first
    assert (first / "model.safetensors").stat().st_mtime_ns == stamp
    assert seen == []
    assert [path.name for path in first.parent.iterdir()] == [first.name]  # no scratch directory is left


def test_of_two_conversions_at_once_the_first_to_finish_is_kept(file):
    others = []

    def progress(done, total):
        if done == total:
            others.append(converted_directory(file))

    assert converted_directory(file, progress) == others[0]
    check_converted(others[0])


def test_a_damaged_result_of_another_conversion_is_not_used(file, cache):
    key = converted_directory(file).name
    shutil.rmtree(cache / key)

    def damaged_by_another(done, total):
        if done == total:
            (cache / key).mkdir(exist_ok=True)
            (cache / key / MANIFEST).write_text("{}")

    with pytest.raises(ModelError, match="lists no digests"):
        converted_directory(file, damaged_by_another)


def test_a_changed_file_is_converted_again(file):
    first = converted_directory(file)
    time.sleep(0.01)
    write_gguf(file, tiny_model(seed=1), tiny_tokenizer())
    assert converted_directory(file) != first


def cut_weights(directory):
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def garble(name):
    def damage(directory):
        path = directory / name
        path.write_bytes(bytes(path.stat().st_size))

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        cut_weights,
        garble("model.safetensors"),
        garble("tokenizer.json"),
        garble("config.json"),
        garble(MANIFEST),
        lambda directory: (directory / MANIFEST).write_text('{"sha256": []}'),
        lambda directory: (directory / "tokenizer.json").unlink(),
        lambda directory: (directory / MANIFEST).unlink(),
        lambda directory: shutil.rmtree(directory) or directory.mkdir(),
    ],
    ids=[
        "weights cut short",
        "weights zeroed",
        "tokenizer zeroed",
        "config zeroed",
        "manifest zeroed",
        "manifest of another form",
        "tokenizer missing",
        "manifest missing",
        "everything missing",
    ],
)
def test_a_damaged_cache_is_rebuilt_with_a_warning(file, damage):
    directory = converted_directory(file)
    damage(directory)
    with pytest.warns(UserWarning, match="damaged and is built again"):
        assert converted_directory(file) == directory
    check_converted(directory)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        converted_directory(file)


def test_progress_ends_at_the_total(file):
    seen = []
    converted_directory(file, lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == seen[-1][1] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"architecture": "mamba"}, ["'mamba' is not supported", "llama"]),
        ({"splitting": "deepseek-llm"}, ["deepseek-llm", "gpt-2, llama-bpe, smollm"]),
        ({"scaling_type": "yarn"}, ["rope.scaling.type 'yarn'"]),
        ({"rope_factors": torch.linspace(1.0, 3.0, 8)}, ["rope_freqs.weight"]),
        ({"extra_tensor": "blk.0.attn_q_norm.weight"}, ["blk.0.attn_q_norm.weight"]),
    ],
    ids=["architecture", "splitting", "rope scaling", "rope divisors", "tensor"],
)
def test_what_cannot_be_honoured_is_refused(tmp_path, cache, arguments, words):
    file = tmp_path / "m.gguf"
    write_gguf(file, tiny_model(), tiny_tokenizer(), **arguments)
    with pytest.raises(ModelError) as caught:
        converted_directory(file)
    for word in [str(file), *words]:
        assert word in str(caught.value)
    assert list(cache.iterdir()) == []


def convert_metadata(metadata):
    config_values(metadata, set(), None)
    build_tokenizer(metadata)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("llama.rope.freq_base", "x"),
        ("tokenizer.ggml.tokens", 3),
        ("tokenizer.ggml.token_type", [1]),
        ("tokenizer.ggml.eos_token_id", [2]),
        ("tokenizer.ggml.bos_token_id", 2.5),
        ("tokenizer.chat_template", 3),
    ],
)
def test_metadata_of_another_type_is_named(file, name, value):
    _, metadata = read_metadata(file)
    changed = {**metadata, name: value}
    with pytest.raises(ModelError, match=name.replace(".", r"\.")):
        convert_metadata(changed)
    convert_metadata(metadata)


@pytest.mark.parametrize("keep", [0, 3, 30, 2000, -100], ids=["nothing", "magic cut", "header", "metadata", "tensors"])
def test_a_file_cut_short_is_named(tmp_path, file, keep):
    short = tmp_path / "short.gguf"
    short.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ModelError, match=r"short\.gguf: the file is damaged"):
        converted_directory(short)


def test_garbage_is_named(tmp_path):
    (tmp_path / "garbage.gguf").write_bytes(bytes(range(256)) * 40)
    with pytest.raises(ModelError, match=r"garbage\.gguf: the file is damaged"):
        converted_directory(tmp_path / "garbage.gguf")


def test_a_cache_that_cannot_be_written_names_the_remedy(tmp_path, monkeypatch, file):
    (tmp_path / "occupied").write_text("a file, no directory")
    monkeypatch.setenv("TRITON_SPEC_CACHE", str(tmp_path / "occupied"))
    with pytest.raises(ModelError, match=r"occupied.*TRITON_SPEC_CACHE"):
        converted_directory(file)


def test_a_disk_without_room_for_the_weights_names_the_remedy(file):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))  # bytes: more than the tokenizer, less than the weights
    try:
        with pytest.raises(ModelError, match=r"cannot be written .*File too large.*TRITON_SPEC_CACHE"):
            converted_directory(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_home_that_nobody_knows_names_the_remedy(monkeypatch, file):
    monkeypatch.setenv("TRITON_SPEC_CACHE", "~nobody-has-this-name/cache")
    with pytest.raises(EngineError, match="TRITON_SPEC_CACHE"):
        converted_directory(file)


def test_rows_that_are_not_those_of_the_heads_are_refused():
    with pytest.raises(ModelError, match="79 rows, which are not 2 heads"):
        half_split_rows(torch.zeros(79, 4), 2)


def test_the_embedded_model_is_smollm2_instruct():
    directory = model_directory("smollm2")
    config = read_config(directory)
    assert (config.num_layers, config.num_heads, config.num_kv_heads, config.head_dim) == (30, 9, 3, 64)
    assert (config.eos_token_ids, config.rms_eps, config.rope.theta) == ((2,), 1e-5, 100000.0)
    tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    assert (tokenizer.eos_token, tokenizer.bos_token) == ("<|im_end|>", "<|im_start|>")
    assert tokenizer.tokenize("a  12") == ["a", "ĠĠ", "1", "2"]  # digits are split off before the words are
    messages = [{"role": "user", "content": "Hi"}]
    chat = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert chat.startswith("<|im_start|>system\n")
    assert chat.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert json.loads((directory / MANIFEST).read_text())["source"].endswith(".gguf")
