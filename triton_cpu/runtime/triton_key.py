"""Triton's part of the cache keys, remembered from process to process.

It is a digest of Triton's own files. To make it, every process that launches a kernel reads a library of 500 MB, which
takes longer than everything else before the first launch together. We keep the digest in the cache, under the sizes and
times of those files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import triton
import triton.runtime.cache as triton_cache

_NAME = "triton_key"
_PARTS = ("runtime/cache.py", "compiler/**/*.py", "backends/**/*.py", "language/**/*.py", "_C/libtriton*.so")


def install() -> None:
    """Make Triton ask the cache for its digest before it reads its files."""
    compute = triton_cache.triton_key
    if not isinstance(compute, RememberedKey):
        triton_cache.triton_key = RememberedKey(compute, Path(triton.__file__).parent)


class RememberedKey:
    """Stands for the function triton_key: the same text, read from the cache where it was written before.

    Args:
        compute: the function itself.
        root: the folder of the files that it reads.
    """

    def __init__(self, compute: Callable[[], str], root: Path) -> None:
        self._compute, self._root = compute, root
        self._known = ""

    def __call__(self) -> str:
        """The text; it is looked up once in a process."""
        if not self._known:
            cache = triton_cache.get_cache_manager(fingerprint(self._root))
            path = (cache.get_group(_NAME) or {}).get(_NAME)
            if path is not None:
                self._known = Path(path).read_text()
            else:
                self._known = self._compute()
                cache.put_group(_NAME, {_NAME: cache.put(self._known, _NAME, binary=False)})
        return self._known


def fingerprint(root: Path) -> str:
    """Digest of the path, size, and times of change of every file below `root` that Triton's key depends on."""
    digest = hashlib.sha256(str(root).encode())
    for path in sorted(path for part in _PARTS for path in root.glob(part)):
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}\n".encode())
    return digest.hexdigest()
