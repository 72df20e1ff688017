"""`python -m triton_cpu explain`: what the compiler made of a kernel, and why."""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import triton.language as tl
from triton.compiler.errors import TritonError

from triton_cpu.errors import TritonCpuError

_EXAMPLE = "explain kernels.py:add_kernel x=float32 y=float32 out=float32 n=1000 BLOCK=64 --grid 16"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the explanation and return the exit code: 0, or 2 with one line on stderr when there is none."""
    parser = _Parser(prog="python -m triton_cpu", description="What becomes of a Triton kernel on this processor?")
    command = parser.add_subparsers(required=True, metavar="explain").add_parser(
        "explain", help="compile a kernel, without running it, and say how it is carried out", epilog=f"e.g. {_EXAMPLE}"
    )
    command.add_argument("kernel", metavar="MODULE:KERNEL", help="an importable module or a file, and the function")
    command.add_argument("arguments", type=_argument, nargs="*", metavar="NAME=VALUE",
                         help="argument or option, e.g. isa=avx2; a dtype of torch is a tensor of it")  # fmt: skip
    command.add_argument("--grid", type=_grid, default=(1,), metavar="X[,Y[,Z]]", help="programs (default: 1)")
    command.add_argument("--json", action="store_true", help="print JSON instead of text")
    given = parser.parse_args(argv)
    from triton_cpu import explain

    try:
        explanation = explain(_kernel(given.kernel), grid=given.grid, **dict(given.arguments))
    except (TritonCpuError, TritonError, ImportError, OSError) as error:
        print(f"{parser.prog}: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    print(json.dumps(explanation.as_dict(), indent=2) if given.json else explanation)
    return 0


def _kernel(text: str) -> Any:
    """The function that "module:name" or "file.py:name" names. Raises ImportError."""
    source, _, name = text.rpartition(":")
    if not source:
        raise ImportError(f"{text!r} is not MODULE:KERNEL, e.g. kernels.py:add_kernel")
    if source.endswith(".py"):
        path = Path(source).resolve()
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        sys.path.insert(0, str(path.parent))
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(source)
    if not hasattr(module, name):
        raise ImportError(f"{source} has no {name!r}")
    return getattr(module, name)


def _grid(text: str) -> tuple[int, ...]:
    """Sizes of e.g. "4,2"."""
    sizes = text.split(",")
    if not all(size.strip().isdecimal() for size in sizes):
        raise argparse.ArgumentTypeError(f"{text!r} is not X[,Y[,Z]], e.g. 16 or 4,2")
    return tuple(map(int, sizes))


def _argument(text: str) -> tuple[str, Any]:
    """Name and value of e.g. "BLOCK=64", "eps=1e-5", "x=bfloat16"; a value that is no Python literal stays text."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, e.g. BLOCK=64 or x=bfloat16")
    return name, _value(value)


def _value(text: str) -> Any:
    import torch

    dtype = getattr(torch, text, None)
    if isinstance(dtype, torch.dtype):
        return dtype
    if text.startswith("tl.") and isinstance(getattr(tl, text[3:], None), tl.dtype):
        return getattr(tl, text[3:])
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


if __name__ == "__main__":
    sys.exit(main())
