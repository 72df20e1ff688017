"""Convert a GGUF file once into a Hugging Face directory of bf16 weights, kept in a cache."""

import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from engine.errors import ModelError
from engine.knobs import cache_directory
from engine.model.config import ModelConfig, parse_config, read_config, read_json_object
from engine.model.gguf_metadata import ROPE_FACTORS, config_values, generation_values, read_metadata
from engine.model.gguf_tokenizer import build_tokenizer
from engine.model.weights import SINGLE_FILE, read_headers
from engine.progress import StageProgress

FORMAT = 1  # raise it when the converted files change: older directories are then rebuilt
MANIFEST = "triton_spec.json"

GLOBAL_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def converted_directory(file: Path, progress: StageProgress | None = None) -> Path:
    """The Hugging Face directory of a GGUF file: from the cache, or converted now and put there in one step.

    The key is the file's path, size and time of change. The weights are stored as bf16, so that float32 and bfloat16
    runs, and transformers on the same directory, use the same values. A damaged entry is rebuilt with a warning.
    Raises ModelError naming the file if it is damaged or not supported, or the cache directory if it cannot be written.
    """
    status = file.stat()
    identity = f"{FORMAT}\0{file.resolve()}\0{status.st_size}\0{status.st_mtime_ns}"
    key = hashlib.sha256(identity.encode()).hexdigest()[:16]
    target = cache_directory() / f"{file.stem}-{key}"
    damaged = target.exists()
    if damaged:
        try:
            check_converted(target)
            return target
        except ModelError as error:
            warnings.warn(f"the converted model in {target} is damaged and is built again: {error}", stacklevel=2)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="converting-", dir=target.parent) as scratch:
            made = Path(scratch) / "model"
            made.mkdir()
            convert(file, made, progress)
            if damaged:
                target.rename(Path(scratch) / "damaged")  # in one step: another process may be looking at it
            _publish(made, target)
    except (OSError, SafetensorError) as error:  # the latter for weights that find no room
        raise ModelError(
            f"{target.parent}: the converted model cannot be written ({error}); set TRITON_SPEC_CACHE to a "
            "directory with room"
        ) from error
    return target


def check_converted(directory: Path) -> None:
    """Raise ModelError if a converted directory is incomplete: weights by their header, other files by their digest."""
    digests = read_json_object(directory / MANIFEST).get("sha256")
    if not isinstance(digests, dict) or "config.json" not in digests:
        raise ModelError(f"{directory / MANIFEST}: lists no digests")
    for name, digest in digests.items():
        path = directory / name
        if not path.is_file() or _digest(path) != digest:
            raise ModelError(f"{path}: missing or changed since it was written")
    read_headers(directory)
    read_config(directory)


def convert(file: Path, directory: Path, progress: StageProgress | None = None) -> None:
    """Write config.json, generation_config.json, tokenizer files and bf16 weights of a GGUF file into `directory`.

    `progress` is called with bytes of the GGUF file's tensors. Raises ModelError naming the file.
    """
    reader, metadata = read_metadata(file)
    try:
        names = {tensor.name for tensor in reader.tensors}
        factors = next((t.data for t in reader.tensors if t.name == ROPE_FACTORS), None)
        values = config_values(metadata, names, factors)
        generation = generation_values(metadata)
        config = parse_config(values, generation)
        build_tokenizer(metadata).save_pretrained(directory)
        weights = _dequantised(reader, config, progress)
    except ModelError as error:
        raise ModelError(f"{file}: {error}") from error
    save_file(weights, directory / SINGLE_FILE, metadata={"format": "pt"})
    (directory / "config.json").write_text(json.dumps(values, indent=2), encoding="utf-8")
    (directory / "generation_config.json").write_text(json.dumps(generation, indent=2), encoding="utf-8")
    digests = {path.name: _digest(path) for path in sorted(directory.iterdir()) if path.name != SINGLE_FILE}
    manifest = {"source": str(file.resolve()), "sha256": digests}
    (directory / MANIFEST).write_text(json.dumps(manifest, indent=2), encoding="utf-8")


def _dequantised(reader: Any, config: ModelConfig, progress: StageProgress | None) -> Mapping[str, torch.Tensor]:
    """Every tensor in bf16 under its Hugging Face name, query and key rows back in half-split rotary order."""
    total = sum(int(tensor.n_bytes) for tensor in reader.tensors)
    done, weights = 0, {}
    for tensor in reader.tensors:
        if tensor.name != ROPE_FACTORS:
            try:
                values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            except NotImplementedError as error:
                raise ModelError(f"{tensor.name}: quantisation {tensor.tensor_type.name} is not supported") from error
            weight = torch.from_numpy(np.require(values, requirements="W")).to(torch.bfloat16)
            if ".attn_q." in tensor.name:
                weight = half_split_rows(weight, config.num_heads)
            elif ".attn_k." in tensor.name:
                weight = half_split_rows(weight, config.num_kv_heads)
            weights[hugging_face_name(tensor.name)] = weight
        done += int(tensor.n_bytes)
        if progress is not None:
            progress(done, total)
    return weights


def half_split_rows(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Undo llama.cpp's interleaving of a projection's rows [heads * head_dim, ...]: pairs (i, i + D/2) again.

    Raises ModelError for a number of rows that cannot be that of so many heads.
    """
    if weight.shape[0] % (2 * heads):
        raise ModelError(f"a query or key projection has {weight.shape[0]} rows, which are not {heads} heads of pairs")
    paired = weight.reshape(heads, -1, 2, *weight.shape[1:])  # llama.cpp stores channel i next to channel i + D/2
    return paired.transpose(1, 2).reshape(weight.shape).contiguous()


def hugging_face_name(name: str) -> str:
    """The Hugging Face name of a GGUF tensor. Raises ModelError if the family has no such tensor."""
    stem, _, kind = name.rpartition(".")
    if kind in ("weight", "bias"):
        if stem in GLOBAL_NAMES:
            return f"{GLOBAL_NAMES[stem]}.{kind}"
        block, _, part = stem.removeprefix("blk.").partition(".")
        if stem.startswith("blk.") and block.isdigit() and part in BLOCK_NAMES:
            return f"model.layers.{block}.{BLOCK_NAMES[part]}.{kind}"
    raise ModelError(f"tensor {name!r} is not part of a supported model")


def _publish(made: Path, target: Path) -> None:
    """Move a finished directory into place; if another process was faster, its result is used.

    Raises ModelError if that result is damaged.
    """
    for path in made.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    try:
        made.rename(target)
    except OSError:
        if not target.is_dir():
            raise
        check_converted(target)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
