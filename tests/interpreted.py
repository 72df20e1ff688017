"""Modules of triton_spec whose kernels run in Triton's interpreter, beside the compiled ones in the same process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import triton
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction

_PACKAGE = "triton_spec"
_copies: dict[str, ModuleType] = {}  # name -> the module with interpreted kernels


def interpreted(name: str) -> ModuleType:
    """The module ``name`` of triton_spec, imported a second time with its kernels (and the jit functions they call in
    other modules of triton_spec) running in Triton's interpreter.

    The copies share one another, so ``interpreted("triton_spec.a")`` sees ``interpreted("triton_spec.b")``; the
    modules in ``sys.modules`` stay compiled. Launch as usual: ``interpreted("triton_spec.layers.norm").rms_norm(x)``.
    """
    if name != _PACKAGE and not name.startswith(_PACKAGE + "."):
        raise ValueError(f"interpreted({name!r}): only modules of {_PACKAGE} are copied")
    if name not in _copies:
        with _copies_in_place():
            importlib.import_module(name)
    return _copies[name]


def _ours() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name.split(".")[0] == _PACKAGE}


@contextmanager
def _copies_in_place() -> Iterator[None]:
    """Imports of triton_spec find and add copies; ``@triton.jit`` decides at decoration, so the knob is set here."""
    compiled = _ours()
    for name in compiled:
        del sys.modules[name]
    sys.modules.update(_copies)
    try:
        with triton.knobs.runtime.scope():
            triton.knobs.runtime.interpret = True
            yield
        _copies.update(_ours())
    finally:
        for name in _ours():
            del sys.modules[name]
        sys.modules.update(compiled)
        # An import binds a submodule in its package; compiled packages keep their compiled submodules.
        for name, module in compiled.items():
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(compiled[parent], child, module)


# The interpreter replaces functions of triton.language during a launch, and does not put all of them back: a device
# function that sees triton.language.core (every one of Triton's standard library) patches it for good. It also cannot
# call the standard library (tl.sum, tl.cdiv, ...), which was decorated as compiled code when Triton was imported.
# A launch is therefore wrapped: everything it may change is recorded and restored.
_CHANGED = (tl, tl.core, tl.math, tl.tensor, tl.core.tensor_descriptor_base, tl.dtype, tl.condition)
_launch = interpreter.GridExecutor.__call__
_patch_language = interpreter._patch_lang


@contextmanager
def _language_restored() -> Iterator[None]:
    """What the interpreter changes in triton.language is undone at the end."""
    before = [(holder, dict(vars(holder))) for holder in _CHANGED]
    try:
        yield
    finally:
        for holder, attributes in before:
            for name, value in attributes.items():
                if vars(holder).get(name) is not value:
                    setattr(holder, name, value)
            if isinstance(holder, type):  # names added to a module are what rewritten functions need to run again
                for name in vars(holder).keys() - attributes.keys():
                    delattr(holder, name)


@contextmanager
def _standard_library_interpreted() -> Iterator[None]:
    """Calling a compiled device function (those of Triton's own library) interprets it."""
    call, functions = JITFunction.__call__, {}

    def interpret(self: JITFunction, *args: Any, **kwargs: Any) -> Any:
        if self.fn not in functions:  # the hash of a JITFunction would compile
            functions[self.fn] = interpreter.InterpretedFunction(self.fn)
        return functions[self.fn](*args, **kwargs)

    JITFunction.__call__ = interpret
    for name, member in vars(tl.tensor).copy().items():
        if isinstance(member, JITFunction):
            setattr(tl.tensor, name, _as_method(member))
    try:
        yield
    finally:
        JITFunction.__call__ = call


def _as_method(function: JITFunction) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: function(self, *args, **kwargs)


class _Kept:
    """What patching the language a second time returns: the first one restores."""

    def restore(self) -> None:
        """Leave the language as it is."""


@contextmanager
def _patched_once() -> Iterator[None]:
    """The language is patched once a launch (for each of the modules tl and tl.core), not at each call."""
    done: set[str] = set()

    def patch(function: Callable[..., Any]) -> Any:
        seen = {module.__name__ for module in (tl, tl.core) if module in function.__globals__.values()}
        if seen and seen <= done:
            return _Kept()
        done.update(seen)
        return _patch_language(function)

    interpreter._patch_lang = patch
    try:
        yield
    finally:
        interpreter._patch_lang = _patch_language


def _safe_launch(self: interpreter.GridExecutor, *args: Any, **kwargs: Any) -> None:
    with _language_restored(), _standard_library_interpreted(), _patched_once():
        _launch(self, *args, **kwargs)


interpreter.GridExecutor.__call__ = _safe_launch
