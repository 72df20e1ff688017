"""Launches in children: they finish, whatever the parent did with threads before."""

import contextlib
import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest
import torch

from triton_cpu.llvm.fork import llvm_lock
from triton_cpu.runtime import team

ROOT = Path(__file__).parents[2]
SECONDS = 60  # a hang lasts for ever; an idle machine needs 3

PRELUDE = """
import multiprocessing, sys, warnings
import torch, triton
from tests.triton_cpu.hand_lowered import HandLowering, TEAM_COUNTER

@triton.jit
def count(counter):
    pass

def launch():
    counter = torch.zeros(4, dtype=torch.int32)
    count[(1,)](counter)
    return counter[0].item()

def child(queue):
    torch.set_num_threads(4)
    HandLowering(TEAM_COUNTER, "count", ("ptr",)).install()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        queue.put((launch(), launch(), [str(w.message) for w in caught if "forked" in str(w.message)]))

def children(method, number=1):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    processes = [context.Process(target=child, args=(queue,)) for _ in range(number)]
    for process in processes: process.start()
    results = [queue.get() for _ in processes]
    for process in processes: process.join()
    return results

if __name__ == "__main__":
    torch.set_num_threads(4)
    HandLowering(TEAM_COUNTER, "count", ("ptr",)).install()
"""


def finish(tmp_path, body):
    """Run the script in a process of its own; its output's last line, evaluated."""
    script = tmp_path / "script.py"
    script.write_text(PRELUDE + textwrap.indent(textwrap.dedent(body), "    "))
    environment = dict(os.environ, PYTHONPATH=str(ROOT), TRITON_CACHE_DIR=str(tmp_path / "cache"))
    environment |= {"TRITON_DEFAULT_BACKEND": "cpu"}
    environment.pop("OMP_NUM_THREADS", None)
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    return eval(done.stdout.splitlines()[-1])


def serial_with_one_warning(result):
    first, second, warned = result
    return (first, second, len(warned)) == (1, 1, 1) and "spawn" in warned[0]


@pytest.mark.parametrize("number", [1, 4], ids=["one child", "four children"])
def test_fork_after_a_parallel_region_runs_serially(tmp_path, number):
    results = finish(tmp_path, f"assert launch() == 4\nprint(children('fork', {number}))")
    assert all(serial_with_one_warning(result) for result in results)


def test_fork_after_a_torch_region_only_runs_serially(tmp_path):
    body = "x = torch.randn(512, 512); x @ x\nx.double().sin().sum()\nprint(children('fork'))"
    (result,) = finish(tmp_path, body)
    assert serial_with_one_warning(result)


def test_torch_operations_after_a_launch_in_a_forked_child_end(tmp_path):
    body = """
    assert launch() == 4
    x = torch.arange(1 << 22)
    assert x.sum() > 0
    if (pid := os.fork()) == 0:
        signal.alarm(30)  # ends a child that hangs
        launch()
        os._exit(0 if x.sum() > 0 else 1)
    print(os.waitpid(pid, 0)[1])
    """
    assert finish(tmp_path, "import os, signal" + textwrap.dedent(body)) == 0


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_clean_children_keep_their_threads(tmp_path, method):
    (result,) = finish(tmp_path, f"assert launch() == 4\nprint(children('{method}'))")
    assert result == (4, 4, [])


@pytest.mark.parametrize(("threads", "size"), [(1, torch.get_num_threads()), (2, 1)], ids=["single", "threaded"])
def test_only_a_parent_with_threads_makes_a_child_serial(monkeypatch, threads, size):
    monkeypatch.setattr(team, "_native_threads", lambda: threads)
    child = team.Team(pool_may_be_dead=False)
    child._before_fork()
    child._after_fork_in_child()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert child.size() == size


def test_bound_launch_survives_a_fork(tmp_path):
    body = """
    import os
    from triton_cpu import bind
    counter = torch.zeros(4, dtype=torch.int32).share_memory_()
    bound = bind(count, (1,), counter)
    bound()
    pid = os.fork()
    if pid == 0:
        warnings.simplefilter("ignore")
        bound()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    bound()
    print(counter[0].item())
    """
    assert finish(tmp_path, body) == 4 + 1 + 4


def test_backend_first_imported_in_the_child_does_not_hang(tmp_path):
    script = tmp_path / "late.py"
    script.write_text(
        textwrap.dedent("""
        import os, sys, warnings
        import torch
        torch.set_num_threads(4)
        x = torch.randn(512, 512); x @ x
        x.double().sin().sum()
        assert "triton" not in sys.modules
        pid = os.fork()
        if pid == 0:
            warnings.simplefilter("ignore")
            from triton_cpu.runtime.team import TEAM
            print(TEAM.size(), flush=True)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        """)
    )
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert done.stdout.strip() == "1"


def test_the_lock_of_llvmlite_is_found():
    assert not isinstance(llvm_lock(), contextlib.nullcontext)


def test_fork_while_another_thread_compiles_does_not_hang(tmp_path):
    body = """
    import os, threading
    from tests.triton_cpu.hand_lowered import spy
    from triton_cpu.llvm.optimize import compile_to_object
    from triton_cpu.runtime.load import load_kernel
    stop = threading.Event()
    def work():
        while not stop.is_set():
            load_kernel("parent", compile_to_object(spy(1), ""))
    thread = threading.Thread(target=work)
    thread.start()
    codes = []
    for _ in range(20):
        pid = os.fork()
        if pid == 0:
            load_kernel("child", compile_to_object(spy(2), ""))
            os._exit(0)
        codes.append(os.waitpid(pid, 0)[1])
    stop.set()
    thread.join()
    print(codes)
    """
    assert finish(tmp_path, body) == [0] * 20
