"""The set-up script: which PyTorch it keeps, and where it takes one from. Nothing is installed here."""

import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "install.py"


@pytest.fixture
def install():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("install", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pip(install, monkeypatch):
    """pip(requires=[...], fails=[word]): commands are recorded, metadata is made up, those with a word fail."""

    def pretend(requires: list[str], fails: str = "nothing") -> list[list[str]]:
        commands = []

        def succeeds(*command: object) -> bool:
            words = list(map(str, command))
            commands.append(words)
            if "--report" in words:
                report = {"install": [{"metadata": {"name": "torch", "requires_dist": requires}}]}
                Path(words[words.index("--report") + 1]).write_text(json.dumps(report))
            return fails not in words

        monkeypatch.setattr(install, "succeeds", succeeds)
        monkeypatch.setattr(sys, "platform", "linux")
        install.install_torch(["pip"])
        return [words for words in commands if "--dry-run" not in words]

    return pretend


@pytest.mark.parametrize(
    ("version", "requires", "reason"),
    [
        ("2.13.0+cpu", ["filelock", "sympy>=1.13"], ""),
        (
            "2.13.0",
            ["nvidia-cublas==13.0; platform_system == 'Linux'", "triton==3.8.1; platform_system == 'Linux'"],
            "",
        ),
        ("2.7.1", ["triton==3.3.1; platform_system == 'Linux'"], "triton 3.3.1"),
        ("2.5.1+cpu", [], "older than 2.6"),
        ("2.15.0", ["triton==3.10.0"], "triton 3.10.0"),
    ],
    ids=["cpu", "cuda", "old triton", "old torch", "new triton"],
)
def test_an_installed_pytorch_is_kept_if_it_fits(install, version, requires, reason):
    assert reason in install.misfit(version, requires)
    assert bool(reason) == bool(install.misfit(version, requires))


def test_a_build_without_cuda_comes_from_the_usual_index(install, pip):
    assert pip(["filelock"]) == [["pip", "install", f"torch=={install.TORCH}"]]


def test_instead_of_a_build_with_cuda_the_cpu_index_is_asked(install, pip):
    (command,) = pip(["nvidia-cublas==13.0; platform_system == 'Linux'"])
    assert install.CPU_INDEX in command


def test_without_the_cpu_index_the_usual_build_is_installed(install, pip, capsys):
    commands = pip(["cuda-toolkit==13.0"], fails=install.CPU_INDEX)
    assert commands[1] == ["pip", "install", f"torch>={install.TORCH}", "triton>=3.8,<3.10"]
    assert "cannot be reached" in capsys.readouterr().out


def test_a_failing_command_is_named(install):
    with pytest.raises(SystemExit, match=r"This command failed: .*python.* -c exit"):
        install.run(sys.executable, "-c", "exit(3)")


def test_an_old_python_is_told_so(install, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    with pytest.raises(SystemExit, match=r"Python 3.10 or newer is needed, this is 3.9.*PYTHON="):
        install.require_python()


def test_a_python_without_venv_is_told_the_package(install, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="apt install python3-venv"):
        install.require_python()


def test_it_needs_the_standard_library_only():
    done = subprocess.run([sys.executable, "-I", "-S", SCRIPT, "--help"], capture_output=True, text=True, check=True)
    assert "folder" in done.stdout


def test_its_bounds_are_those_of_the_project(install):
    text = (ROOT / "pyproject.toml").read_text()
    assert f'"{install.fitting_triton()}"' in text
    assert f'"torch>={".".join(map(str, install.OLDEST_TORCH))}"' in text
    assert f'requires-python = ">={".".join(map(str, install.OLDEST_PYTHON))}"' in text


def test_this_run_uses_the_pytorch_that_was_recorded():
    record = Path(sys.prefix, "constraints.txt")
    if not record.exists():
        pytest.skip("this environment was not made by scripts/install.py")
    pinned = re.fullmatch(r"torch==(.+)\n", record.read_text())
    assert pinned[1] == importlib.metadata.version("torch")
