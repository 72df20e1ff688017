"""The TTIR that Triton makes of a kernel, read into nodes."""

from __future__ import annotations

from typing import Any

from triton._C.libtriton import ir
from triton.compiler import ASTSource
from triton.runtime import JITFunction, driver

from triton_cpu.compiler import CPUBackend, _simplify, generic_text
from triton_cpu.ttir.nodes import Block, Node
from triton_cpu.ttir.read import read_module
from triton_cpu.ttir.unit_dims import expand_unit_dims


def ttir_of(kernel: JITFunction, **arguments: Any) -> list[Block]:
    """The blocks of a kernel; lower-case arguments are types as Triton spells them ("*fp32"), others constants."""
    signature = {name: value if name.islower() else "constexpr" for name, value in arguments.items()}
    constants = {(place,): arguments[name] for place, name in enumerate(arguments) if not name.islower()}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    target = driver.active.get_current_target()
    backend = CPUBackend(target)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    implementation = backend.get_codegen_implementation(options)
    module = source.make_ir(target, options, implementation, backend.get_module_map(), context)
    (function,) = expand_unit_dims(read_module(generic_text(_simplify(module, {}))))
    return function.regions[0]


def nodes_of(blocks: list[Block], name: str) -> list[Node]:
    """The operations of that name, in order, at any depth."""
    every = [inner for block in blocks for node in block.nodes for inner in (node, *node.nested())]
    return [node for node in every if node.name == name]
