"""Model configurations: both rotary layouts, defaults, and clear refusals."""

import json
import math

import pytest
import torch
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from engine.errors import EngineError, ModelError
from engine.model.config import parse_config, read_config
from engine.model.rotary import Llama3Scaling, Rope, inverse_frequencies, rotary_table
from tests.tiny import VOCAB_SIZE, save_tiny_model, tiny_config

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def values(**changes):
    """A config.json in the old rotary layout; None removes a key."""
    settings = {
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": 259,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "eos_token_id": 2,
        **changes,
    }
    return {name: value for name, value in settings.items() if value is not None}


def test_a_saved_model_is_read_back(tmp_path):
    save_tiny_model(tmp_path)
    config = read_config(tmp_path)
    assert (config.architecture, config.vocab_size, config.num_layers) == ("LlamaForCausalLM", VOCAB_SIZE, 2)
    assert (config.num_heads, config.num_kv_heads, config.head_dim) == (4, 2, 16)
    assert (config.rms_eps, config.rope) == (1e-6, Rope(10000.0))
    assert (config.eos_token_ids, config.bos_token_id) == ((2,), 1)
    assert (config.tie_word_embeddings, config.attention_bias, config.mlp_bias) == (False, False, False)


def test_head_dim_is_taken_from_the_configuration_or_computed():
    assert parse_config(values(hidden_size=48, head_dim=32), {}).head_dim == 32
    assert parse_config(values(hidden_size=48), {}).head_dim == 12
    assert parse_config({**values(hidden_size=48), "head_dim": None}, {}).head_dim == 12


def test_key_value_heads_default_to_all_heads():
    assert parse_config(values(num_key_value_heads=None), {}).num_kv_heads == 4


@pytest.mark.parametrize(
    ("generation", "config", "expected"),
    [
        ({"eos_token_id": [5, 6]}, 2, (5, 6)),
        ({"eos_token_id": 7}, 2, (7,)),
        ({}, [2, 3], (2, 3)),
        ({}, None, ()),
    ],
    ids=["generation list wins", "generation id wins", "config list", "none"],
)
def test_end_tokens(generation, config, expected):
    assert parse_config(values(eos_token_id=config), generation).eos_token_ids == expected


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ({}, Rope(10000.0)),
        ({"rope_theta": 500000}, Rope(500000.0)),
        ({"rope_theta": None}, Rope(10000.0)),
        ({"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, Rope(1e6)),
        ({"rope_theta": 5e5, "rope_scaling": LLAMA3}, Rope(5e5, Llama3Scaling(8.0, 1.0, 4.0, 8192))),
        (
            {"rope_theta": None, "rope_parameters": {**LLAMA3, "rope_theta": 5e5}},
            Rope(5e5, Llama3Scaling(8.0, 1.0, 4.0, 8192)),
        ),
    ],
    ids=["old default", "old base", "no base", "new base without top-level key", "old llama3", "new llama3"],
)
def test_rotary_layouts(layout, expected):
    assert parse_config(values(**layout), {}).rope == expected


@pytest.mark.parametrize("kind", ["default", "llama3"])
def test_inverse_frequencies_equal_those_of_transformers(kind):
    parameters = {**LLAMA3, "rope_theta": 500000.0} if kind == "llama3" else {"rope_type": kind, "rope_theta": 500000.0}
    reference = tiny_config(head_dim=128, max_position_embeddings=131072, rope_parameters=parameters)
    rope = parse_config({**values(), "rope_parameters": parameters}, {}).rope
    if kind == "llama3":
        expected = ROPE_INIT_FUNCTIONS[kind](reference)[0]
    else:
        expected = 1.0 / 500000.0 ** (torch.arange(0, 128, 2).float() / 128)
    torch.testing.assert_close(inverse_frequencies(rope, 128), expected, rtol=1e-6, atol=0)


def test_llama3_golden_frequencies_and_angle():
    rope = Rope(500000.0, Llama3Scaling(8.0, 1.0, 4.0, 8192))
    frequencies = inverse_frequencies(rope, 128)
    for index, expected in ((28, 0.0032114), (32, 0.00052485), (40, 0.0000342810)):
        assert frequencies[index].item() == pytest.approx(expected, rel=2e-4)
    cos, sin = rotary_table(rope, 128, 4001)
    assert cos.shape == sin.shape == (4001, 64)
    assert cos.dtype == sin.dtype == torch.float32
    assert math.atan2(sin[4000, 40].item(), cos[4000, 40].item()) == pytest.approx(0.1371, abs=1e-4)


def test_sliding_window_switched_off_is_full_attention():
    assert parse_config(values(sliding_window=8, use_sliding_window=False), {}) == parse_config(values(), {})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"architectures": ["MambaForCausalLM"]}, ["MambaForCausalLM", "supported: LlamaForCausalLM"]),
        ({"architectures": None}, ["architectures", "None"]),
        ({"hidden_act": "gelu"}, ["gelu", "supported: silu"]),
        ({"sliding_window": 8}, ["sliding_window 8", "full attention"]),
        ({"layer_types": ["full_attention", "sliding_attention"]}, ["sliding_attention"]),
        ({"layer_types": 3}, ["layer_types is 3", "must be a list"]),
        ({"quantization_config": {"quant_method": "gptq"}}, ["quantization_config"]),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, ["yarn", "default, llama3"]),
        ({"rope_scaling": {**LLAMA3, "factor": None}}, ["factor", "None"]),
        ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, ["layer types"]),
        ({"partial_rotary_factor": 0.5}, ["partial_rotary_factor 0.5"]),
        ({"vocab_size": None}, ["vocab_size", "None"]),
        ({"num_hidden_layers": 0}, ["num_hidden_layers", "0"]),
        ({"num_key_value_heads": 3}, ["4", "3"]),
        ({"head_dim": 15}, ["head_dim 15"]),
        ({"rms_norm_eps": "small"}, ["rms_norm_eps", "small"]),
        ({"tie_word_embeddings": "yes"}, ["tie_word_embeddings", "yes"]),
        ({"eos_token_id": "</s>"}, ["eos_token_id", "</s>"]),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else "",
)
def test_what_cannot_be_honoured_is_refused(tmp_path, changes, words):
    (tmp_path / "config.json").write_text(json.dumps(values(**changes)))
    with pytest.raises(ModelError) as caught:
        read_config(tmp_path)
    for word in [str(tmp_path / "config.json"), *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00\x01"], ids=["empty", "cut", "a list", "binary"])
def test_a_damaged_configuration_names_the_file(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(EngineError, match=r"config\.json"):
        read_config(tmp_path)
