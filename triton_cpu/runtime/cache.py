"""Triton's kernel cache, made to survive damage, racing processes and folders that cannot be written.

Triton lets a cache manager class be set. Ours keeps the stock file layout and adds digests to a group's index: an entry
whose files do not match is dropped with a warning and compiled again, instead of failing while it is read or loaded.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
import uuid
import warnings
from pathlib import Path
from typing import Any

from triton import knobs
from triton.runtime.cache import FileCacheManager


class CheckedCacheManager(FileCacheManager):  # type: ignore[misc]  # triton has no type information
    """The files of one compiled kernel (or of one override or dump folder).

    Args:
        key: the cache key; names the folder.
        override: files that replace compilation stages, see TRITON_KERNEL_OVERRIDE.
        dump: copies of compilation stages, see TRITON_KERNEL_DUMP.
    """

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self._digests: dict[str, str] = {}
        self._checked = not override and not dump
        if not self._checked:
            super().__init__(key, override=override, dump=dump)
            return
        self.key = key
        self.lock_path = None
        self.cache_dir = os.path.join(knobs.cache.dir, key)
        if not knobs.cache.dir or knobs.cache.dir.startswith("~"):  # "~": no home directory is known
            self._move("no folder is named")
            return
        try:
            os.makedirs(self.cache_dir, exist_ok=True)
        except OSError as error:
            self._move(str(error))

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        """Write a file so that other processes see all of it or none of it; returns its path."""
        content = data if isinstance(data, bytes) else str(data).encode()
        self._digests[filename] = _digest(content)
        try:
            return self._write(content, filename)
        except OSError as error:
            if not self._checked:
                raise
            self._move(str(error))
            return self._write(content, filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        """Files of a complete, undamaged entry by name; None when there is none, which makes Triton compile."""
        index = Path(self._make_path(f"__grp__{filename}"))
        try:
            text = index.read_bytes()
        except OSError:
            return None
        try:
            group = _verified_group(text)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            warnings.warn(f"cache entry {index} is damaged ({error}); compiling again", RuntimeWarning, stacklevel=2)
            return None
        return group

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Publish the entry: its index is written last and lists the digests of its files."""
        digests = {name: self._digests[name] for name in group}
        return self.put(json.dumps({"child_paths": group, "sha256": digests}), f"__grp__{filename}")

    def _write(self, content: bytes, filename: str) -> str:
        path = self._make_path(filename)
        temporary = f"{path}.{os.getpid()}.{uuid.uuid4().hex}"
        os.makedirs(self.cache_dir, exist_ok=True)
        try:
            Path(temporary).write_bytes(content)
            os.replace(temporary, path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
        return str(path)

    def _move(self, reason: str) -> None:
        """Continue in this process' private folder."""
        self.cache_dir = os.path.join(_PRIVATE_FOLDER.path(reason), self.key)


def install() -> None:
    """Make Triton use this manager, unless the user has set one."""
    if knobs.cache.manager_class is None:
        knobs.cache.manager_class = CheckedCacheManager


def _verified_group(text: bytes) -> dict[str, str]:
    """The files an index lists, all present with the content they were published with."""
    index = json.loads(text)
    group: dict[str, str] = index["child_paths"]
    for name, path in group.items():
        if _digest(Path(path).read_bytes()) != index["sha256"][name]:
            raise ValueError(f"{name} has changed since it was written")
    return group


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class _PrivateFolder:
    """A temporary cache folder of this process, made at the first need and removed at its end."""

    def __init__(self) -> None:
        self._path = ""

    def path(self, reason: str) -> str:
        """The folder; the first call makes it and warns with `reason`."""
        if not self._path:
            self._path = tempfile.mkdtemp(prefix="triton_cpu.")
            atexit.register(self._remove, os.getpid())
            warnings.warn(
                f"the Triton cache {knobs.cache.dir!r} cannot be used ({reason}); kernels are compiled anew in each "
                f"process, into {self._path}. Set TRITON_CACHE_DIR to a folder that can be written",
                RuntimeWarning,
                stacklevel=4,
            )
        return self._path

    def _remove(self, owner: int) -> None:
        if os.getpid() == owner:  # a forked child inherits the folder and must leave it to its owner
            shutil.rmtree(self._path, ignore_errors=True)


_PRIVATE_FOLDER = _PrivateFolder()
