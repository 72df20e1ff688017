"""Machine code that starts a launch from one block of memory: ctypes takes 0.1 us for every argument of a call."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable

from triton_cpu.llvm.optimize import compile_to_object
from triton_cpu.runtime.load import link

HEADER = struct.Struct("<Q3i4x")  # address of the compiled function, grid x, y, z; the arguments follow

_IR = """
define void @start(ptr %block, i32 %threads) nounwind {
  %code = load ptr, ptr %block
  %px = getelementptr i32, ptr %block, i64 2
  %x = load i32, ptr %px
  %py = getelementptr i32, ptr %block, i64 3
  %y = load i32, ptr %py
  %pz = getelementptr i32, ptr %block, i64 4
  %z = load i32, ptr %pz
  %arguments = getelementptr i64, ptr %block, i64 3
  tail call void %code(ptr %arguments, i32 %x, i32 %y, i32 %z, i32 %threads)
  ret void
}
"""


@functools.cache
def starter() -> Callable[[bytes | int, int], None]:
    """The function start(block, threads): the block, or its address, has a HEADER and the slots of the arguments.

    The GIL is released during the call. The caller keeps the compiled function alive.
    """
    library = link("start", compile_to_object(_IR, ""), ("start",), {})
    start = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)(library["start"])
    start.library = library  # type: ignore[attr-defined]  # whoever holds the function holds the code
    return start
