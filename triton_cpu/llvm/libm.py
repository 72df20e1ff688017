"""Calls of the C mathematics library, one per lane."""

from __future__ import annotations

from collections.abc import Sequence

from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.types import Type


def per_lane(b: Builder, name: str, args: Sequence[Value], result: str | None = None) -> Value:
    """Call the C function `name` on each lane.

    Vectors go through a function of the module, shared by all uses, that loops over the lanes; it keeps code short.

    Args:
        name: symbol, e.g. "expf".
        args: values of equal lanes.
        result: element of the result; that of the first argument by default.
    """
    lanes = args[0].type.lanes
    to = Type(result or args[0].type.elem, lanes)
    if lanes == 0:
        return b.call(name, to, args)
    elements = ", ".join(a.type.elem for a in args)
    b.declarations[name] = f"declare {to.elem} @{name}({elements})"
    loop = f"lanes.{name}.{to.suffix}"
    b.globals[loop] = _loop(loop, name, to, [a.type for a in args])
    passed = ", ".join(f"{a.type} {a.text}" for a in args)
    return b.value(to, f"call {to} @{loop}({passed})")


def _loop(loop: str, name: str, to: Type, types: Sequence[Type]) -> str:
    """Text of an internal function that calls `name` lane by lane."""
    parameters = ", ".join(f"{t} %a{k}" for k, t in enumerate(types))
    extracts = "\n".join(f"  %e{k} = extractelement {t} %a{k}, i64 %i" for k, t in enumerate(types))
    passed = ", ".join(f"{t.elem} %e{k}" for k, t in enumerate(types))
    return f"""define internal {to} @{loop}({parameters}) noinline {{
entry:
  br label %lane
lane:
  %i = phi i64 [ 0, %entry ], [ %next, %lane ]
  %so_far = phi {to} [ poison, %entry ], [ %with, %lane ]
{extracts}
  %r = call {to.elem} @{name}({passed})
  %with = insertelement {to} %so_far, {to.elem} %r, i64 %i
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, {to.lanes}
  br i1 %more, label %lane, label %done
done:
  ret {to} %with
}}"""
