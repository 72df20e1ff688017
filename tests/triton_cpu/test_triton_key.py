"""Triton's digest of its own files, kept in the cache."""

import os

import pytest
import triton.runtime.cache as triton_cache

from triton_cpu.runtime import cache
from triton_cpu.runtime.triton_key import RememberedKey, fingerprint, install

FILES = (
    "runtime/cache.py",
    "compiler/compiler.py",
    "backends/nvidia/driver.py",
    "language/extra/cuda/libdevice.py",
    "_C/libtriton.so",
)


class Digest:
    """A stand-in for Triton's function that counts its calls."""

    def __init__(self, text):
        self.text, self.calls = text, 0

    def __call__(self):
        self.calls += 1
        return self.text


@pytest.fixture
def root(tmp_path, cache_folder):
    cache.install()  # as the backend does first
    folder = tmp_path / "triton"
    for name in FILES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        os.utime(path, ns=(10**18, 10**18))
    return folder


def test_the_key_is_triton_s_own():
    install()
    install()
    assert isinstance(triton_cache.triton_key, RememberedKey)
    assert triton_cache.triton_key() == triton_cache.triton_key._compute()


def test_another_process_reads_the_text_and_not_the_files(root):
    first, second = Digest("3.9-abc"), Digest("never asked")
    assert RememberedKey(first, root)() == "3.9-abc"
    assert RememberedKey(second, root)() == "3.9-abc"
    assert (first.calls, second.calls) == (1, 0)


def test_one_process_asks_the_cache_once(root, monkeypatch):
    key = RememberedKey(Digest("3.9-abc"), root)
    key()
    monkeypatch.setattr(triton_cache, "get_cache_manager", None)
    assert key() == "3.9-abc"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", ["size", "time"])
def test_a_changed_file_of_triton_asks_anew(root, name, change):
    before = fingerprint(root)
    RememberedKey(Digest("old"), root)()
    path = root / name
    if change == "size":
        path.write_text(name + "#")
        os.utime(path, ns=(10**18, 10**18))
    else:
        os.utime(path, ns=(10**18, 10**18 + 1))
    assert fingerprint(root) != before
    assert RememberedKey(Digest("new"), root)() == "new"


def test_files_that_the_key_does_not_depend_on_do_not_matter(root):
    before = fingerprint(root)
    (root / "tools").mkdir()
    (root / "tools" / "compile.py").write_text("")
    (root / "compiler" / "notes.txt").write_text("")
    assert fingerprint(root) == before


def test_a_damaged_entry_asks_anew(root, cache_folder):
    RememberedKey(Digest("text"), root)()
    (path,) = cache_folder.glob("*/triton_key")
    path.write_text("te")
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert RememberedKey(Digest("text again"), root)() == "text again"
