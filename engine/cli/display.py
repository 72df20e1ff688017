"""What the command line shows on stderr while an engine is made."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from engine.progress import Progress as Report

if TYPE_CHECKING:
    from dispatch.plan import Plan


@contextmanager
def loading_display() -> Iterator[Report]:
    """A progress bar per stage, as long as the block runs; nothing where stderr is no terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks = {"starting": bars.add_task("starting", total=None)}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                bars.update(tasks["starting"], visible=False)
                tasks[stage] = bars.add_task(stage)
            bars.update(tasks[stage], completed=done, total=total)

        yield report


def print_slow_parts(plan: "Plan") -> None:
    """Say once which ops run as their slow reference though something faster exists, and why."""
    slow = [decision for decision in plan.decisions if decision.provider == "reference" and decision.rejected]
    if slow:
        names = ", ".join(decision.op for decision in slow)
        print(f"triton-spec: slow PyTorch references run {names}: {slow[0].reason}", file=sys.stderr)
