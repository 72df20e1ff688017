"""A GGUF file's metadata, as the contents of a Hugging Face config.json and generation_config.json."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from engine.errors import ModelError
from engine.model.rotary import Llama3Scaling, Rope, inverse_frequencies
from engine.model.table import family_of_gguf

ROPE_FACTORS = "rope_freqs.weight"  # divisors of the rotary frequencies, [head_dim / 2] f32
TOKENIZER_TYPES = {  # entries that may be absent -> what they are where they are not
    **{f"tokenizer.ggml.{name}": list for name in ("tokens", "token_type", "merges")},
    **{f"tokenizer.ggml.{name}_token_id": int for name in ("bos", "eos", "eot", "eom", "unknown", "padding")},
    "tokenizer.chat_template": str,
}


def read_metadata(file: Path) -> tuple[gguf.GGUFReader, dict[str, Any]]:
    """Open a GGUF file: its reader (tensors are memory-mapped) and its metadata as Python values.

    Raises ModelError naming the file if it is not a GGUF file, or damaged, or cut short.
    """
    try:
        reader = gguf.GGUFReader(file)
        metadata = {name: field.contents() for name, field in reader.fields.items()}
    except (OSError, ValueError, IndexError, KeyError, OverflowError, TypeError, struct.error) as error:
        raise ModelError(f"{file}: the file is damaged, cut short, or no GGUF file ({error})") from error
    return reader, metadata


def config_values(
    metadata: Mapping[str, Any], tensor_names: set[str], rope_factors: np.ndarray | None
) -> dict[str, Any]:
    """The contents of config.json. Raises ModelError naming a metadata entry that is missing or not supported."""
    family = family_of_gguf(str(metadata.get("general.architecture")))
    prefix = family.gguf_architecture
    _require_types(metadata)

    def required(name: str, default: float | None = None) -> Any:
        key = f"{prefix}.{name}"
        value = metadata.get(key, default)
        if not isinstance(value, int | float) or value <= 0:
            raise ModelError(f"{key} is {value!r} in the metadata; it must be a positive number")
        return value

    if metadata.get(f"{prefix}.expert_count"):
        raise ModelError(f"{prefix}.expert_count {metadata[f'{prefix}.expert_count']}: experts are not supported")
    heads, hidden_size = required("attention.head_count"), required("embedding_length")
    head_dim = metadata.get(f"{prefix}.attention.key_length", hidden_size // heads)
    for name in ("attention.value_length", "rope.dimension_count"):
        if metadata.get(f"{prefix}.{name}", head_dim) != head_dim:
            raise ModelError(f"{prefix}.{name} {metadata[f'{prefix}.{name}']} differs from the head size {head_dim}")
    scaling = metadata.get(f"{prefix}.rope.scaling.type", "none")
    if scaling != "none":
        raise ModelError(f"{prefix}.rope.scaling.type {scaling!r} is not supported; supported: none, Llama 3 factors")
    theta = _shortest(required("rope.freq_base", default=10000.0))
    return {
        "architectures": [family.architecture],
        "model_type": prefix,
        "dtype": "bfloat16",
        "vocab_size": len(metadata.get("tokenizer.ggml.tokens", ())) or required("vocab_size"),
        "hidden_size": hidden_size,
        "intermediate_size": required("feed_forward_length"),
        "num_hidden_layers": required("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": metadata.get(f"{prefix}.attention.head_count_kv", heads),
        "head_dim": head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": _shortest(required("attention.layer_norm_rms_epsilon")),
        "max_position_embeddings": required("context_length"),
        "rope_parameters": {"rope_theta": theta, **_rope_scaling(theta, head_dim, rope_factors)},
        "tie_word_embeddings": "output.weight" not in tensor_names,
        "attention_bias": "blk.0.attn_q.bias" in tensor_names,
        "mlp_bias": "blk.0.ffn_gate.bias" in tensor_names,
        "bos_token_id": metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": _end_ids(metadata),
    }


def generation_values(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of generation_config.json: greedy, with every id that ends a text or a turn."""
    names = ("bos_token_id", "padding_token_id")
    bos, padding = (metadata.get(f"tokenizer.ggml.{name}") for name in names)
    return {"bos_token_id": bos, "pad_token_id": padding, "eos_token_id": _end_ids(metadata)}


def _require_types(metadata: Mapping[str, Any]) -> None:
    for key, kind in TOKENIZER_TYPES.items():
        if key in metadata and not isinstance(metadata[key], kind):
            raise ModelError(f"{key} is {metadata[key]!r} in the metadata; it must be of type {kind.__name__}")


def _end_ids(metadata: Mapping[str, Any]) -> list[int]:
    names = ("eos_token_id", "eot_token_id", "eom_token_id")
    return sorted({metadata[key] for key in (f"tokenizer.ggml.{name}" for name in names) if key in metadata})


def _shortest(value: float) -> float:
    """The shortest decimal that is the same f32: GGUF stores 1e-05 as 9.999999747378752e-06."""
    return float(str(np.float32(value)))


def _rope_scaling(theta: float, head_dim: int, factors: np.ndarray | None) -> dict[str, Any]:
    """llama.cpp stores Llama 3's scaling as divisors per frequency; find the parameters that give them.

    Llama 3.1, 3.2 and 3.3 differ in the factor only. Raises ModelError for divisors of another origin.
    """
    if factors is None:
        return {"rope_type": "default"}
    stored = torch.from_numpy(np.array(factors, dtype=np.float32))
    scaling = Llama3Scaling(_shortest(stored.max().item()), 1.0, 4.0, 8192)
    expected = inverse_frequencies(Rope(theta), head_dim) / inverse_frequencies(Rope(theta, scaling), head_dim)
    if stored.shape != expected.shape or not torch.allclose(stored, expected, rtol=1e-4):
        raise ModelError(f"{ROPE_FACTORS} does not follow Llama 3's scaling and is not supported")
    return {"rope_type": "llama3", **vars(scaling)}
