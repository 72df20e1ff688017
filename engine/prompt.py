"""Text or chat messages to token ids, and token ids back to text as they arrive."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ModelError, PromptError
from engine.model.config import ModelConfig, read_json_object

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PLAIN_CLASSES = ("TokenizersBackend", "PreTrainedTokenizerFast")  # of tokenizers that are their tokenizer.json
Messages = Sequence[Mapping[str, str]]  # chat messages: {"role": "user" | "assistant" | "system", "content": text}


def load_tokenizer(directory: Path) -> "PreTrainedTokenizerBase":
    """The tokenizer of a model directory, from its files alone. Raises ModelError naming the directory."""
    settings = directory / "tokenizer_config.json"
    plain = settings.exists() and read_json_object(settings).get("tokenizer_class") in PLAIN_CLASSES
    try:
        if plain:  # AutoTokenizer imports every model family first, which takes a second or two
            from transformers import PreTrainedTokenizerFast as TokenizerClass
        else:
            from transformers import AutoTokenizer as TokenizerClass
        return TokenizerClass.from_pretrained(
            directory, local_files_only=True, trust_remote_code=False, clean_up_tokenization_spaces=False
        )
    except Exception as error:  # the libraries raise anything, down to Exception itself, for damaged files
        raise ModelError(f"{directory}: its tokenizer files cannot be loaded: {error}") from error


def encode_prompt(
    tokenizer: "PreTrainedTokenizerBase", config: ModelConfig, prompt: str | Messages, raw: bool = False
) -> list[int]:
    """Token ids of a prompt, ready for the model.

    A text is one user message; a list of messages is a conversation. Both go through the chat template, with the
    opening of the answer. `raw` passes a text as it is, with the special tokens the tokenizer puts in front itself.
    Raises PromptError for an empty prompt, one that leaves no position for an answer, or one the model cannot take.
    """
    if raw:
        if not isinstance(prompt, str):
            raise PromptError("raw prompts are texts; messages need the chat template")
        if not prompt:
            raise PromptError("the prompt is empty")
        _require_characters(prompt)
        ids = list(tokenizer(prompt)["input_ids"])
    else:
        if not isinstance(prompt, Sequence):
            raise PromptError(f"the prompt is {prompt!r}; it must be a text or a list of messages")
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        text = _render(tokenizer, messages)
        _require_characters(text)
        ids = tokenizer.encode(text, add_special_tokens=False)
    if not ids:
        raise PromptError("the prompt is empty")
    limit = config.max_position_embeddings - 1
    if len(ids) > limit:
        raise PromptError(f"the prompt has {len(ids)} tokens; the model takes at most {limit} and an answer")
    if max(ids) >= config.vocab_size:
        raise PromptError(f"the tokenizer gave id {max(ids)}, but the model's vocab_size is {config.vocab_size}")
    return ids


def _require_characters(text: str) -> None:
    """Raise PromptError for halves of surrogate pairs, which stand for bytes that are no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PromptError(f"the prompt is not valid Unicode: {error}") from error


def _render(tokenizer: "PreTrainedTokenizerBase", messages: list[Mapping[str, str]]) -> str:
    if tokenizer.chat_template is None:
        raise PromptError("the model has no chat template; pass the prompt raw")
    if not messages:
        raise PromptError("the prompt is empty: there are no messages")
    for message in messages:
        keys = ("role", "content")
        if not isinstance(message, Mapping) or not all(isinstance(message.get(key), str) for key in keys):
            raise PromptError(f"message {message!r} must have a role and a content, both texts")
    if not messages[-1]["content"].strip():
        raise PromptError("the prompt is empty: the last message has no text")
    try:
        return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # templates run in Jinja and raise their own errors, for instance for a wrong role
        raise PromptError(f"the chat template refuses the messages: {error}") from error


class Detokenizer:
    """Text of a growing list of token ids, in pieces that never end inside a UTF-8 character.

    The pieces and `finish()` together are the decoded text of all ids, without special tokens.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        self._tokenizer = tokenizer
        self._ids: list[int] = []
        self._start = 0  # decoding begins here: one shown piece back, since a token's text may depend on its neighbour
        self._shown = 0  # ids before this index are shown

    def add(self, token_ids: Sequence[int]) -> str:
        """The text that these further ids complete; empty while a character is unfinished."""
        self._ids += token_ids
        text = self._fresh_text()
        if not text or text.endswith("\ufffd"):  # bytes that are no character, or not yet
            return ""
        self._start, self._shown = self._shown, len(self._ids)
        return text

    def finish(self) -> str:
        """The text still held back at the end: unfinished bytes appear as U+FFFD."""
        text = self._fresh_text()
        self._start = self._shown = len(self._ids)
        return text

    def _fresh_text(self) -> str:
        shown = self._decode(self._ids[self._start : self._shown])
        return self._decode(self._ids[self._start :])[len(shown) :]

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=True)
