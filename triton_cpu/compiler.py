"""The compiler half of the plug-in: Triton IR -> LLVM IR -> object code.

Triton imports this module for every user, whatever the backend, so llvmlite and torch are imported where they are used.
"""

from __future__ import annotations

import functools
import hashlib
from importlib import metadata as distributions
from pathlib import Path
from types import ModuleType
from typing import Any

from triton import knobs as triton_knobs
from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget, Language

from triton_cpu.errors import CompileError
from triton_cpu.options import CPUOptions, make_options


class CPUBackend(BaseBackend):  # type: ignore[misc]  # triton has no type information
    """Compiles Triton kernels for the host's processor."""

    binary_ext = "obj"

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        from triton_cpu.runtime import cache, triton_key

        cache.install()
        triton_key.install()

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether `target` is a CPU."""
        return bool(target.backend == "cpu")

    def hash(self) -> str:
        """Identity of this compiler in cache keys: its own sources and the LLVM it uses."""
        return f"triton_cpu-{_source_digest()}-llvmlite-{distributions.version('llvmlite')}"

    def parse_options(self, options: dict[str, Any]) -> CPUOptions:
        """Options of a call as a frozen object, see options.make_options."""
        from triton_cpu.host import host
        from triton_cpu.level import held_to

        machine = host()
        if self.target.arch != machine.arch:
            raise CompileError(
                f"target {self.target.arch!r} is not this machine ({machine.arch!r}): kernels are compiled for the "
                "processor they run on, and TRITON_CPU_HIDE must not change once a kernel has been launched"
            )
        given = dict(options)
        given["enable_fp_fusion"] = _fp_fusion(given.get("enable_fp_fusion"))
        machine = held_to(machine, given.get("isa"))
        return make_options(given, machine.arch, machine.llvm_features)

    def pack_metadata(self, metadata: Any) -> tuple[Any, ...]:
        """What the launcher gets of the metadata at each call: nothing, the compiled function knows all."""
        return ()

    def get_codegen_implementation(self, options: CPUOptions) -> dict[str, Any]:
        """Answers to the front end's questions about the target: `tl.dot` takes blocks of any size."""
        return {"min_dot_size": lambda lhs, rhs: (1, 1, 1)}

    def get_module_map(self) -> dict[str, ModuleType]:
        """`triton.language.extra.libdevice` becomes the stock set of functions, which yields
        tt.extern_elementwise operations with symbols such as __nv_tanhf."""
        from triton.language.extra.cuda import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context: Any) -> None:
        """No dialect beyond Triton's own is used."""

    def add_stages(self, stages: dict[str, Any], options: CPUOptions, language: Language) -> None:
        """Register the steps ttir -> llir -> obj.

        Raises:
            CompileError: a Gluon kernel, or a cache setting under which no object would be kept.
        """
        if language != Language.TRITON:
            raise CompileError("Gluon kernels are written for GPUs; the CPU backend takes kernels of triton.language")
        if triton_knobs.compilation.store_binary_only:
            raise CompileError("TRITON_STORE_BINARY_ONLY keeps GPU binaries only; unset it to use the CPU backend")
        stages["ttir"] = _simplify
        stages["llir"] = functools.partial(_lower, options=options)
        stages["obj"] = functools.partial(_generate, options=options)


def _simplify(module: Any, metadata: dict[str, Any]) -> Any:
    """Stage ttir: inline calls, remove tensor descriptors, fold and hoist."""
    from triton_cpu.ttir.descriptors import descriptor_ranks, fix_last_strides

    kernel = module.get_entry_func_name()
    ranks = descriptor_ranks(module.get_function(kernel))
    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    passes.common.add_inliner(manager)
    passes.ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    manager.run(module, "triton_cpu.descriptors")
    fix_last_strides(module, module.get_function(kernel), ir.builder(module.context), ranks)
    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    passes.ttir.add_combine(manager)
    passes.common.add_canonicalizer(manager)
    passes.common.add_cse(manager)
    passes.ttir.add_triton_licm(manager)
    passes.common.add_symbol_dce(manager)
    manager.run(module, "triton_cpu.ttir")
    return module


def _lower(module: Any, metadata: dict[str, Any], options: CPUOptions) -> str:
    """Stage llir: text LLVM IR of the whole grid loop, and what the launcher must know about it."""
    from triton_cpu.lower import lower_module

    lowered = lower_module(generic_text(module), options)
    metadata["name"] = lowered.name
    metadata["slots"] = len(lowered.argument_types)
    metadata["uses_tiles"] = lowered.uses_tiles
    metadata["shared"] = 0  # Triton's runtime compares it with the device's limit
    return str(lowered.llvm_ir)


def _generate(llvm_ir: str, metadata: dict[str, Any], options: CPUOptions) -> bytes:
    """Stage obj: machine code."""
    from triton_cpu.llvm.optimize import compile_to_object

    return compile_to_object(llvm_ir, options.llvm_features)


def generic_text(module: Any) -> str:
    """The module in MLIR's generic form, with source locations.

    MLIR prints every operation generically when it meets an attribute that no dialect has registered.
    """
    module.set_attr("triton_cpu", ir.builder(module.context).get_int32_attr(1))
    return str(module)


def _fp_fusion(requested: bool | None) -> bool:
    """Whether a * b + c may become one instruction: as asked for by the kernel, else by Triton's settings, else yes."""
    language = triton_knobs.language
    if getattr(language, "force_disable_fp_fusion", False):
        return False
    return bool(language.default_fp_fusion if requested is None else requested)


@functools.cache
def _source_digest() -> str:
    """Digest of this package's source files, so that a changed compiler never meets objects of another one."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
