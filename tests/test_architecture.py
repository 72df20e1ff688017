"""The rules of the layout: who imports whom, where the machine and the environment are asked, how long files are."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("triton_cpu", "dispatch", "triton_spec", "engine")
FOLDERS = (*PACKAGES, "tests", "benchmarks", "examples", "scripts")

MAY_IMPORT = {
    "triton_cpu": set(),
    "dispatch": set(),
    "triton_spec": {"dispatch"},
    "engine": {"dispatch", "triton_spec"},
}
# Recorded launches need the backend itself; every other launch goes through Triton.
MAY_USE_THE_BACKEND = {"engine/record.py"}

ASKS_THE_MACHINE = {"dispatch/probe.py", "triton_cpu/host.py"}
MACHINE_QUESTIONS = re.compile(
    r"\bplatform\.(machine|processor|uname)\b|\bos\.(cpu_count|uname|sched_getaffinity)\b|\bget_host_cpu_\w+"
    r"|\bcuda\.(is_available|get_device_capability|device_count)\b|\bbackends\.cpu\b|/proc/cpuinfo|\bis_(cpu|cuda|gpu)\("
)
READS_THE_ENVIRONMENT = {"dispatch/policy.py", "triton_cpu/knobs.py", "engine/knobs.py"}
ENVIRONMENT = re.compile(r"\bos\.(environ|getenv)\b|\bfrom os import .*\b(environ|getenv)\b")
COMPOSITION_ROOT = "engine/build.py"
COMPOSES = {"resolve", "discover", "probe_target", "Registry"}
MOST_LINES = 400


@cache
def sources() -> dict[str, str]:
    """Path from the root -> text of every Python file of the project."""
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}


def of_packages() -> dict[str, str]:
    return {name: text for name, text in sources().items() if name.split("/")[0] in PACKAGES}


def imports(text: str) -> Iterator[tuple[str, str]]:
    """(module, name) of every import, at any depth; name is "" for a plain import."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            yield from ((node.module or "", alias.name) for alias in node.names)


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_run_one_way(package):
    allowed = MAY_IMPORT[package] | {package}
    wrong = [
        f"{name} imports {module}"
        for name, text in of_packages().items()
        if name.startswith(package + "/")
        for module, _ in imports(text)
        if module.split(".")[0] in set(FOLDERS) - allowed
        and not (module.split(".")[0] == "triton_cpu" and name in MAY_USE_THE_BACKEND)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("question", "allowed"),
    [(MACHINE_QUESTIONS, ASKS_THE_MACHINE), (ENVIRONMENT, READS_THE_ENVIRONMENT)],
    ids=["machine", "environment"],
)
def test_the_surroundings_are_asked_in_one_place(question, allowed):
    wrong = [
        f"{name}:{number}: {line.strip()}"
        for name, text in of_packages().items()
        if name not in allowed
        for number, line in enumerate(text.splitlines(), 1)
        if question.search(line)
    ]
    assert not wrong


def test_tests_ask_the_machine_in_one_place():
    question = re.compile(r"\bcuda\.is_available\b|\btriton_cpu\.host\b|/proc/cpuinfo")
    asking = {name for name, text in sources().items() if name.startswith("tests/") and question.search(text)}
    of_the_backend = {name for name in asking if name.startswith("tests/triton_cpu/")}  # test the asking itself
    assert asking - of_the_backend - {"tests/test_architecture.py"} <= {"tests/target.py"}


def test_parts_are_put_together_in_one_place():
    wrong = [
        f"{name} imports {imported} of dispatch"
        for name, text in of_packages().items()
        if name.startswith("engine/") and name != COMPOSITION_ROOT
        for module, imported in imports(text)
        if module.split(".")[0] == "dispatch" and imported in COMPOSES
    ]
    assert not wrong


def test_files_are_short():
    long = {name: text.count("\n") for name, text in sources().items() if text.count("\n") > MOST_LINES}
    assert not long


def test_files_have_a_job_and_say_it():
    assert not [name for name in sources() if Path(name).stem in ("utils", "util", "helpers", "misc", "common")]
    silent = [name for name, text in of_packages().items() if text.strip() and not ast.get_docstring(ast.parse(text))]
    assert not silent


def test_public_functions_say_what_they_mean():
    wrong = [
        f"{name}:{node.lineno} {node.name}"
        for name, text in of_packages().items()
        for node in ast.parse(text).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        and not node.name.startswith("_")
        and not node.name.endswith("_kernel")  # its launcher says it
        and not ast.get_docstring(node)
    ]
    assert not wrong


def swallows(handler: ast.ExceptHandler) -> bool:
    """It catches everything, and does nothing about it."""
    everything = handler.type is None or ast.unparse(handler.type) in ("Exception", "BaseException")
    return handler.type is None or (
        everything and all(isinstance(step, (ast.Pass, ast.Continue)) for step in handler.body)
    )


def test_faults_are_not_swallowed():
    wrong = [
        f"{name}:{node.lineno}"
        for name, text in of_packages().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ExceptHandler) and swallows(node)
    ]
    assert not wrong
