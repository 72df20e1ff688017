"""The launcher that Triton calls for `kernel[grid](...)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triton.backends.driver import decompose_descriptor, expand_signature, wrap_handle_tensordesc_impl

from triton_cpu.errors import LaunchError
from triton_cpu.runtime.capture import RECORDING, capture
from triton_cpu.runtime.pack import Packer
from triton_cpu.runtime.quick import install
from triton_cpu.runtime.start import HEADER, starter
from triton_cpu.runtime.team import TEAM

_GRID_LIMIT = 2**31


class Launcher:
    """Packs the arguments of a call and runs the compiled function over the grid.

    Args:
        source: Triton's source object; its `signature` maps parameter names to types.
        metadata: the compiled kernel's metadata; `slots` is how many arguments its code reads.

    Raises:
        LaunchError: signature and compiled code disagree.
    """

    def __init__(self, source: Any, metadata: Any) -> None:
        self._source = source
        self._packer = make_packer(source, metadata)
        # Without metadata (the empty list) Triton expects tensor descriptors to be taken apart.
        self._launch = wrap_handle_tensordesc_impl(self._run, source.signature, [], _descriptor_arguments)
        self._start = starter()
        install(source)

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: int,
        function: Callable[..., None],
        kernel_metadata: Any,
        launch_metadata: Any,
        enter_hook: Callable[[Any], None] | None,
        exit_hook: Callable[[Any], None] | None,
        *arguments: Any,
    ) -> None:
        """Run one grid; the parameters are those Triton's runtime passes to every launcher."""
        self._launch(function, (grid_x, grid_y, grid_z), launch_metadata, enter_hook, exit_hook, arguments)

    def quick(self, function: Any) -> Callable[[int, int, int, Sequence[Any], Sequence[Any]], None]:
        """A function (x, y, z, arguments, values) that runs one grid of the compiled `function` without hooks.

        In `values`, addresses may stand in the places of tensors.
        """
        source, packer, start, address = self._source, self._packer, self._start, function.address
        descriptors = self._launch != self._run

        def launch(x: int, y: int, z: int, arguments: Sequence[Any], values: Sequence[Any]) -> None:
            if descriptors or not (0 < x < _GRID_LIMIT and 0 < y < _GRID_LIMIT and 0 < z < _GRID_LIMIT):
                self._launch(function, (x, y, z), None, None, None, arguments)
                return
            block = packer.block(address, x, y, z, values)
            start(block, TEAM.size())
            if RECORDING:
                capture(source, packer, function, (x, y, z), block[HEADER.size :], arguments)

        return launch

    def _run(
        self,
        function: Any,
        grid: tuple[int, int, int],
        launch_metadata: Any,
        enter_hook: Callable[[Any], None] | None,
        exit_hook: Callable[[Any], None] | None,
        arguments: Sequence[Any],
    ) -> None:
        check_grid(grid)
        block = self._packer.block(function.address, *grid, arguments)
        if enter_hook is not None:
            enter_hook(launch_metadata)
        if 0 not in grid:
            self._start(block, TEAM.size())
            if RECORDING:
                capture(self._source, self._packer, function, grid, block[HEADER.size :], arguments)
        if exit_hook is not None:
            exit_hook(launch_metadata)


def make_packer(source: Any, metadata: Any) -> Packer:
    """The packer for a compiled kernel, checked against the number of slots its code reads."""
    types = expand_signature(source.signature.values(), None, "")
    if len(types) == len(source.signature):
        signature = dict(zip(source.signature, types, strict=True))
    else:  # a tensor descriptor takes several slots, so names no longer match
        signature = {f"#{index}": type_ for index, type_ in enumerate(types)}
    packer = Packer(signature)
    if packer.slots != metadata.slots:
        raise LaunchError(
            f"kernel {metadata.name!r} reads {metadata.slots} argument slots, its signature {signature} gives "
            f"{packer.slots} (a fault of triton_cpu, please report it)"
        )
    return packer


def check_grid(grid: tuple[int, int, int]) -> None:
    """Raise LaunchError unless every grid dimension lies in 0 .. 2**31 - 1."""
    x, y, z = grid
    if not (0 <= x < _GRID_LIMIT and 0 <= y < _GRID_LIMIT and 0 <= z < _GRID_LIMIT):
        raise LaunchError(f"grid {grid}: each dimension must lie in 0 .. {_GRID_LIMIT - 1}")


def _descriptor_arguments(descriptor: Any, metadata: Any, base: Any) -> list[Any]:
    """A host-side tensor descriptor as the plain arguments that the rewritten kernel takes."""
    return list(decompose_descriptor(descriptor))
