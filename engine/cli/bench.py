"""`triton-spec bench`: plain decoding, n-gram speculation and transformers on the same weights and prompts."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from engine.cli.display import loading_display, print_slow_parts
from engine.config import SamplingParams, SpeculativeConfig
from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.bench.compare import Row

HELP = "measure decoding speed against transformers and the memory bandwidth"
NEW_TOKENS = 64
MODEL_HELP = "a Hugging Face directory, a .gguf file, or smollm2, the embedded model (default)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--model", default="smollm2", metavar="MODEL", help=MODEL_HELP)
    parser.add_argument(
        "--max-new-tokens", type=int, default=NEW_TOKENS, metavar="N", help=f"of each answer (default: {NEW_TOKENS})"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: as many as PyTorch uses)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print. Raises EngineError for what the user can correct."""
    params = SamplingParams(max_new_tokens=arguments.max_new_tokens)
    if params.max_new_tokens < 2:
        raise EngineError(f"max_new_tokens is {params.max_new_tokens}; speed needs answers of at least 2 tokens")
    with loading_display() as progress:
        import torch

        from engine.bench.bandwidth import read_bandwidth
        from engine.bench.compare import answers_in_turn, compare, fixed_prompts
        from engine.bench.decoders import own_decoding, transformers_decoding
        from engine.llm import LLM
        from engine.progress import of_stage

        plain = LLM(arguments.model, threads=arguments.threads, progress=progress)
        speculative = LLM(arguments.model, SpeculativeConfig("ngram"))
        bandwidth = read_bandwidth()
        engine, prompts = plain.engine, fixed_prompts()
        modes = {
            "transformers": transformers_decoding(engine, params),
            "none": own_decoding(plain, params),
            "ngram": own_decoding(speculative, params),
        }
        answers = answers_in_turn(modes, prompts, of_stage(progress, "decoding"))
    print_slow_parts(engine.plan)
    rows = compare(answers, engine.weight_bytes, bandwidth.gb_per_s)
    facts = {
        "target": f"{engine.target.kind}:{engine.target.name}",
        "threads": torch.get_num_threads(),
        "model": engine.config.model,
        "dtype": engine.config.dtype,
        "prompts": len(prompts),
        "max_new_tokens": params.max_new_tokens,
        "weight_bytes_per_token": engine.weight_bytes,
        "read_bandwidth_gb_s": bandwidth.gb_per_s,
        "read_bandwidth_method": bandwidth.method,
    }
    if arguments.json:
        print(json.dumps({**facts, "rows": [asdict(row) for row in rows]}))
    else:
        for name, value in facts.items():
            print(f"{name.replace('_', ' ')}: {value}")
        Console().print(_table(rows, len(prompts)))
        print("speedup: over transformers, median of the prompts; as plain: answers with the tokens of plain decoding")
    return 0


def _table(rows: Sequence["Row"], prompts: int) -> Table:
    table = Table()
    names = ("mode", "tokens/s", "of roofline", "accept length", "speedup", "over plain", "as plain")
    for name in names:
        table.add_column(name, justify="left" if name == "mode" else "right", no_wrap=name == "mode")
    for row in rows:
        table.add_row(
            row.mode,
            f"{row.tokens_per_s:.1f}",
            f"{row.roofline_fraction:.0%}",
            "" if row.accept_length is None else f"{row.accept_length:.2f}",
            f"{row.speedup:.2f}x",
            f"{row.speedup_over_plain:.2f}x",
            f"{row.same_as_plain}/{prompts}",
        )
    return table
