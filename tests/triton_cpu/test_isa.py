"""The kernel option `isa`: every instruction set's code gives the right results, with its own instructions only."""

import re

import llvmlite.binding as llvm
import pytest
import torch
import triton
import triton.language as tl

from tests.compare import assert_close, assert_equal
from tests.triton_cpu.emulated_amx import emulated_amx
from triton_cpu import host
from triton_cpu.errors import CompileError
from triton_cpu.host import AmxSystem, Host, describe
from triton_cpu.level import NAMES, held_to
from triton_cpu.llvm.optimize import target_machine
from triton_cpu.options import make_options

PATHS = ["baseline", pytest.param("avx2", marks=pytest.mark.avx2), pytest.param("avx512", marks=pytest.mark.avx512)]


@pytest.fixture(params=[*PATHS, "amx"])
def isa(request, tmp_path):
    """Each value of the option; tiles are emulated where the machine has none."""
    if request.param == "amx" and "amx_bf16" not in host.host().features:
        with emulated_amx(tmp_path / "emulated cache"):
            yield "amx"
    else:
        yield request.param


@triton.jit
def pointwise_kernel(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(y + i, mask=i < n, other=1)
    value = tl.where(a > 0, a * 2 + b, tl.minimum(a, -b))
    tl.store(out + i, value.to(out.dtype.element_ty), mask=i < n)


@triton.jit
def rows_kernel(x, softmax, total, largest, columns, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    a = tl.load(x + row * columns + i, mask=i < columns, other=float("-inf"))
    exp = tl.exp(a - tl.max(a))
    tl.store(softmax + row * columns + i, exp / tl.sum(exp), mask=i < columns)
    tl.store(total + row, tl.sum(tl.where(i < columns, a, 0)))
    tl.store(largest + row, tl.argmax(a, 0))


@triton.jit
def dot_kernel(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ALONG_K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    if ALONG_K:
        right = tl.load(b + n[None, :] * K + k[:, None])
    else:
        right = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot(left, right, out_dtype=out.dtype.element_ty))


@triton.jit
def permute_kernel(x, index, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    at = tl.load(index + i, mask=i < n, other=0)
    tl.store(out + at, tl.load(x + (n - 1 - at), mask=i < n), mask=i < n)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int8, torch.int64], ids=str)
@pytest.mark.parametrize("n", [1, 63, 65, 1000])
def test_pointwise(isa, n, dtype):
    x, y = torch.randint(1, 30, (2, n)).to(dtype)
    x[::3] *= -1  # and no zero, whose sign in a minimum is anybody's
    out = torch.full((n + 1,), 77, dtype=dtype)
    pointwise_kernel[(triton.cdiv(n, 64),)](x, y, out, n, B=64, isa=isa)
    assert_equal(out, torch.cat([torch.where(x > 0, x * 2 + y, torch.minimum(x, -y)), out[n:]]))
    assert out[n] == 77


@pytest.mark.parametrize("columns", [1, 17, 100])
def test_rows(isa, columns):
    x = torch.stack([torch.randperm(columns) for _ in range(3)]).float() - columns // 2
    softmax, total, largest = torch.empty(3, columns), torch.empty(3), torch.empty(3, dtype=torch.int32)
    rows_kernel[(3,)](x, softmax, total, largest, columns, B=128, isa=isa)
    assert_close(softmax, x.softmax(-1), "softmax f32")
    assert_equal(total, x.sum(-1))
    assert_equal(largest, x.argmax(-1).int())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8], ids=str)
@pytest.mark.parametrize("along_k", [True, False], ids=["b along k", "b along n"])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 16, 64), (16, 32, 128), (4, 8, 2), (32, 64, 32)])
def test_dot(isa, m, n, k, along_k, dtype):
    a, b = torch.randint(-8, 9, (m, k)).to(dtype), torch.randint(-8, 9, (k, n)).to(dtype)
    out = torch.empty(m, n, dtype=torch.int32 if dtype == torch.int8 else torch.float32)
    dot_kernel[(1,)](a, b.t().contiguous() if along_k else b, out, M=m, N=n, K=k, ALONG_K=along_k, isa=isa)
    assert_equal(out, (a.double() @ b.double()).to(out.dtype))  # small integers: exact in any order


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.float64], ids=str)
@pytest.mark.parametrize("n", [1, 63, 65, 300])
def test_gather_and_scatter(isa, n, dtype):
    x, index = torch.randint(-50, 50, (n,)).to(dtype), torch.randperm(n)
    out = torch.empty_like(x)
    permute_kernel[(triton.cdiv(n, 64),)](x, index, out, n, B=64, isa=isa)
    assert_equal(out, x.flip(0))


FORBIDDEN = {  # registers and intrinsics of larger instruction sets
    "baseline": r"\bv[a-z]+ps\b|%[yz]mm|llvm\.x86",
    "avx2": r"%zmm|%k[1-7]|llvm\.x86\.avx512|llvm\.x86\.t",
    "avx512": r"llvm\.x86\.t",
}


@pytest.mark.parametrize("isa", PATHS)
def test_code_has_no_instruction_of_a_larger_set(isa, cache_folder):
    a = torch.ones(16, 64).bfloat16()
    b, out = torch.ones(64, 32).bfloat16(), torch.zeros(16, 32)
    compiled = dot_kernel[(1,)](a, b, out, M=16, N=32, K=64, ALONG_K=False, isa=isa)
    llvm_ir = compiled.asm["llir"]
    assembly = target_machine(compiled.metadata.llvm_features).emit_assembly(llvm.parse_assembly(llvm_ir))
    assert not re.search(FORBIDDEN[isa], llvm_ir + assembly)


def test_each_instruction_set_has_its_own_code_in_the_cache(cache_folder):
    x, out = torch.ones(2, 64)
    names = [None, "baseline"]
    hashes = {pointwise_kernel[(1,)](x, x, out, 64, B=64, isa=isa).hash for isa in names}
    assert len(hashes) == len(list(cache_folder.rglob("*.obj"))) == len(names)


def machine(*reported, hidden=()):
    return describe("x86_64", dict.fromkeys(reported, True), frozenset(hidden), AmxSystem())


AVX512 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")


@pytest.mark.parametrize(
    ("isa", "features"),
    [
        ("baseline", ()),
        ("avx2", ("avx2", "f16c", "fma")),
        ("avx512", ("avx2", "avx512", "avx512_bf16", "f16c", "fma")),
        (None, ("amx_bf16", "avx2", "avx512", "avx512_bf16", "f16c", "fma")),
        ("amx", ("amx_bf16", "avx2", "avx512", "avx512_bf16", "f16c", "fma")),
    ],
    ids=str,
)
def test_features_up_to_an_instruction_set(isa, features):
    everything = Host("x86_64", ("amx_bf16", "avx2", "avx512", "avx512_bf16", "f16c", "fma"), "+everything", {})
    assert held_to(everything, isa).features == features


@pytest.mark.parametrize(
    ("isa", "there", "complaint"),
    [
        ("sse4", machine("avx2"), "'sse4': unknown; use one of baseline, avx2, avx512, amx"),
        (["avx2"], machine("avx2"), "unknown"),
        ("avx512", machine("avx2", "fma"), "'avx512': this machine cannot run it .it has avx2, fma"),
        ("avx2", Host("aarch64", (), "", {}), "nothing beyond the baseline"),
        ("avx512", machine("avx2", *AVX512, hidden=["avx512"]), "hidden by TRITON_CPU_HIDE=avx512"),
        ("amx", machine("amx-tile", "amx-bf16", hidden=["amx"]), "hidden by TRITON_CPU_HIDE=amx"),
    ],
    ids=["no name", "no text", "older processor", "other architecture", "hidden", "hidden amx"],
)
def test_an_instruction_set_that_is_not_there_is_an_error(isa, there, complaint):
    with pytest.raises(CompileError, match=complaint):
        held_to(there, isa)


@pytest.mark.parametrize("name", NAMES)
def test_the_option_is_part_of_the_key(name):
    assert make_options({"isa": name}, "x86_64:", "").hash() != make_options({}, "x86_64:", "").hash()


@triton.jit
def copy_kernel(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


def every_f16() -> torch.Tensor:
    return torch.arange(2**16).to(torch.int32).to(torch.int16).view(torch.float16)


def test_every_f16_is_widened_exactly(isa):
    out = torch.empty(2**16)
    copy_kernel[(2**16 // 64,)](every_f16(), out, B=64, isa=isa)
    assert_equal(out, every_f16().float())


@pytest.mark.parametrize("beside", [-1, 0, 1], ids=["below", "tie", "above"])
def test_f32_between_neighbouring_f16_is_rounded_to_the_nearest_or_even(isa, beside):
    bits = every_f16().float().view(torch.int32)
    middles = (bits + 2**12 + beside).view(torch.float32)  # below 2^-14, where f16 are further apart, anywhere between
    middles[: 2**10] = (torch.arange(2**10) + 0.5) * 2**-24 * (1 + beside * 2**-11)
    out = torch.empty(2**16, dtype=torch.float16)
    copy_kernel[(2**16 // 64,)](middles, out, B=64, isa=isa)
    assert_equal(out, middles.half())
