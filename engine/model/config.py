"""The facts of a model, read from a Hugging Face directory, and refused where this engine cannot honour them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from engine.model.rotary import Llama3Scaling, Rope
from engine.model.table import family_of


@dataclass(frozen=True)
class ModelConfig:
    """Shapes and constants of a decoder model. Sizes are in elements, `max_position_embeddings` in tokens."""

    architecture: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_eps: float
    rope: Rope
    max_position_embeddings: int
    tie_word_embeddings: bool
    attention_bias: bool
    mlp_bias: bool
    eos_token_ids: tuple[int, ...]
    bos_token_id: int | None


def read_config(directory: Path) -> ModelConfig:
    """Read `config.json` and, if present, `generation_config.json` (its EOS ids win, as in transformers).

    Raises ModelError naming the file and the entry that is missing, malformed or not supported.
    """
    path = directory / "config.json"
    values = read_json_object(path)
    generation_path = directory / "generation_config.json"
    generation = read_json_object(generation_path) if generation_path.exists() else {}
    try:
        return parse_config(values, generation)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error


def parse_config(values: Mapping[str, Any], generation: Mapping[str, Any]) -> ModelConfig:
    """A ModelConfig from the contents of config.json and generation_config.json. Raises ModelError."""
    architecture = _architecture(values)
    _refuse_unsupported(values)
    hidden_size = _positive(values, "hidden_size")
    num_heads = _positive(values, "num_attention_heads")
    num_kv_heads = _positive(values, "num_key_value_heads", default=num_heads)
    if num_heads % num_kv_heads:
        raise ModelError(f"num_attention_heads {num_heads} is not a multiple of num_key_value_heads {num_kv_heads}")
    if values.get("head_dim") is None and hidden_size % num_heads:
        raise ModelError(f"hidden_size {hidden_size} is not a multiple of num_attention_heads {num_heads}")
    head_dim = _positive(values, "head_dim", default=hidden_size // num_heads)
    if head_dim % 2:
        raise ModelError(f"head_dim {head_dim} is odd; rotary embedding needs pairs of channels")
    max_positions = _positive(values, "max_position_embeddings")
    return ModelConfig(
        architecture=architecture,
        vocab_size=_positive(values, "vocab_size"),
        hidden_size=hidden_size,
        intermediate_size=_positive(values, "intermediate_size"),
        num_layers=_positive(values, "num_hidden_layers"),
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        rms_eps=_number(values, "rms_norm_eps"),
        rope=_rope(values, max_positions),
        max_position_embeddings=max_positions,
        tie_word_embeddings=_flag(values, "tie_word_embeddings"),
        attention_bias=_flag(values, "attention_bias"),
        mlp_bias=_flag(values, "mlp_bias"),
        eos_token_ids=_token_ids(generation, "eos_token_id") or _token_ids(values, "eos_token_id"),
        bos_token_id=next(iter(_token_ids(values, "bos_token_id")), None),
    )


def read_json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises ModelError naming the file if it is absent, unreadable or something else."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(values, dict):
        raise ModelError(f"{path}: holds a JSON {type(values).__name__}, not an object")
    return values


def _architecture(values: Mapping[str, Any]) -> str:
    names = values.get("architectures")
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        raise ModelError(f"architectures is {names!r}; it must be a list with one name")
    return family_of(names[0]).architecture


def _refuse_unsupported(values: Mapping[str, Any]) -> None:
    activation = values.get("hidden_act", "silu")
    if activation != "silu":
        raise ModelError(f"hidden_act {activation!r} is not supported; supported: silu")
    window = values.get("sliding_window")
    if window is not None and values.get("use_sliding_window", True):
        raise ModelError(f"sliding_window {window!r} is not supported; supported: full attention")
    layer_types = values.get("layer_types")
    if not isinstance(layer_types, list | None):
        raise ModelError(f"layer_types is {layer_types!r}; it must be a list")
    kinds = sorted({str(kind) for kind in layer_types or ()} - {"full_attention"})
    if kinds:
        raise ModelError(f"layer_types has {', '.join(kinds)}, not supported; supported: full_attention")
    if values.get("quantization_config") is not None:
        raise ModelError("quantization_config is not supported; supported: float32, float16 and bfloat16 weights")


def _rope(values: Mapping[str, Any], max_positions: int) -> Rope:
    """Both layouts: rope_theta with rope_scaling (old), rope_parameters holding both (new)."""
    parameters = values.get("rope_parameters") or values.get("rope_scaling") or {}
    if not isinstance(parameters, Mapping):
        raise ModelError(f"rope parameters are {parameters!r}; they must be an object")
    if any(isinstance(value, Mapping) for value in parameters.values()):
        raise ModelError("rope_parameters that differ between layer types are not supported")
    merged = {"rope_theta": 10000.0, **{k: v for k, v in values.items() if v is not None}, **parameters}
    share = merged.get("partial_rotary_factor", 1.0)
    if share != 1.0:
        raise ModelError(f"partial_rotary_factor {share!r} is not supported; supported: 1.0")
    theta = _number(merged, "rope_theta")
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if kind == "default":
        return Rope(theta)
    if kind != "llama3":
        raise ModelError(f"rope type {kind!r} is not supported; supported: default, llama3")
    low, high = _number(parameters, "low_freq_factor"), _number(parameters, "high_freq_factor")
    if low >= high:
        raise ModelError(f"low_freq_factor {low} must be below high_freq_factor {high}")
    original = _positive(merged, "original_max_position_embeddings", default=max_positions)
    return Rope(theta, Llama3Scaling(_number(parameters, "factor"), low, high, original))


def _positive(values: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = values.get(name)
    value = default if value is None else value
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ModelError(f"{name} is {value!r}; it must be a positive integer")
    return value


def _number(values: Mapping[str, Any], name: str) -> float:
    value = values.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise ModelError(f"{name} is {value!r}; it must be a positive number")
    return float(value)


def _flag(values: Mapping[str, Any], name: str) -> bool:
    value = values.get(name, False)
    if not isinstance(value, bool):
        raise ModelError(f"{name} is {value!r}; it must be true or false")
    return value


def _token_ids(values: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """One id, a list of ids, or none, as a tuple."""
    value = values.get(name)
    ids = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(i, int) and not isinstance(i, bool) and i >= 0 for i in ids):
        raise ModelError(f"{name} is {value!r}; it must be a token id or a list of them")
    return tuple(ids)
