"""Small functions over arrays, compiled from what a test emits: out[i] = body(a[i], b[i], ...)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from triton_cpu.host import host
from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.half import half_functions
from triton_cpu.llvm.optimize import compile_to_object
from triton_cpu.llvm.types import PTR, SIZES, Type
from triton_cpu.runtime.load import link

LANES = (0, 1, 4, 16, 64)  # 0 is the scalar form
Body = Callable[..., Value]

_NUMPY = {
    "i8": np.uint8, "i16": np.uint16, "i32": np.int32, "i64": np.int64, "half": np.uint16, "bfloat": np.uint16,
    "float": np.float32, "double": np.float64,
}  # fmt: skip


def array_ir(body: Body, arguments: Sequence[str], result: str, lanes: int) -> str:
    """Module with `void apply(ptr out, ptr a, ..., i64 chunks)`, which calls `body` on chunks of `lanes` elements."""
    declarations: dict[str, str] = {}
    globals_: dict[str, str] = {}
    b = Builder(declarations, globals_)
    count = max(lanes, 1)
    i = Value("%i", Type("i64"))
    start = b.mul(i, count)
    values = [b.load(Type(elem, lanes), b.gep(Value(f"%a{k}", PTR), start, elem)) for k, elem in enumerate(arguments)]
    answer = body(b, *values)
    assert answer.type == Type(result, lanes), answer.type
    b.store(answer, b.gep(Value("%out", PTR), start, result))
    parameters = "".join(f", ptr %a{k}" for k in range(len(arguments)))
    return "\n".join(
        [
            *declarations.values(),
            *globals_.values(),
            f"define void @apply(ptr %out{parameters}, i64 %chunks) {{",
            "top:",
            *b.allocas,
            "  br label %entry",
            "entry:",
            f"  %i = phi i64 [ 0, %top ], [ %next, %{b.block} ]",
            *b.lines,
            "  %next = add nuw nsw i64 %i, 1",
            "  %more = icmp ult i64 %next, %chunks",
            "  br i1 %more, label %entry, label %end",
            "end:",
            "  ret void",
            "}",
        ]
    )


class ArrayFunction:
    """A compiled function over arrays; the number of elements is a multiple of the lanes.

    Arrays of half and bfloat are passed and returned as uint16 bits.
    """

    def __init__(self, body: Body, arguments: Sequence[str], result: str, lanes: int, features: str | None = None):
        llvm_ir = array_ir(body, arguments, result, lanes)
        llvm_ir += half_functions(llvm_ir, host().features)
        self._code = link("apply", compile_to_object(llvm_ir, features or host().llvm_features), ("apply",), {})
        pointers = [ctypes.c_void_p] * (len(arguments) + 1)
        self._function = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)(self._code["apply"])
        self._arguments, self._result, self._lanes = arguments, result, max(lanes, 1)

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        arrays = tuple(np.ascontiguousarray(array) for array in arrays)
        for array, elem in zip(arrays, self._arguments, strict=True):
            assert array.dtype.itemsize == SIZES[elem], (array.dtype, elem)
            assert array.size % self._lanes == 0, array.size
        out = np.empty(arrays[0].size, _NUMPY[self._result])
        self._function(out.ctypes.data, *(array.ctypes.data for array in arrays), arrays[0].size // self._lanes)
        return out
