"""A kernel function and what runs it over a grid: a range of programs per thread, on the pool that PyTorch uses."""

from __future__ import annotations

import importlib

from triton_cpu.analysis.materialise import outside_uses
from triton_cpu.errors import CompileError
from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.half import half_functions
from triton_cpu.llvm.types import I32, Type, stored
from triton_cpu.lower import Decisions, Lowered
from triton_cpu.lower.branch import reserve_arguments, take_arguments
from triton_cpu.lower.context import Context, Machine
from triton_cpu.lower.grid import grid_functions
from triton_cpu.lower.work import programs_per_fork
from triton_cpu.options import CPUOptions
from triton_cpu.ttir.nodes import Node

FAMILIES = (
    "arith", "atomic", "branch", "call", "cast", "debug", "dot", "lookup", "loop", "mapped", "math", "memory",
    "pointer", "program", "reduce", "scan", "shape",
)  # fmt: skip
_PROGRAM = tuple(Value(f"%{name}", I32) for name in ("pid0", "pid1", "pid2", "np0", "np1", "np2"))
_CHUNK = {"avx512": 64, "avx2": 32}  # elements of a chunk
_PORTABLE_CHUNK = 16


def lower_function(functions: list[Node], options: CPUOptions) -> Lowered:
    """Lower the public function of a module and the grid loop around it."""
    for family in FAMILIES:
        importlib.import_module(f"triton_cpu.lower.{family}")  # enters its rules
    kernel, *others = sorted(functions, key=lambda function: "private" in function.attributes.get("sym_visibility", ""))
    name = kernel.attributes["sym_name"].strip('"')
    machine = _machine(options)
    b = Builder({}, {}, machine.features)
    cx = Context(b, machine)
    blocks = kernel.regions[0]
    arguments = blocks[0].arguments
    for place, argument in enumerate(arguments):
        if argument.type.is_tensor:
            raise CompileError(f"argument {place} of {name} is a tensor: kernels take scalars and pointers")
        cx.forms[argument] = Value(f"%a{place}", Type(argument.type.elem))
    cx.program = _PROGRAM
    cx.functions = {other.attributes["sym_name"].strip('"'): other for other in others}
    every = [block for function in functions for block in function.regions[0]]
    nodes = [inner for block in every for node in block.nodes for inner in (node, *node.nested())]
    cx.used = {operand for node in nodes for operand in node.operands}
    cx.kept = outside_uses(blocks)
    for block in blocks:
        cx.labels[block.label] = b.name("block")
        if block is not blocks[0]:
            reserve_arguments(cx, block.label, block.arguments)
    for block in blocks:
        b.start(cx.labels[block.label])
        if block is not blocks[0]:
            take_arguments(cx, block.arguments)
        cx.run(block)
        cx.forget()
    noted = {(note.location, note.operation) for note in cx.notes}
    for node in nodes:
        if node.name == "tt.load" and (node.location, node.name) not in noted:
            cx.note(node, "in place, by the operation that uses it")
    types = tuple(argument.type.elem for argument in arguments)
    least = programs_per_fork(every)
    body = [*b.allocas, f"  br label %{cx.labels[blocks[0].label]}", *b.lines]
    parameters = ["ptr noalias %arena", *(f"{Type(kind)} %a{place}" for place, kind in enumerate(types))]
    parameters += [f"{value.type} {value.text}" for value in _PROGRAM]
    text = "\n".join(
        [
            f"define internal void @kernel({', '.join(parameters)}) {{",
            "entry:",
            *body,
            "}",
            grid_functions(types, b.arena_bytes, cx.uses_tiles, least),
            *b.globals.values(),
            *b.declarations.values(),
        ]
    )
    text += "\n" + half_functions(text, machine.features)
    decisions = Decisions(tuple(cx.notes), machine.lanes, least, b.frame_bytes, b.arena_bytes)
    return Lowered(text, name, cx.uses_tiles, tuple(stored(kind) for kind in types), decisions)


def _machine(options: CPUOptions) -> Machine:
    features = frozenset(filter(None, options.arch.partition(":")[2].split(",")))
    lanes = next((lanes for feature, lanes in _CHUNK.items() if feature in features), _PORTABLE_CHUNK)
    return Machine(features, lanes, options.enable_fp_fusion, options.debug)
