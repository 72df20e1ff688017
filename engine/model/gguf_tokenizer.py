"""The tokenizer of a GGUF file, built from its metadata (byte-level BPE)."""

from collections.abc import Mapping
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from engine.errors import ModelError

CONTROL, USER_DEFINED = 3, 4  # GGUF token types that are matched before splitting
LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def build_tokenizer(metadata: Mapping[str, Any]) -> PreTrainedTokenizerFast:
    """The tokenizer with its special tokens and chat template.

    How text is split before BPE is named by `tokenizer.ggml.pre`. Raises ModelError naming a kind of tokenizer or of
    splitting that is not supported, or a missing entry.
    """
    kind = metadata.get("tokenizer.ggml.model")
    if kind != "gpt2":
        raise ModelError(
            f"tokenizer.ggml.model {kind!r} is not supported; supported: gpt2; use the model's Hugging Face directory"
        )
    tokens, types, merges = (_entry(metadata, name) for name in ("tokens", "token_type", "merges"))
    if len(types) != len(tokens):
        raise ModelError(f"tokenizer.ggml.token_type has {len(types)} entries for {len(tokens)} tokens")
    splitting = metadata.get("tokenizer.ggml.pre")
    llama3 = splitting == "llama-bpe"
    vocabulary = {token: index for index, token in enumerate(tokens)}
    try:
        pairs = [(first, second) for first, second in (merge.split(" ", 1) for merge in merges)]
        tokenizer = Tokenizer(models.BPE(vocabulary, pairs, ignore_merges=llama3))
    except Exception as error:  # the library raises Exception itself for a merge of unknown tokens
        raise ModelError(f"tokenizer.ggml.merges does not fit tokenizer.ggml.tokens: {error}") from error
    tokenizer.pre_tokenizer = _splitter(splitting)
    tokenizer.decoder = decoders.ByteLevel()
    fixed = [(token, mark) for token, mark in zip(tokens, types, strict=True) if mark in (CONTROL, USER_DEFINED)]
    tokenizer.add_tokens([AddedToken(token, special=mark == CONTROL, normalized=False) for token, mark in fixed])
    special = {name: _special_token(metadata, tokens, name) for name in ("bos", "eos", "unknown", "padding")}
    if special["bos"] is not None and metadata.get("tokenizer.ggml.add_bos_token", llama3):
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{special['bos']} $A", special_tokens=[(special["bos"], vocabulary[special["bos"]])]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=special["bos"],
        eos_token=special["eos"],
        unk_token=special["unknown"],
        pad_token=special["padding"],
        chat_template=metadata.get("tokenizer.chat_template"),
        clean_up_tokenization_spaces=False,
    )


def _splitter(name: Any) -> pre_tokenizers.PreTokenizer:
    """The pre-tokenizer that `tokenizer.ggml.pre` names, as in the models' tokenizer.json."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if name == "gpt-2":
        return byte_level
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    if name == "llama-bpe":
        words = pre_tokenizers.Split(Regex(LLAMA3_WORDS), behavior="isolated")
        return pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    raise ModelError(
        f"tokenizer.ggml.pre {name!r} is not supported; supported: gpt-2, llama-bpe, smollm; "
        "use the model's Hugging Face directory"
    )


def _entry(metadata: Mapping[str, Any], name: str) -> list[Any]:
    value = metadata.get(f"tokenizer.ggml.{name}")
    if not isinstance(value, list):
        raise ModelError(f"the metadata lacks tokenizer.ggml.{name}")
    return value


def _special_token(metadata: Mapping[str, Any], tokens: list[str], name: str) -> str | None:
    index = metadata.get(f"tokenizer.ggml.{name}_token_id")
    if index is None:
        return None
    if not 0 <= index < len(tokens):
        raise ModelError(f"tokenizer.ggml.{name}_token_id {index} is outside the {len(tokens)} tokens")
    return tokens[index]
