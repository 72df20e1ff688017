"""Machine code that runs a table of launches, once it has seen that their tensors are where they were."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable
from typing import Any

from triton_cpu.errors import LoadError
from triton_cpu.llvm.optimize import compile_to_object
from triton_cpu.runtime.load import link, torch_symbols

# PyTorch's stable C interface; a handle is a pointer to a C++ tensor, which is one pointer itself.
_SYMBOLS = ("aoti_torch_get_data_ptr", "aoti_torch_new_tensor_handle", "aoti_torch_delete_tensor_object")

_IR = """
%launch = type { ptr, ptr, i32, i32, i32, i32 }
%watch = type { ptr, ptr }
%array = type { ptr, i64 }
declare i32 @aoti_torch_get_data_ptr(ptr, ptr)

define i64 @replay(ptr %watch_table, ptr %launches, i64 %count, i32 %threads) nounwind {
entry:
  %found = alloca ptr
  %watches = load ptr, ptr %watch_table
  %pwatched = getelementptr %array, ptr %watch_table, i64 0, i32 1
  %watched = load i64, ptr %pwatched
  br label %check
check:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %unseen = icmp ult i64 %i, %watched
  br i1 %unseen, label %look, label %run
look:
  %phandle = getelementptr %watch, ptr %watches, i64 %i
  %handle = load ptr, ptr %phandle
  %unused = icmp eq ptr %handle, null
  br i1 %unused, label %next, label %ask
ask:
  %pexpected = getelementptr %watch, ptr %watches, i64 %i, i32 1
  %expected = load ptr, ptr %pexpected
  %fault = call i32 @aoti_torch_get_data_ptr(ptr %handle, ptr %found)
  %address = load ptr, ptr %found
  %answered = icmp eq i32 %fault, 0
  %same = icmp eq ptr %address, %expected
  %good = and i1 %answered, %same
  br i1 %good, label %next, label %stale
next:
  %i1 = add i64 %i, 1
  br label %check
stale:
  ret i64 %i
run:
  %k = phi i64 [ 0, %check ], [ %k1, %call ]
  %waiting = icmp ult i64 %k, %count
  br i1 %waiting, label %call, label %done
call:
  %pcode = getelementptr %launch, ptr %launches, i64 %k, i32 0
  %code = load ptr, ptr %pcode
  %parguments = getelementptr %launch, ptr %launches, i64 %k, i32 1
  %arguments = load ptr, ptr %parguments
  %px = getelementptr %launch, ptr %launches, i64 %k, i32 2
  %x = load i32, ptr %px
  %py = getelementptr %launch, ptr %launches, i64 %k, i32 3
  %y = load i32, ptr %py
  %pz = getelementptr %launch, ptr %launches, i64 %k, i32 4
  %z = load i32, ptr %pz
  call void %code(ptr %arguments, i32 %x, i32 %y, i32 %z, i32 %threads)
  %k1 = add i64 %k, 1
  br label %run
done:
  ret i64 -1
}
"""


class LaunchEntry(ctypes.Structure):
    """One launch as `replay` reads it."""

    _fields_ = [
        ("code", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("x", ctypes.c_int32),
        ("y", ctypes.c_int32),
        ("z", ctypes.c_int32),
        ("padding", ctypes.c_int32),
    ]


class WatchEntry(ctypes.Structure):
    """One tensor as `replay` reads it: a handle (null: the entry is not in use) and where its data must be."""

    _fields_ = [("handle", ctypes.c_void_p), ("expected", ctypes.c_void_p)]


class WatchArray(ctypes.Structure):
    """An array of WatchEntry as `replay` finds it."""

    _fields_ = [("entries", ctypes.c_void_p), ("length", ctypes.c_int64)]


class TensorHandle:
    """Shares the ownership of a tensor, so that native code may look at it.

    Attributes:
        tensor: the tensor.
        value: what native code calls it.
    """

    def __init__(self, tensor: Any) -> None:
        library = _library()
        itself, handle = ctypes.c_void_p(tensor._cdata), ctypes.c_void_p()
        if library.new(ctypes.addressof(itself), ctypes.addressof(handle)) or not handle.value:
            raise LoadError(f"PyTorch gives no handle of a tensor ({tensor.shape}, {tensor.dtype})")
        self.tensor = tensor
        self.value: int = handle.value
        weakref.finalize(self, library.delete, handle.value).atexit = False


def replayer() -> Callable[[int, int, int, int], int]:
    """The function replay(address of a WatchArray, address of an array of LaunchEntry, its length, threads).

    It looks at every tensor first. It returns the index of the first one that has moved, having run nothing, or else
    runs all launches in order and returns -1.
    """
    return _library().replay


class _Library:
    """The compiled function and PyTorch's functions behind it."""

    def __init__(self) -> None:
        symbols = torch_symbols(
            _SYMBOLS, "recorded launches look at tensors through PyTorch's C interface; install torch 2.6 or later"
        )
        imports = {"aoti_torch_get_data_ptr": symbols["aoti_torch_get_data_ptr"]}
        self._code = link("replay", compile_to_object(_IR, ""), ("replay",), imports)
        run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
        self.replay: Callable[[int, int, int, int], int] = run(self._code["replay"])
        self.new = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(symbols[_SYMBOLS[1]])
        self.delete = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(symbols[_SYMBOLS[2]])


@functools.cache
def _library() -> _Library:
    return _Library()
