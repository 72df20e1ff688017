"""The kernel option `isa`: code for less than the machine has, to compare instruction sets or to reproduce a bug."""

from __future__ import annotations

from typing import NamedTuple

from triton_cpu.errors import CompileError
from triton_cpu.host import Host


class _Level(NamedTuple):
    """What a value of the option stands for.

    Attributes:
        needs: the feature (see host.Host) without which it is refused.
        without: features whose names begin like this are not used.
        off: LLVM's names of what to switch off; LLVM drops everything that builds on it as well.
    """

    needs: str
    without: tuple[str, ...]
    off: tuple[str, ...]


_LEVELS = {
    "avx2": _Level("avx2", ("avx512", "amx"), ("avx512f", "amx-tile")),
    "avx512": _Level("avx512", ("amx",), ("amx-tile",)),
    "amx": _Level("amx_bf16", (), ()),
}
BASELINE = "baseline"  # what every processor of the architecture has: SSE2 on x86-64
NAMES = (BASELINE, *_LEVELS)


def held_to(machine: Host, isa: str | None) -> Host:
    """The machine as code for `isa` may use it: that instruction set with all that it builds on, and nothing above it.

    Args:
        machine: what there is, without what TRITON_CPU_HIDE hides.
        isa: one of NAMES; None for everything the machine has.

    Raises:
        CompileError: another name, or an instruction set that the machine lacks or that is hidden.
    """
    if isa is None:
        return machine
    if isa not in NAMES:
        raise CompileError(f"isa={isa!r}: unknown; use one of {', '.join(NAMES)}, or leave it out")
    if isa == BASELINE:
        return Host(machine.machine, (), "", machine.absent)
    level = _LEVELS[isa]
    if level.needs not in machine.features:
        reason = machine.absent.get(
            level.needs, f"it has {', '.join(machine.features) or 'nothing beyond the baseline'}"
        )
        raise CompileError(f"isa={isa!r}: this machine cannot run it ({reason}); leave it out to use what there is")
    features = tuple(name for name in machine.features if not name.startswith(level.without))
    flags = ",".join([machine.llvm_features, *(f"-{name}" for name in level.off)])
    return Host(machine.machine, features, flags, machine.absent)
