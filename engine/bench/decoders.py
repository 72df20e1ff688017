"""The ways of decoding that are compared, each a function from a prompt to an answer with its speed."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from transformers import AutoModelForCausalLM
from transformers.generation import BaseStreamer
from transformers.utils.logging import disable_progress_bar

from engine.build import Engine
from engine.config import SamplingParams
from engine.llm import LLM
from engine.prompt import encode_prompt


@dataclass(frozen=True)
class Answer:
    """Tokens of an answer; tokens after the first per second since the first; tokens per round, None without rounds."""

    token_ids: list[int]
    tokens_per_s: float
    accept_length: float | None


Decode = Callable[[str], Answer]


def own_decoding(llm: LLM, params: SamplingParams) -> Decode:
    """Answers of this engine."""

    def decode(prompt: str) -> Answer:
        result = llm.generate([prompt], params)[0]
        metrics = result.metrics
        return Answer(result.token_ids, metrics.decode_tokens_per_s or 0.0, metrics.accept_length)

    return decode


def transformers_decoding(engine: Engine, params: SamplingParams) -> Decode:
    """Greedy answers of transformers' generate on the files, dtype and prompts of an engine."""
    disable_progress_bar()  # the command line has its own display
    dtype = getattr(torch, engine.config.dtype)
    model = AutoModelForCausalLM.from_pretrained(engine.directory, dtype=dtype, local_files_only=True).eval()

    def decode(prompt: str) -> Answer:
        prompt_ids = torch.tensor([encode_prompt(engine.tokenizer, engine.model_config, prompt)])
        arrivals = Arrivals()
        output = model.generate(
            prompt_ids,
            attention_mask=torch.ones_like(prompt_ids),
            max_new_tokens=params.max_new_tokens,
            do_sample=False,
            pad_token_id=0,
            streamer=arrivals,
        )
        return Answer(output[0, prompt_ids.shape[1] :].tolist(), arrivals.tokens_per_s(), None)

    return decode


class Arrivals(BaseStreamer):
    """Notes when transformers hands out the prompt and then each token."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def put(self, value: torch.Tensor) -> None:
        """Called with the prompt first, then with each token."""
        self._times.append(time.perf_counter())

    def end(self) -> None:
        """Called after the last token."""

    def tokens_per_s(self) -> float:
        """Tokens after the first per second since the first."""
        first, last = self._times[1], self._times[-1]
        return (len(self._times) - 2) / (last - first) if last > first else 0.0
