"""The emulated tile unit: products, shapes, faults, and what it refuses to emulate."""

import ctypes
import threading

import numpy as np
import pytest
import torch

from tests.triton_cpu.tile_machine import TileFault, TileMachine
from tests.triton_cpu.tile_programs import bf16_bits, config, in_pairs, product_ir
from triton_cpu.host import host
from triton_cpu.llvm.optimize import compile_to_object
from triton_cpu.runtime.load import link


def runner(machine, llvm_ir):
    """The function `run` of a module, on numpy arrays."""
    code = link("tiles", compile_to_object(machine.rewrite(llvm_ir), host().llvm_features), ("run",), {})
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(code["run"])
    function.code = code
    return lambda *arrays: function(*(array.ctypes.data for array in arrays))


def test_bf16_product_agrees_with_matrix_multiplication():
    random = np.random.default_rng(0)
    a, b, c = (random.standard_normal(shape).astype(np.float32) for shape in ((16, 32), (32, 16), (16, 16)))
    a, b = (torch.from_numpy(x).bfloat16().float().numpy() for x in (a, b))
    machine, out = TileMachine(), c.copy()
    runner(machine, product_ir())(config(), out, bf16_bits(a), in_pairs(bf16_bits(b)))
    machine.check()
    assert machine.executed == 1
    assert machine.counts == {"ldtilecfg": 1, "tileloadd64": 3, "tdpbf16ps": 1, "tilestored64": 1, "tilerelease": 1}
    assert machine.released
    np.testing.assert_allclose(out, c.astype(np.float64) + a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)


def test_f16_product_agrees_with_matrix_multiplication():
    random = np.random.default_rng(1)
    a, b = random.standard_normal((16, 32)).astype(np.float16), random.standard_normal((32, 16)).astype(np.float16)
    a[0] = 6e-8  # denormals count
    out = np.zeros((16, 16), np.float32)
    machine = TileMachine()
    runner(machine, product_ir("tdpfp16ps"))(config(), out, a.view(np.uint16), in_pairs(b.view(np.uint16)))
    machine.check()
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(out[0], a[0].astype(np.float64) @ b.astype(np.float64), rtol=1e-4)


@pytest.mark.parametrize("name", ["tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud"])
def test_int8_product_is_exact_and_wraps(name):
    kinds = [np.int8 if letter == "s" else np.uint8 for letter in name[4:6]]
    random = np.random.default_rng(2)
    a, b = (random.integers(0, 256, shape, np.uint8) for shape in ((16, 64), (64, 16)))
    c = random.integers(-(2**31), 2**31, (16, 16), np.int32)
    c[0] = 2**31 - 1
    out = c.copy()
    machine = TileMachine()
    runner(machine, product_ir(name))(config(), out, a, in_pairs(b, 4))
    machine.check()
    exact = c.astype(np.int64) + a.view(kinds[0]).astype(np.int64) @ b.view(kinds[1]).astype(np.int64)
    assert np.array_equal(out, (exact & 0xFFFFFFFF).astype(np.uint32).view(np.int32))


@pytest.mark.parametrize(("m", "n", "k"), [(1, 16, 16), (16, 1, 16), (5, 3, 7), (16, 16, 1)])
def test_small_tiles_leave_the_rest_of_memory_alone(m, n, k):
    random = np.random.default_rng(3)
    a, b = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((m, 2 * k), (2 * k, n)))
    memory = [np.full((16, 64), 0xAA, np.uint8) for _ in range(3)]
    memory[0][:m, : 4 * n] = 0
    memory[1][:m, : 4 * k] = bf16_bits(a).view(np.uint8)
    memory[2][:k, : 4 * n] = in_pairs(bf16_bits(b)).view(np.uint8)
    machine = TileMachine()
    runner(machine, product_ir())(config((m, 4 * n), (m, 4 * k), (k, 4 * n)), *memory)
    machine.check()
    assert np.array_equal(np.ascontiguousarray(memory[0][:m, : 4 * n]).view(np.float32), a @ b)
    memory[0][:m, : 4 * n] = 0xAA
    assert (memory[0] == 0xAA).all()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (config(at0=2), "palette 2"),
        (config(at1=3), "start row 3"),
        (config(at5=1), "reserved"),
        (config(at40=4), "reserved"),
        (config(c=(17, 64)), "17 rows"),
        (config(a=(16, 68)), "68 bytes"),
        (config(b=(0, 64)), "0 rows"),
        (config(b=(8, 64)), "does not agree"),
        (config(a=(8, 64)), "does not agree"),
        (config(c=(16, 32)), "does not agree"),
        (config(c=(16, 62)), "62 bytes"),
        (config(b=(0, 0)), "tile 2 is configured as 0 rows"),
        (np.zeros(64, np.uint8), "no tile configuration"),
    ],
)
def test_configuration_that_traps_on_hardware_is_a_fault(made, says):
    machine, out = TileMachine(), np.full((16, 16), 7, np.float32)
    tiles = np.zeros((16, 64), np.uint8)
    runner(machine, product_ir())(made, out, tiles, tiles)
    with pytest.raises(TileFault, match=says):
        machine.check()
    assert machine.executed == 0
    assert (out == 7).all()
    machine.check()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("call void @llvm.x86.tilezero(i8 0)", "no tile configuration"),
        ("call void @llvm.x86.ldtilecfg(ptr null)", "null"),
        ("CONFIG\ncall void @llvm.x86.tilezero(i8 8)", "no tile 8"),
        ("CONFIG\ncall void @llvm.x86.tilezero(i8 3)", "0 rows"),
        ("CONFIG\ncall void @llvm.x86.tilestored64(i8 0, ptr %c, i64 64)", "neither loaded nor zeroed"),
        ("CONFIG\ncall void @llvm.x86.tdpbf16ps(i8 0, i8 1, i8 2)", "neither loaded nor zeroed"),
        ("CONFIG\ncall void @llvm.x86.tdpbf16ps(i8 0, i8 1, i8 1)", "three different"),
        ("CONFIG\ncall void @llvm.x86.tileloadd64(i8 0, ptr null, i64 64)", "null"),
        ("CONFIG\ncall void @llvm.x86.tilerelease()\ncall void @llvm.x86.tilezero(i8 0)", "no tile configuration"),
        ("CONFIG\ncall void @llvm.x86.tilezero(i8 0)\nCONFIG\ncall void @llvm.x86.tilestored64(i8 0, ptr %c, i64 64)",
         "neither loaded nor zeroed"),
    ],
)  # fmt: skip
def test_instruction_out_of_place_is_a_fault(body, says):
    machine, tiles = TileMachine(), np.zeros((16, 64), np.uint8)
    body = "\n" + body.replace("CONFIG", "call void @llvm.x86.ldtilecfg(ptr %config)")
    runner(machine, product_ir(body=body))(config(), tiles, tiles, tiles)
    with pytest.raises(TileFault, match=says):
        machine.check()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("call void @llvm.x86.tilezero(i8 %t)", "'%t' is not a literal"),
        ("call void @llvm.x86.tcmmimfp16ps(i8 0, i8 1, i8 2)\ncall void @llvm.x86.tdpbf8ps(i8 0, i8 1, i8 2)",
         "tdpbf8ps is not emulated"),
        ("%t = call x86_amx @llvm.x86.tilezero.internal(i16 16, i16 64)", "tilezero.internal is not emulated"),
        ("call void @llvm.x86.sttilecfg(ptr %c)", "sttilecfg is not emulated"),
    ],
    ids=["computed tile", "unknown product", "tile values", "unknown instruction"],
)  # fmt: skip
def test_what_is_not_emulated_is_named(line, says):
    with pytest.raises(ValueError, match=says):
        TileMachine().rewrite(f"define void @run(ptr %c, i8 %t) {{\n{line}\nret void\n}}")


def test_other_text_is_left_as_it_is():
    text = "declare void @llvm.x86.sse2.pause()\n; tile\ndefine void @tilezero(i8 %x) {\n  ret void\n}\n"
    assert TileMachine().rewrite(text) == text


def test_each_thread_has_its_own_tiles():
    machine, tiles = TileMachine(), np.zeros((16, 64), np.uint8)
    run = runner(machine, product_ir(body="\ncall void @llvm.x86.ldtilecfg(ptr %config)"))
    run(config(), tiles, tiles, tiles)
    use = runner(machine, product_ir(body="\ncall void @llvm.x86.tilezero(i8 0)"))
    use(config(), tiles, tiles, tiles)
    machine.check()
    assert not machine.released
    thread = threading.Thread(target=use, args=(config(), tiles, tiles, tiles))
    thread.start()
    thread.join()
    with pytest.raises(TileFault, match="this thread has no tile configuration"):
        machine.check()
