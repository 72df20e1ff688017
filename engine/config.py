"""What a user may set, checked when it is made and never changed afterwards."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from engine.draft.table import drafters
from engine.errors import EngineError

DTYPES = ("bfloat16", "float32")
MOST_THREADS = 1024  # a number that is a mistake, not a machine, must not reach the thread pool, which ends the process
MOST_DRAFT_TOKENS = 1024  # as many nodes as the tree ops take


@dataclass(frozen=True)
class SpeculativeConfig:
    """How the next tokens are guessed. Output is the same whatever is set here; only the speed differs.

    algorithm: "none" (plain decoding), "ngram" (continuations of earlier occurrences of the latest tokens), or the
    drafter of another package.
    num_draft_tokens: nodes of the tree verified in one round, the root included; 2 to 1024.
    ngram_min, ngram_max: lengths of the token sequences that are looked up, longest first.
    Raises EngineError for a value out of range.
    """

    algorithm: str = "none"
    num_draft_tokens: int = 8
    ngram_min: int = 2
    ngram_max: int = 4

    def __post_init__(self) -> None:
        if self.algorithm not in (known := drafters()):
            raise EngineError(f"speculative algorithm {self.algorithm!r} is unknown; known: {', '.join(known)}")
        _require_integer("num_draft_tokens", self.num_draft_tokens, 2, MOST_DRAFT_TOKENS)
        _require_integer("ngram_min", self.ngram_min, 1)
        _require_integer("ngram_max", self.ngram_max, 1)
        if self.ngram_min > self.ngram_max:
            raise EngineError(f"ngram_min {self.ngram_min} is above ngram_max {self.ngram_max}")

    @property
    def tree_nodes(self) -> int:
        """Nodes of the largest tree that is verified: 1 for plain decoding."""
        return 1 if self.algorithm == "none" else self.num_draft_tokens


@dataclass(frozen=True)
class SamplingParams:
    """When an answer ends; decoding is greedy.

    max_new_tokens: tokens of the answer at most, the end-of-sequence token included; 0 gives an empty answer.
    stop_token_ids: ids that end an answer besides the model's own end-of-sequence ids; the id is part of the answer.
    ignore_eos: the model's end-of-sequence ids do not end the answer.
    Raises EngineError for a value out of range.
    """

    max_new_tokens: int = 256
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        _require_integer("max_new_tokens", self.max_new_tokens, 0)
        if not isinstance(self.stop_token_ids, Collection):
            raise EngineError(f"stop_token_ids is {self.stop_token_ids!r}; it must be a list of token ids")
        for token in self.stop_token_ids:
            _require_integer("a stop token id", token, 0)
        if not isinstance(self.ignore_eos, bool):
            raise EngineError(f"ignore_eos is {self.ignore_eos!r}; it must be True or False")


@dataclass(frozen=True)
class EngineConfig:
    """Everything that decides how an engine is built.

    model: "smollm2", a Hugging Face directory, or a GGUF file. dtype: of weights and KV, "bfloat16" or "float32".
    threads: CPU threads, at most 1024; None: as many as PyTorch uses. Raises EngineError for a value out of range.
    """

    model: str = "smollm2"
    speculative: SpeculativeConfig = field(default_factory=SpeculativeConfig)
    dtype: str = "bfloat16"
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise EngineError(f"dtype {self.dtype!r} is not supported; supported: {', '.join(DTYPES)}")
        if self.threads is not None:
            _require_integer("threads", self.threads, 1, MOST_THREADS)


def _require_integer(name: str, value: Any, least: int, most: int | None = None) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise EngineError(f"{name} is {value!r}; it must be an integer of at least {least}")
    if most is not None and value > most:
        raise EngineError(f"{name} is {value}; it must be at most {most}")
