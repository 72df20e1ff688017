"""The Python API: load a model once, then answer prompts."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from types import TracebackType

from engine.build import Engine, build
from engine.config import EngineConfig, SamplingParams, SpeculativeConfig
from engine.errors import PromptError
from engine.progress import Progress
from engine.prompt import Detokenizer, Messages, encode_prompt
from engine.stats import Metrics


@dataclass(frozen=True)
class Result:
    """An answer. token_ids end with the stop token if finish_reason is "stop"; "length" means that the budget or the
    context is used up. text is token_ids without special tokens."""

    prompt: str | Messages
    text: str
    token_ids: list[int]
    finish_reason: str
    metrics: Metrics


class Stream:
    """The text of one answer in pieces, as it is decoded; it frees its memory when it ends or is closed.

    result: the whole answer once the last piece is out, None before that and after an early close.
    """

    def __init__(self, pieces: Generator[str, None, Result]) -> None:
        self._pieces = pieces
        self.result: Result | None = None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            return next(self._pieces)
        except StopIteration as end:
            if end.value is not None:  # a generator gives its value once
                self.result = end.value
            raise

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the answer early."""
        self._pieces.close()


class LLM:
    """A language model ready to answer, one prompt at a time.

    model: "smollm2", a Hugging Face directory or a GGUF file. speculative: how next tokens are guessed; it changes the
    speed and no token. dtype: "bfloat16" or "float32". threads: CPU threads, None: as many as PyTorch uses; it is
    PyTorch's setting for the whole process. progress: called with (stage, amount done, amount in all) while loading.
    engine: the parts, for those who look closer: `engine.plan.decisions` says what runs and why.
    Raises EngineError for a setting or a model that cannot be used.
    """

    def __init__(
        self,
        model: str | PathLike[str] = "smollm2",
        speculative: SpeculativeConfig | None = None,
        dtype: str = "bfloat16",
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        config = EngineConfig(fspath(model), speculative or SpeculativeConfig(), dtype, threads)
        self.engine: Engine = build(config, progress)

    def generate(
        self, prompts: Sequence[str | Messages], params: SamplingParams | None = None, raw: bool = False
    ) -> list[Result]:
        """Answer each prompt, in order. The arguments and errors are those of `stream`.

        All prompts are checked before the first is answered.
        """
        if isinstance(prompts, str):
            raise PromptError("generate takes a list of prompts; pass [prompt]")
        return [_finished(stream) for stream in [self.stream(prompt, params, raw) for prompt in prompts]]

    def stream(self, prompt: str | Messages, params: SamplingParams | None = None, raw: bool = False) -> Stream:
        """Answer one prompt piece by piece; decoding starts with the first piece that is asked for.

        prompt: a text, or chat messages ({"role", "content"}). The chat template applies unless `raw`.
        Raises PromptError for a prompt that is empty, too long, or not to be had by the template; while decoding,
        ModelError if the model computes NaN and RuntimeError if another stream is still open.
        """
        prompt_ids = encode_prompt(self.engine.tokenizer, self.engine.model_config, prompt, raw)
        return Stream(self._pieces(prompt, prompt_ids, params or SamplingParams()))

    def _pieces(
        self, prompt: str | Messages, prompt_ids: Sequence[int], params: SamplingParams
    ) -> Generator[str, None, Result]:
        decoder, text = self.engine.decoder, Detokenizer(self.engine.tokenizer)
        pieces = []
        request = decoder.open(prompt_ids, params, self.engine.model_config.eos_token_ids)
        try:
            decoder.prefill(request)
            shown = 0
            while True:
                piece = text.add(request.token_ids[shown:])
                shown = len(request.token_ids)
                if request.finish_reason is not None:
                    piece += text.finish()
                if piece:
                    pieces.append(piece)
                    yield piece
                if request.finish_reason is not None:
                    break
                decoder.round([request])
        finally:
            decoder.close(request)
        return Result(prompt, "".join(pieces), request.token_ids, request.finish_reason, request.stats.metrics())


def _finished(stream: Stream) -> Result:
    for _ in stream:
        pass
    assert stream.result is not None
    return stream.result
