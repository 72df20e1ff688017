"""Measure kernels, launches and compilation of the CPU backend against PyTorch, in one process and in turn."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import torch
import triton

from benchmarks import attention, compiling, elementwise, launches, matmul
from benchmarks.case import Case, Row, isa, measure

HELP = "kernels, launches and compilation against PyTorch"
FAMILIES = (elementwise, matmul, attention, launches, compiling)
SECONDS = 1.0  # of samples a row
LINE = "{:34} {:>7} {:>13} {:>13} {:>7} {:>7}  {}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    threads = sorted({1, torch.get_num_threads()})
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to this file, too")
    parser.add_argument("--only", type=re.compile, metavar="PATTERN", help="cases whose name this expression finds")
    parser.add_argument(
        "--threads", type=_numbers, default=threads, metavar="N,N",
        help=f"numbers of threads to measure with (default: {','.join(map(str, threads))})",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 2 if no case has such a name."""
    chosen = [case for case in all_cases() if arguments.only is None or arguments.only.search(case.name)]
    if not chosen:
        print(f"--only {arguments.only.pattern}: no case has such a name; there are:", file=sys.stderr)
        print("\n".join(case.name for case in all_cases()), file=sys.stderr)
        return 2
    print(f"{isa()}; ratio: the baseline's time over ours, medians of samples taken in turn")
    print(LINE.format("case", "threads", "ours, us", "baseline, us", "ratio", "wanted", "baseline"))
    rows = []
    for row in measured(chosen, arguments.threads, SECONDS):
        rows.append(row)
        print(_line(row), flush=True)
    if arguments.json:
        facts = {"isa": isa(), "torch": torch.__version__, "triton": triton.__version__}
        arguments.json.write_text(json.dumps({**facts, "rows": [asdict(row) for row in rows]}, indent=1) + "\n")
    return 0


def all_cases(tiny: bool = False) -> Iterator[Case]:
    """The cases of every family; `tiny`: on a few elements, to see that they run."""
    for family in FAMILIES:
        yield from family.cases(tiny)


def measured(cases: Sequence[Case], threads: Sequence[int], seconds: float) -> Iterator[Row]:
    """A row for each case and number of threads, as they are done."""
    for case in cases:
        for number in threads[:1] if case.serial else threads:
            yield measure(case, number, seconds)


def _numbers(text: str) -> list[int]:
    numbers = [int(part) for part in text.split(",")]
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least one thread is needed")
    return numbers


def _line(row: Row) -> str:
    times = (row.ours_us, row.baseline_us, row.ratio, row.bar)
    return LINE.format(row.name, row.threads, *("" if time is None else f"{time:,.2f}" for time in times), row.baseline)
