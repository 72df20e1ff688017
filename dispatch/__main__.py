"""`python -m dispatch`: which implementation of each op runs here, and why."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dispatch.discovery import discover
from dispatch.errors import DispatchError
from dispatch.plan import Plan
from dispatch.policy import read_choices
from dispatch.probe import probe_target
from dispatch.provider import Fact
from dispatch.resolve import resolve

DEFAULT_FACTS: dict[str, Fact] = {"dtype": "bfloat16", "head_dim": 64}
WIDTH = 140  # characters, where the output is no terminal


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the plan and return the exit code: 0, or 2 with one line on stderr when there is no plan."""
    parser = _Parser(prog="python -m dispatch", description="Which implementation of each op runs here, and why?")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON instead of a table")
    parser.add_argument("--fact", type=_fact, nargs="+", action="extend", default=[], metavar="NAME=VALUE",
                        help="what the calls will look like (default: dtype=bfloat16 head_dim=64)")  # fmt: skip
    parser.add_argument("--providers", metavar="OP=PROVIDER,...", help="use these, e.g. linear=triton or *=reference")
    arguments = parser.parse_args(argv)
    facts = DEFAULT_FACTS | dict(arguments.fact)
    console = Console(width=None if sys.stdout is not None and sys.stdout.isatty() else WIDTH)
    try:
        plan = resolve(discover(), probe_target(), facts, read_choices(arguments.providers))
    except DispatchError as error:
        print(f"{parser.prog}: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    try:
        if arguments.json:
            console.out(json.dumps(plan.as_dict(), indent=2), highlight=False)
        else:
            console.print(_table(plan, facts))
    except OSError as error:
        print(f"{parser.prog}: error: the plan cannot be written: {error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what the interpreter flushes at its end
        return 2
    return 0


def _fact(text: str) -> tuple[str, Fact]:
    """Name and value of e.g. "head_dim=64"; a value that is no integer stays text."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, e.g. dtype=bfloat16")
    return name, int(value) if value.lstrip("-").isdecimal() else value


def _table(plan: Plan, facts: dict[str, Fact]) -> Table:
    target = plan.target
    features = ", ".join(sorted(target.features)) or "no features"
    given = ", ".join(f"{name}={value}" for name, value in facts.items())
    table = Table(title=Text(f"{target.kind} {target.name}: {features}\n{given}"), title_justify="left")
    for heading in ("op", "provider", "reason", "rejected"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("op", "provider"))
    for op, provider, reason, rejected in plan.decisions:
        others = "\n".join(f"{name}: {why}" for name, why in rejected)
        table.add_row(*map(Text, (op, provider, reason, others)))  # Text: brackets in reasons are no markup
    return table


if __name__ == "__main__":
    sys.exit(main())
