"""Forks wait until no thread is inside LLVM.

llvmlite lets one thread into LLVM at a time, behind a lock. A child forked while another thread holds that lock would
find it held for ever; so the lock is taken around each fork.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import llvmlite.binding as llvm


def llvm_lock() -> Any:
    """llvmlite's lock, which has no public name; an empty context where a later version has renamed it."""
    return getattr(llvm.ffi.lib, "_lock", contextlib.nullcontext())


def guard_forks() -> None:
    """Take the lock around every fork of this process from now on."""
    lock = llvm_lock()

    def release() -> None:
        lock.__exit__(None, None, None)

    os.register_at_fork(before=lock.__enter__, after_in_parent=release, after_in_child=release)
