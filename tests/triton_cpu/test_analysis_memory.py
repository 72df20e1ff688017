"""What the analysis puts into memory early, and which stores may overtake loads, on TTIR of small kernels."""

import pytest
import triton
import triton.language as tl

from tests.triton_cpu.ttir_of import nodes_of, ttir_of
from triton_cpu.analysis.materialise import outside_uses, to_materialise
from triton_cpu.analysis.overlap import may_overtake
from triton_cpu.lower import arith, cast, math, memory, pointer, shape  # noqa: F401  # their rules say what is lazy


@triton.jit
def uses_kernel(x, y, z, n, B: tl.constexpr, KIND: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    if KIND == "once":
        tl.store(y + i, a + 1.0)
    elif KIND == "twice":
        tl.store(y + i, a + 1.0)
        tl.store(z + i, a - 1.0)
    elif KIND == "twice in one store":
        tl.store(y + i, a * a + a)
    elif KIND == "after a store":
        tl.store(y + i, 0.0)
        tl.store(z + i, a)
    elif KIND == "in a loop":
        for k in range(n):
            tl.store(y + k * B + i, a)
    elif KIND == "in a branch":
        if n > 0:
            tl.store(y + i, a)
    elif KIND == "reduced and stored":
        tl.store(y + i, a - tl.max(a, 0))
    elif KIND == "indices twice":
        tl.store(y + i, (i * n + 3).to(tl.float32))
        tl.store(z + i, (i * n + 3).to(tl.float32))
    elif KIND == "exponential once":
        tl.store(y + i, tl.exp(a))
    else:
        e = tl.exp(a)
        tl.store(y + i, e)
        tl.store(z + i, e + 1.0)


@triton.jit
def rows_kernel(x, y, M: tl.constexpr, N: tl.constexpr, HEAVY: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    row = tl.load(x + i)
    if HEAVY:
        row = tl.exp(row)
    tl.store(y + i[:, None] * N + j[None, :], row[:, None] * j[None, :])


@triton.jit
def returns_kernel(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    if n == 0:
        return
    tl.store(y + i, a)


@triton.jit
def copies_kernel(x, y, n, index, B: tl.constexpr, KIND: tl.constexpr):
    i = tl.arange(0, B)
    if KIND == "same place":
        tl.store(x + i, tl.load(x + i) + 1.0)
    elif KIND == "same place, masked":
        tl.store(x + i, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)
    elif KIND == "shifted":
        tl.store(x + i, tl.load(x + i + 1))
    elif KIND == "shifted by an argument":
        tl.store(x + i, tl.load(x + i + n))
    elif KIND == "reversed":
        tl.store(x + i, tl.load(x + B - 1 - i))
    elif KIND == "another argument":
        tl.store(y + i, tl.load(x + i))
    elif KIND == "another argument, shifted":
        tl.store(y + i + n, tl.load(x + i + 2 * n))
    elif KIND == "another argument, reversed":
        tl.store(y + i, tl.load(x + B - 1 - i))
    elif KIND == "one place several times":
        tl.store(x + tl.minimum(i, n), tl.load(x + tl.minimum(i, n)))
    elif KIND == "rows at one place":
        p = tl.broadcast_to((x + i)[None, :], (4, B))
        tl.store(p, tl.load(p) + 1.0)
    elif KIND == "rows apart":
        tl.store(x + tl.arange(0, 4)[:, None] * n + i, tl.load(x + tl.arange(0, 4)[:, None] * n + i) + 1.0)
    elif KIND == "by address":
        tl.store(n.to(tl.pointer_type(tl.float32)) + i, tl.load(x + i))
    elif KIND == "scattered":
        tl.store(y + tl.load(index + i), 1.0)
    elif KIND == "masked by memory":
        tl.store(x + i, 1.0, mask=tl.load(x + i + 1) > 0)
    else:
        tl.atomic_add(x + i, tl.load(x + i + 1))


def chosen(kernel, **arguments):
    """Names of the operations whose results are put into memory, in order."""
    blocks = ttir_of(kernel, **arguments)
    early = to_materialise(blocks[0])
    return [node.name for node in blocks[0].nodes if node.results and node.result in early]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("once", []), ("twice", ["tt.load"]), ("twice in one store", []), ("after a store", ["tt.load"]),
        ("in a loop", ["tt.load"]), ("in a branch", ["tt.load"]), ("reduced and stored", ["tt.load"]),
        ("indices twice", []), ("exponential once", []), ("exponential twice", ["math.exp"]),
    ],
)  # fmt: skip
def test_what_is_put_into_memory(kind, expected):
    assert chosen(uses_kernel, x="*fp32", y="*fp32", z="*fp32", n="i32", B=64, KIND=kind) == expected


@pytest.mark.parametrize("heavy", [False, True])
def test_mathematics_of_a_row_is_not_repeated_for_each_column(heavy):
    early = chosen(rows_kernel, x="*fp32", y="*fp32", M=16, N=64, HEAVY=heavy)
    assert early == ["tt.load", *(["tt.expand_dims"] if heavy else [])]  # the load, because y might be x


def test_tensors_of_other_blocks():
    blocks = ttir_of(returns_kernel, x="*fp32", y="*fp32", n="i32", B=64)
    assert nodes_of(blocks, "tt.load")[0].result in outside_uses(blocks)
    assert outside_uses(blocks[:1]) == set()


@pytest.mark.parametrize(
    ("kind", "overtaken"),
    [
        ("same place", 0), ("same place, masked", 0), ("shifted", 1), ("shifted by an argument", 1), ("reversed", 1),
        ("one place several times", 1), ("rows at one place", 1), ("rows apart", 0),
        ("another argument", 0), ("another argument, shifted", 0), ("another argument, reversed", 1), ("by address", 1),
        ("scattered", 1), ("masked by memory", 1), ("atomic", 1),
    ],
)  # fmt: skip
def test_loads_that_a_write_may_overtake(kind, overtaken):
    n = "i64" if kind == "by address" else "i32"
    blocks = ttir_of(copies_kernel, x="*fp32", y="*fp32", n=n, index="*i32", B=64, KIND=kind)
    (write,) = [*nodes_of(blocks, "tt.store"), *nodes_of(blocks, "tt.atomic_rmw")]
    loads = {node.result for node in nodes_of(blocks, "tt.load")}
    found = may_overtake(write)
    assert found <= loads
    assert len(found) == overtaken
    assert found <= to_materialise(blocks[0])
