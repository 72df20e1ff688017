"""Decode the same prompts in several ways, in turn, and compare them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import mean, median

from engine.bench.decoders import Answer, Decode
from engine.errors import EngineError


@dataclass(frozen=True)
class Row:
    """One way of decoding; medians over the prompts.

    tokens_per_s: tokens after the first per second since the first. roofline_fraction: bytes of weights per token times
    tokens_per_s over the read bandwidth; it can pass 1 only where one reading of the weights gives several tokens.
    accept_length: mean tokens per round, None where there are no rounds. speedup: of the same prompt over transformers.
    speedup_over_plain: over plain decoding by this engine. same_as_plain: prompts with the very tokens of plain
    decoding.
    """

    mode: str
    tokens_per_s: float
    roofline_fraction: float
    accept_length: float | None
    speedup: float
    speedup_over_plain: float
    same_as_plain: int


def fixed_prompts() -> list[str]:
    """The twelve prompts that every measurement uses."""
    return json.loads(files("engine.bench").joinpath("prompts.json").read_text(encoding="utf-8"))


def answers_in_turn(
    modes: Mapping[str, Decode], prompts: Sequence[str], report: Callable[[int, int], None]
) -> dict[str, list[Answer]]:
    """The answers of each mode to each prompt; all modes answer a prompt before the next one, after one unmeasured
    round of the first prompt. `report` is told (prompts done, prompts in all)."""
    for decode in modes.values():
        decode(prompts[0])
    answers: dict[str, list[Answer]] = {mode: [] for mode in modes}
    for done, prompt in enumerate(prompts):
        report(done, len(prompts))
        for mode, decode in modes.items():
            answers[mode].append(decode(prompt))
    report(len(prompts), len(prompts))
    return answers


def compare(answers: Mapping[str, Sequence[Answer]], weight_bytes: int, gb_per_s: float) -> list[Row]:
    """A row per mode. `answers` must have the modes "none" and "transformers"; answers of one token are left out.

    Raises EngineError if no answer has more.
    """
    count = len(answers["none"])
    measured = [i for i in range(count) if all(given[i].tokens_per_s > 0 for given in answers.values())]
    if not measured:
        raise EngineError("no answer has more than one token, so there is no speed to measure; use another model")
    rows = []
    for mode, given in answers.items():
        speed = median(given[i].tokens_per_s for i in measured)
        lengths = [given[i].accept_length for i in measured if given[i].accept_length is not None]
        over = {
            base: median(given[i].tokens_per_s / answers[base][i].tokens_per_s for i in measured)
            for base in ("transformers", "none")
        }
        rows.append(
            Row(
                mode=mode,
                tokens_per_s=speed,
                roofline_fraction=speed * weight_bytes / (gb_per_s * 1e9),
                accept_length=mean(lengths) if lengths else None,
                speedup=over["transformers"],
                speedup_over_plain=over["none"],
                same_as_plain=sum(given[i].token_ids == answers["none"][i].token_ids for i in range(count)),
            )
        )
    return rows
