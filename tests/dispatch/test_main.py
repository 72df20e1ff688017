"""`python -m dispatch`, as people run it."""

import json
import os
import subprocess
import sys

import pytest
from triton.runtime import driver

from dispatch.__main__ import main
from dispatch.discovery import GROUP as OURS
from dispatch.probe import probe_target
from dispatch.resolve import resolve
from tests.dispatch.made import Silent


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv("TRITON_SPEC_PROVIDERS", raising=False)


def run(*arguments, **environment):
    """A finished process of its own."""
    command = [sys.executable, "-m", "dispatch", *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)


@pytest.fixture
def providers(capsys):
    """providers(arguments...): op -> provider, of the JSON."""

    def of(*arguments):
        assert main(["--json", *arguments]) == 0
        return {one["op"]: one["provider"] for one in json.loads(capsys.readouterr().out)["ops"]}

    return of


@pytest.fixture
def complaint(capsys):
    """complaint(arguments...): the one line of stderr about a mistake."""

    def of(*arguments):
        try:
            code = main(arguments)
        except SystemExit as leaving:
            code = leaving.code
        out, err = capsys.readouterr()
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith("python -m dispatch: error: ")
        return err

    return of


def test_json():
    plan = json.loads(run("--json").stdout)
    target = probe_target()
    assert plan["target"] == {
        "kind": target.kind,
        "name": target.name,
        "features": sorted(target.features),
        "absent": {},
    }
    assert {"op", "provider", "reason", "rejected"} == set(plan["ops"][0])
    assert "linear" in [one["op"] for one in plan["ops"]]


def test_the_table_shows_target_facts_and_every_decision(providers):
    done = run("--fact", "head_dim=80", TRITON_SPEC_PROVIDERS="*=reference")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith(probe_target().kind)
    assert "dtype=bfloat16, head_dim=80" in lines[1]
    for op in providers():
        assert any(op in line and "reference" in line and "asked for: *=reference" in line for line in lines)


def test_mistakes_end_the_process_with_code_2_and_one_line():
    done = run("--providers", "liner=triton")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("python -m dispatch: error: there is no op 'liner'; did you mean 'linear'")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("form", ["", "--json"])
@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [(">/dev/full", 2, "the plan cannot be written: [Errno 28] No space left on device\n"), (">&-", 0, "")],
    ids=["full disk", "closed"],
)
def test_output_that_cannot_be_written(redirection, code, message, form):
    command = f"{sys.executable} -m dispatch {form} {redirection}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, message and f"python -m dispatch: error: {message}")


def test_without_a_driver_references_take_over_visibly():
    plan = json.loads(run("--json", TRITON_DEFAULT_BACKEND="nothing").stdout)
    assert plan["target"]["features"] == []
    assert "nothing" in plan["target"]["absent"]["triton"]
    for one in plan["ops"]:
        assert one["provider"] == "reference"
        assert one["rejected"]
        assert "needs triton" in one["reason"]


def test_facts_change_the_plan(providers):
    """No kernel serves 64-bit floats; a later fact wins, and facts can be given together or apart."""
    assert providers("--fact", "dtype=float64")["linear"] == "reference"
    several = ["--fact", "dtype=float64", "topk=1", "--fact", "dtype=float32"]
    assert providers(*several)["linear"] == providers()["linear"] != "reference"


def test_facts_that_look_like_integers_are(monkeypatch):
    seen = {}

    def spy(registry, target, facts, choices):
        seen.update(facts)
        return resolve(registry, target, facts, {"*": "reference"})

    monkeypatch.setattr("dispatch.__main__.resolve", spy)
    assert main(["--fact", "head_dim=128", "mode=full", "shift=-1"]) == 0
    assert seen == {"dtype": "bfloat16", "head_dim": 128, "mode": "full", "shift": -1}


def test_choices_of_the_argument_and_of_the_variable(providers, monkeypatch):
    default = providers()
    assert set(providers("--providers", "*=reference").values()) == {"reference"}
    monkeypatch.setenv("TRITON_SPEC_PROVIDERS", "*=reference")
    assert set(providers().values()) == {"reference"}
    assert providers("--providers", "") == default != providers()  # an empty argument wins, too


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--fact", "dtype"], ["'dtype' is not NAME=VALUE", "--help"]),
        (["--fact", "=64"], ["'=64' is not NAME=VALUE"]),
        (["--jsn=1"], ["--jsn"]),
        (["--providers", "linear"], ["'linear' is not op=provider"]),
        (["--providers", "linear=tritn"], ["provider of op 'linear' named 'tritn'", "'triton'"]),
        (["--providers", "linear=triton", "--fact", "dtype=float64"], ["linear=triton", "float64"]),
    ],
    ids=["fact", "nameless fact", "option", "syntax", "provider", "domain"],
)
def test_mistakes_are_one_line(complaint, arguments, parts):
    line = complaint(*arguments)
    assert all(part in line for part in parts)


def test_a_mistake_in_the_variable_names_it(complaint, monkeypatch):
    monkeypatch.setenv("TRITON_SPEC_PROVIDERS", "linear")
    assert "TRITON_SPEC_PROVIDERS 'linear'" in complaint()


def test_a_target_that_cannot_be_asked_is_one_line(complaint, monkeypatch):
    monkeypatch.setattr(driver, "_active", Silent(ValueError("TRITON_CPU_HIDE='sse': unknown sse")))
    assert "TRITON_CPU_HIDE='sse': unknown sse" in complaint()


def test_a_broken_package_is_one_line_that_names_it(install, complaint):
    install("culprit", "raise ImportError('two\\nlines')", group=OURS)
    line = complaint()
    assert "entry point 'culprit' (culprit:register) of package 'culprit'" in line
    assert "ImportError: two lines" in line


def test_another_package_wins_by_rank(install, providers):
    text = """
    from dispatch.provider import Provider
    from triton_spec.layers.reference import silu_and_mul

    def register(registry):
        registry.add_provider(Provider("silu_and_mul", "mine", "another:silu_and_mul", rank=1000))
    """
    install("another", text, group=OURS)
    assert providers()["silu_and_mul"] == "mine"
