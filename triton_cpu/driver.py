"""The driver half of the plug-in: which device is active and how its kernels are loaded, launched and timed.

Triton imports this module for every user, whatever the backend, so llvmlite and torch are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from triton_cpu import knobs
from triton_cpu.runtime import team  # noqa: F401  # watches forks from now on: cheap, and must come before them

if TYPE_CHECKING:
    import torch

    from triton_cpu.runtime.clock import HostInterface
    from triton_cpu.runtime.launch import Launcher

_NO_LIMIT = 1 << 30
_FLUSH_BYTES = 64 << 20  # written between timed runs, to push the operands out of the caches


class _Utils:
    """What Triton's runtime asks of a device beyond launching."""

    @staticmethod
    def load_binary(
        name: str, kernel: bytes, shared: int, device: int
    ) -> tuple[Any, Callable[..., None], int, int, int]:
        """Load object code; (module, function, registers used, registers spilled, threads per block allowed)."""
        from triton_cpu.runtime.load import load_kernel

        loaded = load_kernel(name, kernel)
        return loaded, loaded.call, 0, 0, _NO_LIMIT

    @staticmethod
    def unload_module(module: Any) -> None:
        """Nothing to do: the code goes with the last reference to it."""

    @staticmethod
    def get_device_properties(device: int) -> dict[str, Any]:
        """Limits and sizes of the device; on-chip memory is the ordinary kind here and has no limit."""
        from triton_cpu.host import processors

        return {
            "max_shared_mem": _NO_LIMIT,
            "multiprocessor_count": processors(),
            "warpSize": 1,
            "max_num_regs": _NO_LIMIT,
        }


class CPUDriver(DriverBase):  # type: ignore[misc]  # triton has no type information
    """The host's processor as Triton's device 0."""

    utils = _Utils

    @classmethod
    def is_active(cls) -> bool:
        """Whether this driver is the one to use: TRITON_DEFAULT_BACKEND names it, or no other one has a device."""
        from triton.backends import backends

        chosen = knobs.default_backend()
        if chosen:
            named = backends.get(chosen)
            return named is not None and named.driver is cls
        return not any(other.driver.is_active() for other in backends.values() if other.driver is not cls)

    @property
    def launcher_cls(self) -> type[Launcher]:
        """The class that Triton instantiates for each compiled kernel."""
        from triton_cpu.runtime.launch import Launcher

        return Launcher

    def map_python_to_cpp_type(self, ty: str) -> str:
        """C type of a Triton argument type, for tools that print signatures."""
        names = {"i1": "bool", "u1": "bool", "fp16": "_Float16", "bf16": "__bf16", "fp32": "float", "f32": "float"}
        if ty.startswith("*"):
            return "void*"
        if ty == "fp64":
            return "double"
        return names.get(ty) or f"{'u' if ty[0] == 'u' else ''}int{ty[1:]}_t"

    def get_current_target(self) -> GPUTarget:
        """The target kernels are compiled for; its arch names the machine and the features in use."""
        from triton_cpu.host import host

        return GPUTarget("cpu", host().arch, 1)

    def get_current_device(self) -> int:
        """The processor is device 0."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one device; selecting it changes nothing."""

    def get_current_stream(self, device: int) -> int:
        """Launches are synchronous; there is one stream, 0."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """The torch device whose tensors kernels take."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> type[HostInterface]:
        """Events and synchronisation as benchmarks use them."""
        from triton_cpu.runtime.clock import HostInterface

        return HostInterface

    def get_benchmarker(self) -> Callable[..., Any]:
        """The function that times autotuner candidates."""
        from triton.testing import do_bench

        from triton_cpu.runtime.capture import paused

        return paused()(do_bench)  # type: ignore[no-any-return]

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """A buffer to be cleared between timed runs."""
        import torch

        return torch.empty(_FLUSH_BYTES, dtype=torch.int8)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Write that buffer, so that the next run finds cold caches."""
        cache.zero_()
