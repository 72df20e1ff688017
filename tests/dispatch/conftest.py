"""Throw-away modules and installed packages, as the outside world would bring them."""

from __future__ import annotations

import importlib
import sys
import textwrap

import pytest

from dispatch.op import Op
from dispatch.registry import Registry
from tests.dispatch.made import GROUP


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    """write_module(name, text): a module that can be imported during the test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()

    yield write
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and sys.modules[name].__file__.startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def install(write_module, tmp_path):
    """install(package, text, entry point=value...): a package with a module of that text and entry points of a group.

    Returns the folder to put on PYTHONPATH.
    """

    def add(package: str, text: str, group: str = GROUP, **points: str):
        write_module(package, text)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in (points or {package: f"{package}:register"}).items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]))
        importlib.invalidate_caches()
        return tmp_path

    return add


@pytest.fixture
def functions(write_module):
    """Module `implementations`: the op `scale` several times, right and wrong."""
    write_module(
        "implementations",
        """
        def reference(x, factor=2.0, *, out=None): return "reference"
        def fast(x, factor=2.0, *, out=None): return "fast"
        def faster(x: int, factor: float = 2.0, *, out: object = None) -> str: return "faster"
        def other_name(x, by=2.0, *, out=None): pass
        def other_default(x, factor=3.0, *, out=None): pass
        def other_order(factor=2.0, x=None, *, out=None): pass
        def other_kind(x, factor=2.0, out=None): pass
        def too_few(x, factor=2.0): pass
        def too_many(x, factor=2.0, *, out=None, extra=1): pass
        unreadable = type
        number = 3
        """,
    )
    write_module("broken", "raise RuntimeError('no such accelerator')")
    write_module("recorded", "def fast(x, factor=2.0, *, out=None): pass")
    return "implementations"


@pytest.fixture
def registry(functions):
    """A registry with the op `scale`, and nothing but its reference."""
    made = Registry()
    made.add_op(Op("scale", "implementations:reference", "multiply"))
    return made
