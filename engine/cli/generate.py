"""`triton-spec generate`: answer prompts, streamed as text or as one JSON object per line."""

import argparse
import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.cli.display import loading_display, print_slow_parts
from engine.cli.prompts import read_prompts
from engine.config import DTYPES, SamplingParams, SpeculativeConfig
from engine.draft.table import drafters

if TYPE_CHECKING:
    from engine.llm import Result, Stream

HELP = "answer prompts with a language model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    defaults = SamplingParams()
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="what to answer; several are answered in turn")
    parser.add_argument(
        "--model", default="smollm2", metavar="MODEL",
        help="a Hugging Face directory, a .gguf file, or smollm2, the embedded model (default)",
    )  # fmt: skip
    parser.add_argument(
        "--speculative", default="none", choices=tuple(drafters()),
        help="how next tokens are guessed; changes the speed and no token (default: none)",
    )  # fmt: skip
    parser.add_argument(
        "--max-new-tokens", type=int, default=defaults.max_new_tokens, metavar="N",
        help=f"tokens of an answer at most (default: {defaults.max_new_tokens})",
    )  # fmt: skip
    parser.add_argument(
        "--prompts-file", metavar="F.json", help='more prompts: a JSON list of texts or of objects with a "prompt"'
    )
    parser.add_argument("--dtype", default="bfloat16", choices=DTYPES, help="of weights and KV (default: bfloat16)")
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: as many as PyTorch uses)")
    parser.add_argument("--raw", action="store_true", help="pass prompts as they are, without the chat template")
    parser.add_argument("--json", action="store_true", help="print one JSON object per prompt and line")


def run(arguments: argparse.Namespace) -> int:
    """Answer the prompts. Raises EngineError for what the user can correct."""
    params = SamplingParams(max_new_tokens=arguments.max_new_tokens)
    speculative = SpeculativeConfig(arguments.speculative)
    prompts = read_prompts(arguments.prompt, arguments.prompts_file)
    with loading_display() as progress:
        from engine.llm import LLM  # imports torch and transformers: after the arguments have been checked

        llm = LLM(arguments.model, speculative, arguments.dtype, arguments.threads, progress)
    print_slow_parts(llm.engine.plan)
    streams = [llm.stream(prompt, params, arguments.raw) for prompt in prompts]
    show = _show_json if arguments.json else _show_text
    results = [show(prompt, stream, len(prompts) > 1) for prompt, stream in zip(prompts, streams, strict=True)]
    if not arguments.json:
        print(figures(results))
    return 0


def _show_json(prompt: str, stream: "Stream", several: bool) -> "Result":
    for _ in stream:
        pass
    print(json.dumps(dataclasses.asdict(stream.result), ensure_ascii=False), flush=True)
    return stream.result


def _show_text(prompt: str, stream: "Stream", several: bool) -> "Result":
    if several:
        print(f"> {prompt}", flush=True)
    for piece in stream:
        print(piece, end="", flush=True)
    print("\n")
    return stream.result


def figures(results: Sequence["Result"]) -> str:
    """One line about answers: tokens, speed, tokens per round, time to the first token."""
    metrics = [result.metrics for result in results]
    rounds = sum(each.verify_rounds for each in metrics)
    decoded = sum((each.accept_length or 0) * each.verify_rounds for each in metrics)
    seconds = sum(
        each.accept_length * each.verify_rounds / each.decode_tokens_per_s for each in metrics if each.verify_rounds
    )
    waits = [each.ttft_s for each in metrics if each.ttft_s is not None]
    parts = [f"{sum(len(result.token_ids) for result in results)} tokens"]
    if rounds:
        parts += [f"{decoded / seconds:.1f} tokens/s", f"accept length {decoded / rounds:.2f}"]
    if waits:
        parts.append(f"first token after {sum(waits) / len(waits):.3f} s")
    return ", ".join(parts)
