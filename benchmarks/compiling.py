"""What compiling costs: of a large and a small kernel without a cache, and in processes that have just started."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import torch
import triton

from benchmarks.attention import one_request
from benchmarks.case import Case
from benchmarks.timer import Run
from triton_spec.accept.advance import fill_bonus_tokens, fill_bonus_tokens_kernel
from triton_spec.attention.kernel import attention_kernel

LAUNCH = "import torch; from examples.tutorials.vector_add import add; x = torch.ones(16); assert add(x, x).sum() == 32"
ADD = "import torch; x = torch.ones(16); assert torch.add(x, x).sum() == 32"
IMPORT = "import triton"


def cases(tiny: bool = False) -> Iterator[Case]:
    """All of the family; there is nothing smaller for `tiny`."""
    yield Case("compile/attention kernel", "", _attention, serial=True)
    yield Case("compile/index kernel", "", _index, serial=True)
    yield Case(
        "process/cached kernel", "process with torch.add", lambda: (_process(LAUNCH), _process(ADD)), serial=True
    )
    yield Case(
        "process/import triton", "without this backend",
        lambda: (_process(IMPORT), _process(IMPORT, TRITON_BACKENDS_IN_TREE="1")), serial=True,
    )  # fmt: skip


def _attention() -> tuple[Run, None]:
    attend, _ = one_request(1, 64, 64)
    return lambda: _compiled_anew(attention_kernel, attend), None


def _index() -> tuple[Run, None]:
    tokens, ones, bonus = torch.ones(3, 16, dtype=torch.int64).unbind()
    return lambda: _compiled_anew(fill_bonus_tokens_kernel, lambda: fill_bonus_tokens(tokens, ones, bonus, 1)), None


def _compiled_anew(kernel: triton.JITFunction, launch: Run) -> None:
    """The first launch of a kernel that is in no cache; llvmlite and the rest are loaded already."""
    with tempfile.TemporaryDirectory() as folder, triton.knobs.cache.scope():
        triton.knobs.cache.dir = folder
        kernel.device_caches.clear()
        launch()


def _process(code: str, **environment: str) -> Run:
    """A Python process that runs `code`, from its start to its end."""
    return lambda: subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, check=True)
