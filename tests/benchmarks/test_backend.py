"""The measurements run and write what they say they do; how fast anything is, is not tested."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from benchmarks import backend
from benchmarks.case import Case, Row, isa, measure
from benchmarks.timer import LEAST_ROUNDS, in_turn

ROOT = Path(__file__).parents[2]
CASES = {case.name: case for case in backend.all_cases(tiny=True)}


def benchmarks(*arguments: str) -> subprocess.CompletedProcess:
    """Run the command."""
    command = [sys.executable, "-m", "benchmarks", "backend", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("name", CASES)
def test_a_case_runs_and_both_sides_agree(name):
    row = measure(CASES[name], threads=1, seconds=0.0)
    assert (row.name, row.threads, row.isa) == (name, 1, isa())
    assert row.ours_us > 0
    assert (row.ratio is None) == (row.baseline_us is None) == (row.baseline == "")
    if row.ratio is not None:
        assert math.isclose(row.ratio, row.baseline_us / row.ours_us)


def test_names_are_unique():
    for tiny in (True, False):
        names = [case.name for case in backend.all_cases(tiny)]
        assert len(names) == len(set(names))


def test_results_that_differ_are_not_measured():
    case = CASES["vector_add/f32/17"]

    def wrong():
        ours, baseline = case.make()
        return lambda: 2 * ours(), baseline

    with pytest.raises(AssertionError, match="wrong: results differ by"):
        measure(Case("wrong", case.baseline, wrong), threads=1, seconds=0.0)


def test_sides_take_turns():
    order = []
    times = in_turn([lambda: order.append("a"), lambda: order.append("b")], seconds=0.0)
    turns = "".join(side for side, before in zip(order, [None, *order[:-1]], strict=True) if side != before)
    assert turns == "ab" * (len(turns) // 2)
    assert len(turns) >= 2 * LEAST_ROUNDS
    assert all(time > 0 for time in times)


def test_the_command_prints_a_table_and_writes_json(tmp_path):
    done = benchmarks("--only", "launch/bound", "--threads", "1", "--json", str(tmp_path / "rows.json"))
    assert done.returncode == 0, done.stderr
    assert "launch/bound" in done.stdout
    written = json.loads((tmp_path / "rows.json").read_text())
    assert written["isa"] == isa()
    (row,) = written["rows"]
    assert row.keys() == {field.name for field in fields(Row)}
    assert row["name"] == "launch/bound"


def test_a_pattern_without_cases_names_what_there_is():
    done = benchmarks("--only", "nothing has this name")
    assert done.returncode == 2
    assert "launch/bound" in done.stderr


def test_no_threads_are_refused():
    done = benchmarks("--threads", "0")
    assert done.returncode == 2
    assert "at least one thread" in done.stderr
