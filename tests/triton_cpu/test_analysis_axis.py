"""How the analysis sees addresses grow, and along which dimension it vectorises, on TTIR of small kernels."""

import pytest
import triton
import triton.language as tl

from tests.triton_cpu.ttir_of import nodes_of, ttir_of
from triton_cpu.analysis.axis import source_dim, step, vector_axis
from triton_cpu.llvm.builder import Value
from triton_cpu.llvm.types import PTR, Type
from triton_cpu.lower import arith, cast, pointer, shape  # noqa: F401  # their rules say what is lazy
from triton_cpu.lower.lanes import Buffer, Induction


@triton.jit
def lines_kernel(x, n, B: tl.constexpr, S: tl.constexpr, KIND: tl.constexpr):
    i = tl.arange(0, B)
    if KIND == "contiguous":
        at = i
    elif KIND == "moved":
        at = n + i + tl.program_id(0) * B
    elif KIND == "stride":
        at = S * i + 7
    elif KIND == "backwards":
        at = B - 1 - i
    elif KIND == "runtime stride":
        at = n * i
    elif KIND == "widened":
        at = (i + n).to(tl.int64)
    elif KIND == "small remainder":
        at = i % 8
    elif KIND == "remainder":
        at = n + (n + i) % n
    elif KIND == "remainder of a stride":
        at = (S * i) % n
    elif KIND == "remainder of a remainder":
        at = (i % n + 3) % (n + 1)
    elif KIND == "one place":
        at = i * 0 + n
    elif KIND == "loaded":
        at = tl.load(x + i).to(tl.int32)
    else:
        at = i * i
    tl.store(x + at, 1.0)


@triton.jit
def matrices_kernel(x, n, M: tl.constexpr, N: tl.constexpr, TRANSPOSED: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    if TRANSPOSED:
        tl.store(tl.trans(x + i * n + j), 1.0)
    else:
        tl.store(x + i * 100 + j, 1.0)


@triton.jit
def two_layouts_kernel(x, y, z, M: tl.constexpr, N: tl.constexpr, KIND: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    if KIND == "rows":
        a = tl.load(x + i * N + j)
    elif KIND == "columns":
        a = tl.load(x + j * M + i)
    elif KIND == "transposed":
        a = tl.trans(tl.load(x + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]))
    elif KIND == "broadcast":
        a = tl.load(x + i + j * 0) + tl.load(y + i * N + j)
    else:
        a = (i + j).to(tl.float32)
    tl.store(z + i * N + j, a * 2.0)


@triton.jit
def shapes_kernel(x, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    a = tl.broadcast_to(i[:, None], (M, N))
    tl.store(x + tl.trans(a) + tl.arange(0, N)[:, None] * M, 1)


def pointer_of_store(blocks):
    return nodes_of(blocks, "tt.store")[-1].operands[0]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("contiguous", 1), ("moved", 1), ("stride", 3), ("backwards", -1), ("runtime stride", None), ("widened", 1),
        ("small remainder", None), ("remainder", 1), ("remainder of a stride", None),
        ("remainder of a remainder", None), ("one place", 0), ("loaded", None), ("squares", None),
    ],
)  # fmt: skip
def test_steps_of_a_line(kind, expected):
    blocks = ttir_of(lines_kernel, x="*fp32", n="i32", B=64, S=3, KIND=kind)
    assert step({}, pointer_of_store(blocks), 0) == expected


@pytest.mark.parametrize("transposed", [False, True])
def test_steps_of_a_matrix(transposed):
    blocks = ttir_of(matrices_kernel, x="*fp32", n="i32", M=16, N=32, TRANSPOSED=transposed)
    place = pointer_of_store(blocks)
    assert (step({}, place, 0), step({}, place, 1)) == ((1, None) if transposed else (100, 1))


def test_a_dimension_of_size_one_does_not_grow():
    place = pointer_of_store(ttir_of(matrices_kernel, x="*fp32", n="i32", M=1, N=32, TRANSPOSED=False))
    assert (step({}, place, 0), step({}, place, 1)) == (0, 1)


def test_a_growing_tensor_steps_as_it_did_at_the_start_and_memory_is_not_known():
    blocks = ttir_of(lines_kernel, x="*fp32", n="i32", B=64, S=3, KIND="stride")
    place = pointer_of_store(blocks)
    other = pointer_of_store(ttir_of(lines_kernel, x="*fp32", n="i32", B=64, S=1, KIND="loaded"))
    assert step({other: Induction(place, Value("%o", Type("i64")))}, other, 0) == 3
    assert step({place: Buffer(Value("%b", PTR), (64,), "ptr")}, place, 0) is None


def test_the_dimension_of_the_operand():
    blocks = ttir_of(shapes_kernel, x="*i32", M=16, N=32)
    (transposed,) = nodes_of(blocks, "tt.trans")
    spread = [node.result for node in nodes_of(blocks, "tt.broadcast") if node.result is transposed.operands[0]]
    assert [source_dim(transposed.result, dim) for dim in (0, 1)] == [1, 0]
    assert [source_dim(var, dim) for var in spread for dim in (0, 1)] == [0, None]
    expanded = nodes_of(blocks, "tt.expand_dims")[0].result
    axis = [source_dim(expanded, dim) for dim in (0, 1)]
    assert axis == [0, None]
    assert source_dim(nodes_of(blocks, "tt.make_range")[0].result, 0) is None


@pytest.mark.parametrize(
    ("kind", "M", "N", "expected"),
    [
        ("rows", 16, 32, 1), ("columns", 16, 32, 0), ("transposed", 16, 32, 0), ("broadcast", 16, 32, 1),
        ("computed", 16, 32, 1), ("rows", 16, 1, 0), ("columns", 1, 32, 1), ("rows", 1, 1, None),
    ],
)  # fmt: skip
def test_the_dimension_to_vectorise(kind, M, N, expected):
    blocks = ttir_of(two_layouts_kernel, x="*fp32", y="*fp32", z="*fp32", M=M, N=N, KIND=kind)
    assert vector_axis({}, nodes_of(blocks, "tt.store")[-1].operands[1]) == expected


def test_a_buffer_votes_for_its_last_dimension():
    blocks = ttir_of(two_layouts_kernel, x="*fp32", y="*fp32", z="*fp32", M=16, N=32, KIND="transposed")
    value = nodes_of(blocks, "tt.store")[-1].operands[1]
    loaded = nodes_of(blocks, "tt.load")[0].result
    buffer = Buffer(Value("%b", PTR), loaded.type.sizes, "float")
    assert vector_axis({loaded: buffer}, value) == 0
    assert vector_axis({value: buffer._replace(shape=(16, 32))}, value) == 1
