"""Kernels without products: vector addition, softmax, layer norm, as in the tutorials."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F
import triton

from benchmarks.case import Case
from benchmarks.timer import Run
from examples.tutorials.fused_softmax import softmax_kernel
from examples.tutorials.layer_norm import forward_kernel
from examples.tutorials.vector_add import add_kernel

ADD_BLOCK = 1024
SOFTMAX_PROGRAMS = 64
ADD_SIZES = (1 << 16, 1 << 20, 1 << 26)  # 0.75 MiB in all: a second-level cache; 12 MiB: the third; 768 MiB: memory
ROW_SIZES = ((1024, 781), (1024, 1024), (1024, 4096))  # the last one's 32 MiB in all are more than most caches


def cases(tiny: bool = False) -> Iterator[Case]:
    """All of the family; `tiny`: on a few elements."""
    for elements in (17, 2000) if tiny else ADD_SIZES:
        yield Case(f"vector_add/f32/{elements}", "torch.add(out=)", partial(_add, elements), 0.0, bars=(1.0, 1.0))
    for size in ((3, 17),) if tiny else ROW_SIZES:
        name = "f32/{}x{}".format(*size)
        yield Case(f"softmax/{name}", "torch.softmax(out=)", partial(_softmax, *size), bars=(1.3, 1.3))
        yield Case(f"layer_norm/{name}", "F.layer_norm", partial(_layer_norm, *size), bars=(1.3, 1.3))


def _add(elements: int) -> tuple[Run, Run]:
    x, y, out, expected = torch.randn(4, elements).unbind()
    grid = (triton.cdiv(elements, ADD_BLOCK),)

    def ours() -> torch.Tensor:
        add_kernel[grid](x, y, out, elements, BLOCK=ADD_BLOCK)
        return out

    return ours, lambda: torch.add(x, y, out=expected)


def _softmax(rows: int, columns: int) -> tuple[Run, Run]:
    x, out, expected = torch.randn(3, rows, columns).unbind()
    grid, block = (min(rows, SOFTMAX_PROGRAMS),), triton.next_power_of_2(columns)

    def ours() -> torch.Tensor:
        softmax_kernel[grid](x, out, columns, columns, rows, columns, BLOCK=block)
        return out

    return ours, lambda: torch.softmax(x, 1, out=expected)


def _layer_norm(rows: int, columns: int) -> tuple[Run, Run]:
    x, (weight, bias), (means, rstds) = torch.randn(rows, columns), torch.rand(2, columns), torch.empty(2, rows)
    block = min(1024, triton.next_power_of_2(columns))
    out = torch.empty_like(x)

    def ours() -> torch.Tensor:
        forward_kernel[(rows,)](x, out, weight, bias, means, rstds, columns, 1e-5, BLOCK=block)
        return out

    return ours, lambda: F.layer_norm(x, (columns,), weight, bias, 1e-5)
