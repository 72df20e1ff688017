"""The launcher that Triton calls for `kernel[grid](...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton.backends.driver import decompose_descriptor, expand_signature, wrap_handle_tensordesc_impl

from triton_cpu.errors import LaunchError
from triton_cpu.runtime.capture import RECORDING, capture
from triton_cpu.runtime.pack import Packer
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

    def _run(
        self,
        function: Callable[..., None],
        grid: tuple[int, int, int],
        launch_metadata: Any,
        enter_hook: Callable[[Any], None] | None,
        exit_hook: Callable[[Any], None] | None,
        arguments: tuple[Any, ...],
    ) -> None:
        check_grid(grid)
        block = self._packer.pack(arguments)
        if enter_hook is not None:
            enter_hook(launch_metadata)
        if 0 not in grid:
            function(block, *grid, TEAM.size())
            if RECORDING:
                capture(self._source, self._packer, function, grid, block, arguments)
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
    for size in grid:
        if not 0 <= size < _GRID_LIMIT:
            raise LaunchError(f"grid {grid}: each dimension must lie in 0 .. {_GRID_LIMIT - 1}")


def _descriptor_arguments(descriptor: Any, metadata: Any, base: Any) -> list[Any]:
    """A host-side tensor descriptor as the plain arguments that the rewritten kernel takes."""
    return list(decompose_descriptor(descriptor))
