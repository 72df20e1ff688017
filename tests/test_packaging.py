"""What is published: the wheel and the source archive, built offline by the setuptools of this environment."""

import configparser
import email.message
import email.parser
import importlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"triton_cpu", "dispatch", "triton_spec", "engine"}
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


def tracked_files() -> list[str]:
    """The files of the project that git knows, or all but hidden ones in an unpacked archive."""
    git = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if git.returncode == 0 and git.stdout:
        return [name for name in git.stdout.splitlines() if (ROOT / name).exists()]
    return [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("[!.]*") if path.is_file()]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """built("wheel" or "sdist") -> the file, made from a copy of the tracked files."""
    source = tmp_path_factory.mktemp("source")
    for name in tracked_files():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    made = {}

    def build(kind: str) -> Path:
        if kind not in made:
            place = tmp_path_factory.mktemp(kind)
            command = [sys.executable, "-c", BUILD, f"build_{kind}", str(place)]
            done = subprocess.run(command, cwd=source, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            made[kind] = next(place.iterdir())
        return made[kind]

    return build


@pytest.fixture(scope="module")
def wheel(built):
    """Name -> text or bytes of the files in the wheel."""
    with zipfile.ZipFile(built("wheel")) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def metadata(wheel) -> email.message.Message:
    """METADATA of the wheel."""
    (name,) = [name for name in wheel if name.endswith(".dist-info/METADATA")]
    return email.parser.BytesParser().parsebytes(wheel[name])


def test_the_wheel_holds_the_four_packages_and_nothing_else(wheel):
    top = {name.split("/")[0] for name in wheel if ".dist-info/" not in name}
    assert top == PACKAGES


def test_every_module_is_in_the_wheel(wheel):
    modules = {name for name in tracked_files() if name.split("/")[0] in PACKAGES}
    assert modules <= set(wheel)


def test_every_folder_of_a_package_is_one():
    folders = {
        (ROOT / name).parent for name in tracked_files() if name.endswith(".py") and name.split("/")[0] in PACKAGES
    }
    assert not [folder for folder in folders if not (folder / "__init__.py").exists()]


def test_entry_points(wheel):
    (name,) = [name for name in wheel if name.endswith(".dist-info/entry_points.txt")]
    points = configparser.ConfigParser(delimiters=("=",))
    points.read_string(wheel[name].decode())
    assert {group: dict(points[group]) for group in points.sections()} == {
        "console_scripts": {"triton-spec": "engine.__main__:main"},
        "triton.backends": {"cpu": "triton_cpu"},
        "triton_spec.providers": {"triton_spec": "triton_spec.providers:register"},
    }
    for group in points.sections():
        for value in points[group].values():
            module, _, attribute = value.partition(":")
            assert hasattr(importlib.import_module(module), attribute or "__name__")


def test_metadata(metadata):
    assert metadata["Name"] == "triton-spec"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.10"
    assert "# " in metadata.get_payload()  # the README


def test_the_licence_is_in_the_wheel(wheel):
    (name,) = [name for name in wheel if name.endswith("/LICENSE")]
    assert b"Apache License" in wheel[name]


def test_test_tools_are_extras(metadata):
    for requirement in metadata.get_all("Requires-Dist"):
        assert requirement.startswith(("pytest", "hypothesis", "ruff", "mypy")) == ("extra ==" in requirement)


def test_the_source_archive_holds_the_packages_and_no_tests(built):
    with tarfile.open(built("sdist")) as archive:
        names = {"/".join(name.split("/")[1:]) for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE"} <= names
    assert {name for name in tracked_files() if name.split("/")[0] in PACKAGES} <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", ".ci/"))]
