"""Bound launches: a kernel with its arguments packed once, to be started many times."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from triton_cpu.errors import ArgumentError, LaunchError
from triton_cpu.runtime.capture import RECORDING, capture
from triton_cpu.runtime.fit import specializer
from triton_cpu.runtime.launch import check_grid, make_packer
from triton_cpu.runtime.start import HEADER, starter
from triton_cpu.runtime.team import TEAM

Grid = Sequence[int] | Callable[[dict[str, Any]], Sequence[int]]


def bind(kernel: Any, grid: Grid, *args: Any, **kwargs: Any) -> Bound:
    """Compile `kernel` for these arguments now and return a handle that launches it.

    Args:
        kernel: a @triton.jit function.
        grid: one to three program counts, or a function of the arguments by name giving them.
        args, kwargs: what `kernel[grid](*args, **kwargs)` would take, compile options included.

    Raises:
        ArgumentError: names or types do not fit the kernel, or the kernel is of a kind that chooses at each call.
        LaunchError: the grid is out of range, or the active Triton driver is not the CPU's.
    """
    if not isinstance(kernel, JITFunction):
        raise ArgumentError(
            f"bind takes a @triton.jit function, not {type(kernel).__name__}: one that chooses its configuration at "
            "each call cannot be bound; bind the function inside it with the configuration wanted"
        )
    target = driver.active.get_current_target()
    if target.backend != "cpu":
        raise LaunchError(f"bind launches on the CPU, but Triton's active driver is {target.backend!r}")
    *_, backend, binder = kernel.device_caches[driver.active.get_current_device()]
    try:
        values, specialization, _ = binder(*args, **kwargs)
        compiled = kernel.run(*args, grid=grid, warmup=True, **kwargs)
    except (TypeError, KeyError) as error:
        raise ArgumentError(f"the arguments do not fit kernel {kernel.__name__!r}: {error}") from error
    sizes = tuple(grid(values)) if callable(grid) else tuple(grid)
    if not 1 <= len(sizes) <= 3:
        raise LaunchError(f"grid {sizes}: one to three dimensions are needed")
    x, y, z = (*sizes, 1, 1)[:3]
    return Bound(kernel, backend, compiled, (x, y, z), values, specialization)


class Bound:
    """One launch, ready: calling it runs the kernel over the grid with the arguments it holds.

    The tensors among the arguments are kept alive. Launch hooks of Triton (profilers) do not see these launches.
    """

    def __init__(
        self,
        kernel: JITFunction,
        backend: Any,
        compiled: Any,
        grid: tuple[int, int, int],
        values: dict[str, Any],
        specialization: list[Any],
    ) -> None:
        check_grid(grid)
        self._kernel, self._backend, self._compiled, self._grid = kernel, backend, compiled, grid
        self._values = dict(values)
        self._index = {name: index for index, name in enumerate(values)}
        self._specialization = specialization
        if any("tensordesc" in str(type_) for type_ in compiled.src.signature.values()):
            raise ArgumentError(
                f"kernel {kernel.__name__!r} takes a tensor descriptor, which cannot be bound; pass a tensor"
            )
        self._packer = make_packer(compiled.src, compiled.metadata)
        compiled.run  # noqa: B018  # loads the code
        data = self._packer.block(compiled.function.address, *grid, list(values.values()))
        self._block = ctypes.create_string_buffer(data, len(data))
        self._address = ctypes.addressof(self._block)
        self._launch: Callable[[int], None] = _no_launch if 0 in grid else functools.partial(starter(), self._address)

    def __call__(self) -> None:
        """Run the kernel and return when it is done."""
        self._launch(TEAM.size())
        if RECORDING:
            self._capture()

    def update(self, **values: Any) -> None:
        """Replace arguments by name for the calls to come.

        The code was compiled for what the arguments had in common with the new ones must have it too: the type, and
        where Triton specialises on it, being divisible by 16 or equal to 1.

        Raises:
            ArgumentError: an unknown name, a constexpr parameter, a different type or specialisation; nothing is
                changed then.
        """
        changes = [
            (name, value, self._packer.pack_one(self._checked(name, value), value)) for name, value in values.items()
        ]
        for name, value, (offset, data) in changes:
            ctypes.memmove(self._address + HEADER.size + offset, data, len(data))
            self._values[name] = value

    def _capture(self) -> None:
        if 0 not in self._grid:
            compiled, arguments = self._compiled, list(self._values.values())
            block = self._block.raw[HEADER.size :]
            capture(compiled.src, self._packer, compiled.function, self._grid, block, arguments)

    def _checked(self, name: str, value: Any) -> int:
        """Position of parameter `name`, once it is sure that the compiled code is right for `value`."""
        index = self._index.get(name)
        kernel = self._kernel.__name__
        if index is None:
            raise ArgumentError(f"kernel {kernel!r} has no argument {name!r}; it has {', '.join(self._index)}")
        was = self._specialization[index]
        if was[0] == "constexpr":
            raise ArgumentError(
                f"argument {name!r} of kernel {kernel!r} is compiled in as {self._values[name]!r}; "
                "bind anew to change it"
            )
        try:
            _, (now,), _ = specializer(self._kernel, self._backend, index)(value)
        except TypeError as error:
            raise ArgumentError(f"argument {name!r} of kernel {kernel!r}: {error}") from error
        if now != was:
            raise ArgumentError(
                f"argument {name!r} of kernel {kernel!r}: {value!r} needs code for {now}, this launch has code for "
                f"{was}; bind anew"
            )
        return index


def _no_launch(threads: int) -> None:
    """The launch of an empty grid."""
