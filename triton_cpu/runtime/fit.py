"""Whether code that was compiled for some arguments is right for another value of one of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction, create_function_from_signature

from triton_cpu.errors import ArgumentError

_BOOLEANS = ("i1", "u1")


@functools.cache
def specializer(kernel: JITFunction, backend: Any, index: int) -> Callable[[Any], Any]:
    """Triton's own function that derives type and specialisation, for one parameter of a kernel."""
    parameter = list(kernel.signature.parameters.values())[index]
    lone = inspect.Signature([parameter.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)])
    function: Callable[[Any], Any] = create_function_from_signature(lone, [kernel.params[index]], backend)
    return function


def require_fit(source: Any, index: int, value: Any) -> None:
    """Raise ArgumentError unless the code compiled from `source` is right for `value` as its parameter `index`.

    It is when the type is the same (any integer fits an integer parameter, the packer checks its range), when the value
    has the divisibility that the code relies on, and when what is compiled in as a constant stays what it is. Code
    without such reliance is right for every value of the type.

    Args:
        source: Triton's source object of a @triton.jit function.
        index: position of the parameter among all, constexpr ones included.
        value: the new argument.
    """
    *_, backend, _ = source.fn.device_caches[driver.active.get_current_device()]
    try:
        _, ((type_, key),), _ = specializer(source.fn, backend, index)(value)
    except TypeError as error:
        raise ArgumentError(str(error)) from error
    compiled = list(source.signature.values())[index]
    if source.fn.params[index].is_constexpr:
        compiled = "constexpr"
    _require(source, (index,), compiled, type_, key, value, backend)


def _require(source: Any, path: tuple[int, ...], compiled: Any, type_: Any, key: Any, value: Any, backend: Any) -> None:
    """The same for the part at `path` (position, positions inside tuples) with Triton's type and specialisation."""
    if isinstance(compiled, tuple):
        if not isinstance(type_, tuple) or len(type_) != len(compiled):
            raise ArgumentError(
                f"{_shown(value)} is of type {type_}, the code takes a tuple of {len(compiled)}: {compiled}"
            )
        for position, part in enumerate(zip(compiled, type_, key, value, strict=True)):
            _require(source, (*path, position), *part, backend)
        return
    if compiled == "constexpr":
        constant = source.constants.get(path)
        if type(value) is not type(constant) or value != constant:
            raise ArgumentError(f"{_shown(value)} would need other code: {constant!r} is compiled in")
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    if type_ != compiled and not (whole and compiled[0] in "iu" and compiled not in _BOOLEANS):
        raise ArgumentError(f"{_shown(value)} is of type {_name(type_, value)}, the code takes {compiled}")
    offered = backend.parse_attr(key) if isinstance(key, str) else []
    for attribute in source.attrs.get(path, []):
        if attribute not in offered:
            name, amount = attribute
            what = f"a multiple of {amount}" if name == "tt.divisibility" else f"one with {name} = {amount}"
            kind = "an address that is " if compiled.startswith("*") else ""
            raise ArgumentError(f"{_shown(value)} would need other code: this code relies on {kind}{what}")


def _shown(value: Any) -> str:
    """A value in a message; of tensors the shape, not the numbers."""
    if isinstance(value, tuple):
        return f"({', '.join(_shown(part) for part in value)})"
    return f"a tensor of shape {tuple(value.shape)}" if hasattr(value, "data_ptr") else repr(value)


def _name(type_: Any, value: Any) -> str:
    return type(value).__name__ if type_ == "constexpr" else str(type_)
