"""`kernel[grid](...)` with less of Triton's Python around the launch.

The method `run` of a @triton.jit function takes 5 us, several times what a small kernel does. A kernel that has been
launched on the CPU gets, as an attribute of this one function, a `run` that knows which compiled code a launch like an
earlier one takes. It asks for everything that may have changed since, and leaves to Triton's method what it does not
know: the first launch of a kind, hooks, debugging, another driver.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from triton import knobs
from triton._C.libtriton import native_specialize_impl
from triton.backends.compiler import BaseBackend
from triton.compiler import CompiledKernel
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from triton_cpu.driver import CPUDriver

_ABSENT = object()
# What a parameter adds to the key, and its value. That of a tensor, (type, address modulo 16), is found more quickly.
_SORT = """
    if type({name}) is _Tensor and {name}.is_cpu:
        _key_{name} = {name}.dtype, (_value_{name} := {name}.data_ptr()) & 15
    else:
        _key_{name}, _value_{name} = _kind(_backend, {name}, False, True, True), {name}"""


def install(source: Any) -> None:
    """Give the @triton.jit function that Triton's source object was made from its quick `run`, if it has none."""
    kernel: Any = getattr(source, "fn", None)  # there is none where the source is a file
    if type(kernel) is JITFunction and "run" not in vars(kernel):
        kernel.run = _quick_run(kernel)


def _quick_run(kernel: Any) -> Callable[..., Any]:
    runtime, compilation, stock = knobs.runtime, knobs.compilation, JITFunction.run
    enter, leave = type(runtime).launch_enter_hook, type(runtime).launch_exit_hook  # chains of hooks, mostly empty
    sort, names = _sorter(kernel), list(kernel.signature.parameters)
    # What Triton chooses the code by -> (its key of the code, the code, function of the launcher)
    known: dict[tuple[Any, ...], tuple[str, Any, Callable[..., None]]] = {}

    def run(*args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if (
            warmup
            or runtime.launch_enter_hook is not enter
            or runtime.launch_exit_hook is not leave
            or enter.calls
            or leave.calls
            or kernel.pre_run_hooks
            or kernel.debug
            or runtime.debug
            or compilation.instrumentation_mode
            or runtime.add_stages_inspection_hook is not None
            or type(driver.active) is not CPUDriver
        ):
            return stock(kernel, *args, grid=grid, warmup=warmup, **kwargs)
        key, arguments, values = sort(*args, **kwargs)
        cache = kernel.device_caches[0][0]
        if key in known:
            name, compiled, launch = known[key]
            if cache.get(name) is compiled and not (kernel.used_global_vals and _globals_changed(kernel)):
                if callable(grid):
                    grid = grid(dict(zip(names, arguments, strict=True)))
                sizes = len(grid)
                launch(grid[0], grid[1] if sizes > 1 else 1, grid[2] if sizes > 2 else 1, arguments, values)
                return compiled
        compiled = stock(kernel, *args, grid=grid, warmup=False, **kwargs)
        if type(compiled) is CompiledKernel:  # not one that a hook prevented, or that is still being compiled
            name = next(name for name, value in cache.items() if value is compiled)
            known[key] = name, compiled, compiled.run.quick(compiled.function)
        return compiled

    return run


def _sorter(kernel: Any) -> Callable[..., tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]]:
    """A function that takes what a launch takes: a key of the code, the arguments, and them with addresses for tensors.

    The key says at least as much as Triton's, which ignores a part of it where a parameter is annotated or not
    specialised.
    """
    taken: list[str] = []
    lines, keys, values = [], [], []
    names: dict[str, Any] = {"_kind": native_specialize_impl, "_backend": BaseBackend, "_Tensor": torch.Tensor}
    parameters = kernel.signature.parameters
    for about, (name, parameter) in zip(kernel.params, parameters.items(), strict=True):
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in taken):
            taken.append("*")
        star = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ""
        if parameter.default is inspect.Parameter.empty:
            taken.append(star + name)
        else:
            names[f"_default_{name}"] = parameter.default
            taken.append(f"{name}=_default_{name}")
        keys.append(name if about.is_constexpr else f"_key_{name}")
        values.append(name if about.is_constexpr else f"_value_{name}")
        if not about.is_constexpr:
            lines.append(_SORT.format(name=name))
    exec(
        f"def sort({', '.join([*taken, '**options'])}):{''.join(lines)}\n"
        f"    return ({', '.join([*keys, '*options.items()'])},), ({_listed(parameters)}), ({_listed(values)})",
        names,
    )
    function: Callable[..., tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]] = names["sort"]
    return function


def _listed(names: Iterable[str]) -> str:
    return "".join(f"{name}, " for name in names)


def _globals_changed(kernel: Any) -> bool:
    """Whether a global variable that the kernel was compiled with has another value now; Triton's method says which."""
    return any(
        variables.get(name, _ABSENT) != value for (name, _), (value, variables) in kernel.used_global_vals.items()
    )
