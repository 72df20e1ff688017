"""Write a tiny model as a GGUF file, the way llama.cpp's converter does."""

from pathlib import Path

import gguf
import numpy as np
import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from tests.tiny import MERGES, SPECIAL_TOKENS

BLOCK_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
GLOBAL_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def write_gguf(
    file: Path,
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    quantisation: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
    splitting: str = "smollm",
    architecture: str = "llama",
    rope_factors: torch.Tensor | None = None,
    scaling_type: str | None = None,
    extra_tensor: str | None = None,
) -> None:
    """Write `model` with matrices in `quantisation`; the keywords after it vary what a reader may refuse."""
    config = model.config
    writer = gguf.GGUFWriter(file, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if scaling_type is not None:
        writer.add_rope_scaling_type(gguf.RopeScalingType(scaling_type))
    _write_tokenizer(writer, tokenizer, splitting)
    for name, tensor in model.state_dict().items():
        if name != "lm_head.weight" or not config.tie_word_embeddings:
            values = tensor.float()
            if "q_proj" in name or "k_proj" in name:
                values = _interleaved(values, config.head_dim)
            _add(writer, _gguf_name(name), values.numpy(), quantisation)
    if rope_factors is not None:
        writer.add_tensor("rope_freqs.weight", rope_factors.numpy())
    if extra_tensor is not None:
        writer.add_tensor(extra_tensor, np.zeros(32, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_tokenizer(writer: gguf.GGUFWriter, tokenizer: PreTrainedTokenizerFast, splitting: str) -> None:
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    kinds = [gguf.TokenType.CONTROL if token in SPECIAL_TOKENS else gguf.TokenType.NORMAL for token in tokens]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(splitting)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in MERGES])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_eot_token_id(0)
    if tokenizer.chat_template is not None:
        writer.add_chat_template(tokenizer.chat_template)


def _interleaved(values: torch.Tensor, head_dim: int) -> torch.Tensor:
    """llama.cpp's order of query and key rows: channel i of a head is followed by channel i + head_dim / 2."""
    order = torch.stack([torch.arange(head_dim // 2), torch.arange(head_dim // 2) + head_dim // 2], 1).flatten()
    heads = values.shape[0] // head_dim
    return torch.cat([values[head * head_dim : (head + 1) * head_dim][order] for head in range(heads)])


def _gguf_name(name: str) -> str:
    stem, _, kind = name.rpartition(".")
    if stem in GLOBAL_NAMES:
        return f"{GLOBAL_NAMES[stem]}.{kind}"
    block, _, part = stem.removeprefix("model.layers.").partition(".")
    return f"blk.{block}.{BLOCK_NAMES[part]}.{kind}"


def _add(writer: gguf.GGUFWriter, name: str, values: np.ndarray, quantisation: gguf.GGMLQuantizationType) -> None:
    if values.ndim == 1 or quantisation == gguf.GGMLQuantizationType.F32:
        writer.add_tensor(name, np.ascontiguousarray(values))
    else:
        writer.add_tensor(name, gguf.quants.quantize(values, quantisation), raw_dtype=quantisation)
