"""What the compiler made of a kernel, for people: on which instructions, how memory is accessed, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from triton._C.libtriton import ir
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction, MockTensor

from triton_cpu.compiler import generic_text
from triton_cpu.errors import ArgumentError, LaunchError
from triton_cpu.host import host
from triton_cpu.lower import Decisions, Lowered, lower_module
from triton_cpu.options import make_options
from triton_cpu.runtime.bind import Grid
from triton_cpu.runtime.launch import check_grid
from triton_cpu.runtime.team import TEAM


@dataclass(frozen=True)
class Explanation:
    """What a launch runs; `str` gives it as text.

    Attributes:
        kernel: its name.
        target: "<architecture>:<features in use>".
        absent: feature that looked available but is not used -> the reason.
        grid: number of programs along each axis.
        threads: how many the grid is shared among.
        decisions: of the lowering, the notes about single operations among them.
        key: the cache key.
        file: the object file.
    """

    kernel: str
    target: str
    absent: Mapping[str, str]
    grid: tuple[int, int, int]
    threads: int
    decisions: Decisions
    key: str
    file: str

    def as_dict(self) -> dict[str, Any]:
        """The same as values that JSON has."""
        notes = [note._asdict() for note in self.decisions.notes]
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return plain | {"absent": dict(self.absent), "decisions": vars(self.decisions) | {"notes": notes}}

    def __str__(self) -> str:
        machine, _, features = self.target.partition(":")
        decided = self.decisions
        threads = "the calling thread" if self.threads == 1 else f"{self.threads} threads"
        facts = {
            "kernel": self.kernel,
            "target": f"{machine} with {features.replace(',', ', ') or 'what every processor of it has'}",
            **{f"without {feature}": reason for feature, reason in self.absent.items()},
            "chunks": f"{decided.lanes} elements at most",
            "tensors": f"{decided.stack_bytes} bytes on a program's stack, {decided.arena_bytes} in a thread's arena",
            "programs": f"{' x '.join(map(str, self.grid))} on {threads}",
            "sharing": f"{decided.programs_per_fork} programs or more are shared among threads",
            "cache": self.file,
        }
        rows = [
            (f"{Path(file).name}:{line}:{column}", operation, text)
            for (file, line, column), operation, text in sorted(
                (_place(note.location), note.operation, note.text) for note in decided.notes
            )
        ]
        wide = [max((len(row[column]) for row in rows), default=0) for column in range(2)]
        lines = [f"{name:{max(map(len, facts))}}  {fact}" for name, fact in facts.items()]
        return "\n".join([*lines, "", *(f"{at:{wide[0]}}  {what:{wide[1]}}  {text}" for at, what, text in rows)])


def explain(kernel: Any, *args: Any, grid: Grid, **kwargs: Any) -> Explanation:
    """Compile a kernel for these arguments, without running it, and say what became of it.

    Args:
        kernel: a @triton.jit function.
        grid: one to three program counts, or a function of the arguments by name giving them.
        args, kwargs: what ``kernel[grid](*args, **kwargs)`` would take, options such as ``isa`` included; a torch dtype
            stands for a tensor of it.

    Raises:
        ArgumentError: names or types do not fit the kernel, or the kernel is of a kind that chooses at each call.
        LaunchError: the grid is out of range, or the active Triton driver is not the CPU's.
        CompileError: the kernel cannot be compiled.
    """
    if not isinstance(kernel, JITFunction):
        raise ArgumentError(
            f"explain takes a @triton.jit function, not {type(kernel).__name__}: one that chooses its configuration at "
            "each call has no code of its own; explain the function inside it with the configuration wanted"
        )
    target = driver.active.get_current_target()
    if target.backend != "cpu":
        raise LaunchError(f"explain is about CPU code, but Triton's active driver is {target.backend!r}")
    args = tuple(map(MockTensor.wrap_dtype, args))
    kwargs = {name: MockTensor.wrap_dtype(value) for name, value in kwargs.items()}
    *_, binder = kernel.device_caches[driver.active.get_current_device()]
    try:
        values, _, _ = binder(*args, **kwargs)
        compiled = kernel.run(*args, grid=grid, warmup=True, **kwargs)
    except (TypeError, KeyError) as error:
        raise ArgumentError(f"the arguments do not fit kernel {kernel.__name__!r}: {error}") from error
    sizes = tuple(grid(values)) if callable(grid) else tuple(grid)
    if not 1 <= len(sizes) <= 3:
        raise LaunchError(f"grid {sizes}: one to three dimensions are needed")
    x, y, z = (*sizes, 1, 1)[:3]
    check_grid((x, y, z))
    lowered, programs = _lowered(compiled), x * y * z
    shared = programs >= lowered.decisions.programs_per_fork
    threads = max(1, min(programs, TEAM.size())) if shared else 1
    return Explanation(
        compiled.name,
        compiled.metadata.arch,
        dict(host().absent),
        (x, y, z),
        threads,
        lowered.decisions,
        compiled.hash,
        next(str(path) for name, path in compiled.metadata_group.items() if name.endswith(".obj")),
    )


def _lowered(compiled: Any) -> Lowered:
    """The lowering of a compiled kernel once more: what is cached of it is code without the decisions."""
    given = compiled.metadata._asdict()
    options = make_options(given, given["arch"], given["llvm_features"])
    context = ir.context()
    ir.load_dialects(context)
    with TemporaryDirectory() as folder:  # the cache's own file may be gone by now
        file = Path(folder, "kernel.ttir")
        file.write_text(compiled.asm["ttir"])
        module = ir.parse_mlir_module(str(file), context)
    module.context = context
    return lower_module(generic_text(module), options)


def _place(location: str) -> tuple[str, int, int]:
    """ "file:line:column" in a form that sorts; ("?", 0, 0) where it is not known."""
    file, *numbers = location.rsplit(":", 2)
    return (file, int(numbers[0]), int(numbers[1])) if len(numbers) == 2 else ("?", 0, 0)
