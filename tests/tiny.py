"""Tiny random models with a tokenizer, as Hugging Face directories."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = (("a", "b"), ("Ġ", "a"), ("1", "2"))
VOCAB_SIZE = 262  # the special tokens, one token for each byte, the merges
EOS_ID = 2
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tiny_tokenizer(chat_template: str | None = CHAT_TEMPLATE) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer: three special tokens, the bytes, and three merges."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([*SPECIAL_TOKENS, *alphabet, *map("".join, MERGES)])}
    tokenizer = Tokenizer(models.BPE(vocabulary, list(MERGES)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        chat_template=chat_template,
        clean_up_tokenization_spaces=False,
    )


def tiny_config(**changes: Any) -> LlamaConfig:
    """Two layers, hidden 64, 4 query and 2 key/value heads; `changes` are LlamaConfig arguments."""
    settings: dict[str, Any] = {
        "vocab_size": VOCAB_SIZE,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "bos_token_id": 1,
        "eos_token_id": EOS_ID,
        "tie_word_embeddings": False,
    }
    return LlamaConfig(**{**settings, **changes})


def tiny_model(seed: int = 0, **changes: Any) -> LlamaForCausalLM:
    """A random model in f32. Weights have standard deviation 0.2, so that logits differ clearly; biases are not 0."""
    torch.manual_seed(seed)
    model = LlamaForCausalLM(tiny_config(initializer_range=0.2, **changes)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(std=0.2)
            elif "norm" in name:
                parameter.uniform_(0.5, 1.5)
    return model


def save_tiny_model(directory: Path, seed: int = 0, max_shard_size: str = "1GB", **changes: Any) -> LlamaForCausalLM:
    """Write a random model with its tokenizer into `directory` and return it; small shard sizes give an index."""
    model = tiny_model(seed, **changes)
    model.save_pretrained(directory, max_shard_size=max_shard_size)
    tiny_tokenizer().save_pretrained(directory)
    return model
