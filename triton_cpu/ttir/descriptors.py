"""Tensor descriptors that the caller makes: their last stride is 1, which the rewritten kernel is not told."""

from __future__ import annotations

import re
from typing import Any

_DESCRIPTOR = re.compile(r"!tt\.tensordesc<((?:\d+x)+).*>")


def descriptor_ranks(function: Any) -> list[int]:
    """For each argument of a function (of Triton's bindings): the dimensions of a descriptor, 0 for another type."""
    types = [_DESCRIPTOR.match(str(kind)) for kind in function.type.param_types()]
    return [found[1].count("x") if found else 0 for found in types]


def fix_last_strides(module: Any, function: Any, builder: Any, ranks: list[int]) -> None:
    """After descriptors have become a pointer, sizes, strides and flags: let 1 take the place of each last stride.

    Args:
        module, function: of Triton's bindings.
        builder: an ir.builder of their context.
        ranks: descriptor_ranks before the rewriting.
    """
    count = sum(rank > 0 for rank in ranks)
    if not count:
        return
    flags = (len(function.type.param_types()) - len(ranks) - 2 * sum(ranks)) // count
    builder.set_insertion_point_to_start(_entry(module, function))
    one = builder.get_int64(1)
    place = 0
    for rank in ranks:
        if rank:
            function.args(place + 2 * rank).replace_all_uses_with(one)
        place += 1 + (2 * rank + flags if rank else 0)


def _entry(module: Any, function: Any) -> Any:
    """The first block of a function: that of the first operation that lies directly in its region."""
    region, blocks = function.get_region(0).id(), []

    def look(operation: Any) -> None:
        block = operation.get_block()
        if block is not None and block.get_parent().id() == region:
            blocks.append(block)

    module.walk(look)
    return blocks[0]
