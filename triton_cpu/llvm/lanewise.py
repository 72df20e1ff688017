"""Masked loads and stores lane by lane, for processors that lack them: a function of the module per kind, with a loop.

LLVM would write a branch per lane at every use.
"""

from __future__ import annotations

from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.types import PTR, Type


def load(b: Builder, places: Value, mask: Value, other: Value) -> Value:
    """Elements at neighbouring addresses from a pointer on, or at a vector of pointers; `other` where not `mask`."""
    kind = other.type
    name = f"lanewise.load.{kind.suffix}.{places.type.suffix}"
    b.globals[name] = _function(name, kind, kind, places.type)
    args = f"{places.type} {places.text}, {mask.type} {mask.text}, {kind} {other.text}"
    return b.value(kind, f"call {kind} @{name}({args})")


def store(b: Builder, value: Value, places: Value, mask: Value) -> None:
    """Store elements at neighbouring addresses from a pointer on, or at a vector of pointers, where `mask`."""
    kind = value.type
    name = f"lanewise.store.{kind.suffix}.{places.type.suffix}"
    b.globals[name] = _function(name, None, kind, places.type)
    b.emit(f"call void @{name}({places.type} {places.text}, {mask.type} {mask.text}, {kind} {value.text})")


def _function(name: str, result: Type | None, kind: Type, places: Type) -> str:
    """Text of the function; `result` is None for a store."""
    lanes, elem = kind.lanes, Type(kind.elem)
    if places == PTR:
        address = f"  %place = getelementptr {elem}, ptr %places, i64 %i"
        spread = ""
    else:
        address = f"  %at = getelementptr [{lanes} x ptr], ptr %addresses, i64 0, i64 %i\n  %place = load ptr, ptr %at"
        spread = f"  %addresses = alloca [{lanes} x ptr], align 64\n  store {places} %places, ptr %addresses\n"
    move = ("%place", "%item") if result else ("%item", "%place")
    end = f"  %all = load {kind}, ptr %items\n  ret {kind} %all" if result else "  ret void"
    parameters = f"{places} %places, <{lanes} x i1> %mask, {kind} %given"
    return f"""define internal {result or "void"} @{name}({parameters}) noinline {{
entry:
  %items = alloca [{lanes} x {elem}], align 64
  %flags = alloca [{lanes} x i8], align 64
{spread}  store {kind} %given, ptr %items
  %bytes = zext <{lanes} x i1> %mask to <{lanes} x i8>
  store <{lanes} x i8> %bytes, ptr %flags
  br label %lane
lane:
  %i = phi i64 [ 0, %entry ], [ %next, %after ]
  %flag_at = getelementptr i8, ptr %flags, i64 %i
  %flag = load i8, ptr %flag_at
  %set = icmp ne i8 %flag, 0
  br i1 %set, label %move, label %after
move:
  %item = getelementptr {elem}, ptr %items, i64 %i
{address}
  %moved = load {elem}, ptr {move[0]}, align 1
  store {elem} %moved, ptr {move[1]}, align 1
  br label %after
after:
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, {lanes}
  br i1 %more, label %lane, label %done
done:
{end}
}}"""
