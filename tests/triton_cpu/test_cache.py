"""Triton's cache under damage, races, hidden features and folders that cannot be written."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
import triton
from triton import knobs

from tests.triton_cpu.hand_lowered import spy
from triton_cpu.runtime import cache as cache_module

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys, time
import torch, triton
from tests.triton_cpu.hand_lowered import HandLowering, spy

@triton.jit
def kernel(out, N: tl.constexpr):
    pass

HandLowering(spy(1), "kernel", ("ptr",)).install()
time.sleep(max(0.0, float(sys.argv[1]) - time.time()))
for n in range(5):
    out = torch.zeros(16, dtype=torch.int64)
    kernel[(1,)](out, N=n)
    assert out[0] == out.data_ptr()
""".replace("import torch, triton\n", "import torch, triton\nimport triton.language as tl\n")


def fresh_kernel():
    """The same kernel without this process' memory of having compiled it."""

    @triton.jit
    def kernel(out):
        pass

    return kernel


def run(kernel):
    out = torch.zeros(16, dtype=torch.int64)
    kernel[(1,)](out)
    assert out[0] == out.data_ptr()


@pytest.fixture
def fake(lowering):
    return lowering(spy(1), ["ptr"])


def entry(folder, ending):
    (path,) = folder.glob(f"*/kernel.{ending}")
    return path


def test_second_process_finds_the_object(fake):
    run(fresh_kernel())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(fresh_kernel())
    assert fake.calls == 1


@pytest.mark.parametrize("ending", ["obj", "llir", "ttir", "json"])
@pytest.mark.parametrize("damage", ["empty", "half", "flipped", "binary", "missing"])
def test_damaged_entry_is_rebuilt_with_one_warning(fake, cache_folder, ending, damage):
    run(fresh_kernel())
    path = entry(cache_folder, ending)
    content = path.read_bytes()
    half = len(content) // 2
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(
            {
                "empty": b"",
                "half": content[:half],
                "flipped": content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :],
                "binary": b"\xff\xfe" * 100,
            }[damage]
        )
    with pytest.warns(RuntimeWarning, match="damaged") as caught:
        run(fresh_kernel())
    assert len(caught) == 1
    assert fake.calls == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(fresh_kernel())
    assert fake.calls == 2
    assert path.read_bytes() == content


@pytest.mark.parametrize("index", ["", "not JSON", "[]", "{}", '{"child_paths": {"a": 1}}', '{"child_paths": null}'])
def test_damaged_index_is_rebuilt(fake, cache_folder, index):
    run(fresh_kernel())
    entry_index = next(cache_folder.glob("*/__grp__kernel.json"))
    entry_index.write_text(index)
    with pytest.warns(RuntimeWarning, match="damaged"):
        run(fresh_kernel())
    assert fake.calls == 2
    assert json.loads(entry_index.read_text())["child_paths"]


@pytest.mark.parametrize("folder", ["file/cache", "", "~/.triton/cache"], ids=["under a file", "empty", "no home"])
def test_unwritable_folder_is_replaced_with_one_warning(fake, tmp_path, monkeypatch, folder):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cache_module, "_PRIVATE_FOLDER", cache_module._PrivateFolder())
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / folder) if folder.startswith("file") else folder)
    with pytest.warns(RuntimeWarning, match="TRITON_CACHE_DIR") as caught:
        run(fresh_kernel())
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(fresh_kernel())
    assert fake.calls == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_full_disk_is_survived(fake, monkeypatch):
    monkeypatch.setattr(cache_module, "_PRIVATE_FOLDER", cache_module._PrivateFolder())
    write = Path.write_bytes

    def failing(path, content):
        if ".obj." in path.name and "triton_cpu." not in str(path.parent.parent):
            raise OSError(28, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", failing)
    with pytest.warns(RuntimeWarning, match="No space left"):
        run(fresh_kernel())


def test_no_temporary_files_stay(fake, cache_folder):
    run(fresh_kernel())
    assert sorted(path.name for path in cache_folder.glob("*/*")) == [
        "__grp__kernel.json", "kernel.json", "kernel.llir", "kernel.obj", "kernel.source", "kernel.ttir",
    ]  # fmt: skip


def test_cache_manager_of_the_user_is_kept():
    class Own(cache_module.CheckedCacheManager):
        pass

    with knobs.cache.scope():
        knobs.cache.manager_class = Own
        cache_module.install()
        assert knobs.cache.manager_class is Own


def test_four_processes_fill_one_cold_cache(tmp_path):
    import os
    import time

    script = tmp_path / "fill.py"
    script.write_text(SCRIPT)
    environment = dict(os.environ, PYTHONPATH=str(ROOT), TRITON_CACHE_DIR=str(tmp_path / "cold"), OMP_NUM_THREADS="1")
    environment |= {"TRITON_DEFAULT_BACKEND": "cpu", "PYTHONWARNINGS": "error::RuntimeWarning"}
    start = str(time.time() + 6)
    processes = [
        subprocess.Popen([sys.executable, str(script), start], env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    results = [(process.communicate(timeout=120)[1], process.returncode) for process in processes]
    assert [code for _, code in results] == [0] * 4, results


def test_hidden_features_change_the_key(fake, cache_folder, monkeypatch):
    from triton.backends import backends
    from triton.runtime import driver

    run(fresh_kernel())
    monkeypatch.setenv("TRITON_CPU_HIDE", "avx2")
    previous = driver.active
    driver.set_active(backends["cpu"].driver())
    try:
        run(fresh_kernel())
    finally:
        driver.set_active(previous)
    assert fake.calls == 2
    assert len(list(cache_folder.glob("*/kernel.obj"))) == 2
