"""Object bytes to a callable function in this process."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable

import llvmlite.binding as llvm

from triton_cpu.errors import LoadError
from triton_cpu.llvm.optimize import target_machine

# void launch(ptr arguments, i32 grid x, i32 grid y, i32 grid z, i32 threads); the GIL is released during the call.
_LAUNCH_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)
_POOL_SYMBOLS = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")

_numbers = itertools.count()


class LoadedKernel:
    """Machine code in memory. The code lives as long as this object or its `call` does.

    Attributes:
        address: address of the entry function.
        call: the entry function, called as call(arguments, grid_x, grid_y, grid_z, threads); it has the attribute
            `address`, too.
    """

    def __init__(self, library: llvm.ResourceTracker, symbol: str) -> None:
        self.address: int = library[symbol]
        self.call: Callable[..., None] = _LAUNCH_TYPE(self.address)
        self.call.address = self.address  # type: ignore[attr-defined]
        self.call.library = library  # type: ignore[attr-defined]  # whoever holds the function holds the code


def load_kernel(name: str, code: bytes) -> LoadedKernel:
    """Load a compiled kernel.

    Args:
        name: the kernel's name, for messages.
        code: object file exporting `launch`.

    Raises:
        LoadError: the bytes are no object file of this machine, or name a symbol this process lacks.
    """
    return LoadedKernel(link(name, code, ("launch",), pool_symbols()), "launch")


def link(name: str, code: bytes, exports: tuple[str, ...], imports: dict[str, int]) -> llvm.ResourceTracker:
    """Link object bytes against this process and return the handle that keeps them alive.

    Args:
        name: the kernel's name, for messages.
        code: object file.
        exports: symbols whose addresses the result maps.
        imports: addresses of symbols that are not global in this process.

    Raises:
        LoadError: see load_kernel.
    """
    builder = llvm.JITLibraryBuilder().add_object_img(code)
    for symbol in exports:
        builder.export_symbol(symbol)
    for symbol, address in imports.items():
        builder.import_symbol(symbol, address)
    builder.add_current_process()
    try:
        return builder.link(_linker(), f"triton_cpu.{next(_numbers)}")
    except RuntimeError as error:
        raise LoadError(f"cannot load kernel {name!r} ({len(code)} bytes): {error}") from error


@functools.cache
def pool_symbols() -> dict[str, int]:
    """Addresses of the OpenMP entry points of the very runtime that torch runs on, so that there is one pool.

    Raises:
        LoadError: torch was built without OpenMP.
    """
    return torch_symbols(
        _POOL_SYMBOLS,
        "triton_cpu shares torch's OpenMP threads; install a PyTorch built with OpenMP, as the pytorch.org wheels are",
    )


def torch_symbols(names: tuple[str, ...], remedy: str) -> dict[str, int]:
    """Addresses of functions of torch's libraries or of those that they depend on.

    Looking a symbol up through torch's extension module searches its dependencies in load order, which finds torch's
    own copy whatever it is called (libgomp.so.1, libgomp-<hash>.so.1, libiomp5.so).

    Args:
        names: symbols.
        remedy: end of the message when one is missing.

    Raises:
        LoadError: one is missing.
    """
    import torch

    path = torch._C.__file__
    library = ctypes.CDLL(path)
    addresses = {}
    for symbol in names:
        try:
            address = ctypes.cast(library[symbol], ctypes.c_void_p).value
        except AttributeError as error:
            raise LoadError(f"{symbol} is not among the dependencies of {path}: {remedy}") from error
        assert address is not None
        addresses[symbol] = address
    return addresses


@functools.cache
def _linker() -> llvm.LLJIT:
    """The in-memory linker of this process."""
    try:
        ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)  # a statically linked Python does not bring it along
    except OSError as error:
        raise LoadError(f"the C mathematics library cannot be loaded: {error}") from error
    return llvm.create_lljit_compiler(target_machine(""), use_jit_link=True)
