"""The reader of MLIR's generic form: strings, brackets, results, regions, blocks and source locations."""

import pytest

from triton_cpu.errors import CompileError, UnsupportedOpError
from triton_cpu.ttir.attributes import flag, integer, integers, number
from triton_cpu.ttir.nodes import Node, Var
from triton_cpu.ttir.read import read_module, split_outside
from triton_cpu.ttir.types import read_type


def read(body, arguments="%x: !tt.ptr<f32> loc(unknown)", after=""):
    """The blocks of a function with that body."""
    text = f"""
#loc = loc("kernel.py":7:0)
#loc1 = loc("kernel.py":8:4)
"builtin.module"() ({{
  "tt.func"() <{{function_type = (!tt.ptr<f32>) -> (), sym_name = "kernel", sym_visibility = "public"}}> ({{
  ^bb0({arguments}):
{body}
    "tt.return"() : () -> () loc(#loc)
  }}) {{noinline = false}} : () -> () loc(#loc)
}}) {{triton_cpu = 1 : i32}} : () -> () loc(#loc)
{after}
"""
    (function,) = read_module(text)
    return function.regions[0]


def read_one(line, **given):
    """The first operation of a body."""
    return read(line, **given)[0].nodes[0]


def test_an_operation():
    node = read_one('    %i = "tt.make_range"() <{end = 64 : i32, start = 0 : i32}> : () -> tensor<64xi32> loc(#loc1)')
    assert (node.name, node.operands, node.location) == ("tt.make_range", [], "kernel.py:8:4")
    assert (integer(node, "start"), integer(node, "end")) == (0, 64)
    assert node.result.type == read_type("tensor<64xi32>")
    assert node.result.node is node


def test_operands_are_the_values_of_earlier_lines():
    body = """
    %0 = "arith.constant"() <{value = 3 : i32}> : () -> i32 loc(#loc1)
    %1 = "tt.addptr"(%x, %0) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32> loc(#loc1)
    "tt.store"(%1, %y) : (!tt.ptr<f32>, f32) -> () loc(#loc1)"""
    (block,) = read(body, "%x: !tt.ptr<f32> loc(#loc), %y: f32 loc(#loc)")
    constant, pointer, store, end = block.nodes
    assert pointer.operands == [block.arguments[0], constant.result]
    assert store.operands == [pointer.result, block.arguments[1]]
    assert store.results == []
    assert end is block.terminator


@pytest.mark.parametrize(
    "message",
    [
        "plain",
        "brackets ) } ] > ( { [ <",
        "a = b, c = d",
        "-> () loc(#loc1)",
        r"quote \22 and }>",
        r"ends with a backslash \\",
        "",
    ],
)
def test_strings_hold_anything(message):
    node = read_one(
        f'    "tt.print"(%x) <{{hex = true, prefix = "{message}", z = 1 : i32}}> : (!tt.ptr<f32>) -> () loc(#loc1)'
    )
    assert node.attributes == {"hex": "true", "prefix": f'"{message}"', "z": "1 : i32"}
    assert node.location == "kernel.py:8:4"
    assert len(node.operands) == 1


def test_several_results():
    body = """
    %0:2 = "tt.split"(%t) : (tensor<4x2xf32>) -> (tensor<4xf32>, tensor<4xf32>) loc(#loc1)
    %1 = "arith.addf"(%0#1, %0#0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc(#loc1)"""
    (block,) = read(body, "%t: tensor<4x2xf32> loc(#loc)")
    split, add, _ = block.nodes
    assert add.operands == [split.results[1], split.results[0]]
    assert [result.type.sizes for result in split.results] == [(4,), (4,)]


def test_regions():
    body = """
    %0 = "arith.constant"() <{value = true}> : () -> i1 loc(#loc1)
    %1 = "scf.if"(%0) ({
      "scf.yield"(%x) : (!tt.ptr<f32>) -> () loc(#loc1)
    }, {
      %2 = "scf.for"(%y, %y, %y, %x) ({
      ^bb0(%i: i32 loc(#loc1), %p: !tt.ptr<f32> loc("p"(#loc1))):
        "scf.yield"(%p) : (!tt.ptr<f32>) -> () loc(#loc1)
      }) : (i32, i32, i32, !tt.ptr<f32>) -> !tt.ptr<f32> loc(#loc1)
      "scf.yield"(%2) : (!tt.ptr<f32>) -> () loc(#loc1)
    }) : (i1) -> !tt.ptr<f32> loc(#loc1)"""
    (block,) = read(body, "%x: !tt.ptr<f32> loc(#loc), %y: i32 loc(#loc)")
    _, branch, _ = block.nodes
    (yes,), (no,) = branch.regions
    assert [node.name for node in yes.nodes] == ["scf.yield"]
    assert [node.name for node in no.nodes] == ["scf.for", "scf.yield"]
    (turn,) = no.nodes[0].regions[0]
    assert turn.terminator.operands == [turn.arguments[1]]
    assert [node.name for node in branch.nested()] == ["scf.yield", "scf.for", "scf.yield", "scf.yield"]


def test_an_empty_region_and_a_region_without_label():
    body = """
    "scf.if"(%c) ({
    }, {
      "scf.yield"() : () -> () loc(#loc1)
    }) : (i1) -> () loc(#loc1)"""
    node = read(body, "%c: i1 loc(#loc)")[0].nodes[0]
    empty, (block,) = node.regions
    assert empty == []
    assert (block.label, len(block.nodes)) == ("", 1)


def test_blocks_and_branches():
    body = """
    "cf.cond_br"(%c, %n, %n)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (i1, i32, i32) -> () loc(#loc1)
  ^bb1(%a: i32 loc(#loc1)):  // pred: ^bb0
    "cf.br"(%a)[^bb2] : (i32) -> () loc(#loc1)
  ^bb2(%b: i32 loc("b"(#loc1))):  // 2 preds: ^bb0, ^bb1"""
    blocks = read(body, "%c: i1 loc(#loc), %n: i32 loc(#loc)")
    assert [block.label for block in blocks] == ["^bb0", "^bb1", "^bb2"]
    assert blocks[0].terminator.successors == ["^bb1", "^bb2"]
    assert integers(blocks[0].terminator, "operandSegmentSizes") == [1, 1, 1]
    assert blocks[1].terminator.operands == blocks[1].arguments
    assert blocks[2].terminator.name == "tt.return"


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ('loc("other file.py":3:9)', "other file.py:3:9"),
        ("loc(#loc2)", "deep.py:5:6"),
        ("loc(#loc3)", "deep.py:5:6"),
        ("loc(#loc4)", "deep.py:5:6"),
        ('loc("name"(#loc2))', "deep.py:5:6"),
        ('loc(callsite(#loc2 at #loc1))', "deep.py:5:6"),
        ('loc(fused[#loc5, #loc1])', "kernel.py:8:4"),
        ("loc(unknown)", ""),
    ],
)  # fmt: skip
def test_locations(location, place):
    after = """#loc2 = loc("deep.py":5:6)
#loc3 = loc(callsite(#loc2 at #loc1))
#loc4 = loc("value"(#loc3))
#loc5 = loc(unknown)"""
    node = read_one(f'    "gpu.barrier"() : () -> () {location}', after=after)
    assert node.location == place


@pytest.mark.parametrize(
    ("attribute", "kind", "value"),
    [
        ("3 : i32", "i32", 3),
        ("-1 : i64", "i64", -1),
        ("true", "i1", 1),
        ("dense<false> : tensor<4xi1>", "tensor<4xi1>", 0),
        ("dense<-7> : tensor<4xi8>", "tensor<4xi8>", -7),
        ("1.500000e+00 : f32", "f32", 1.5),
        ("dense<-0.000000e+00> : tensor<2xf64>", "tensor<2xf64>", -0.0),
        ("0x7F800000 : f32", "f32", float("inf")),
        ("dense<0xFF80> : tensor<2xbf16>", "tensor<2xbf16>", float("-inf")),
        ("0xFC00 : f16", "f16", float("-inf")),
        ("dense<[1, 2]> : tensor<2xi32>", "tensor<2xi32>", None),
    ],
)
def test_constants(attribute, kind, value):
    node = read_one(f'    %0 = "arith.constant"() <{{value = {attribute}}}> : () -> {kind} loc(#loc1)')
    assert number(node) == value
    assert str(number(node)) == str(value)


def test_flags_and_arrays():
    node = Node("op", [], [], {"yes": "true", "none": "array<i32>", "two": "array<i64: 3, -4>", "bad": "3"}, [], [], "")
    assert (flag(node, "yes"), flag(node, "absent")) == (True, False)
    assert (integers(node, "none"), integers(node, "two")) == ([], [3, -4])
    with pytest.raises(ValueError, match="bad = 3 is no array"):
        integers(node, "bad")


@pytest.mark.parametrize(
    ("text", "shape", "elem"),
    [
        ("i1", None, "i1"),
        ("index", None, "i64"),
        ("tensor<4x16xbf16>", (4, 16), "bfloat"),
        ("tensor<1xf8E5M2>", (1,), "i8"),
        ("tensor<f32>", (), "float"),
        ("!tt.ptr<f16>", None, "ptr"),
        ("!tt.ptr<f16, 1>", None, "ptr"),
        ("tensor<8x!tt.ptr<i64>>", (8,), "ptr"),
    ],
)
def test_types(text, shape, elem):
    kind = read_type(text)
    assert (kind.shape, kind.elem) == (shape, elem)
    assert kind.is_tensor == (shape is not None)


def test_what_pointers_point_at():
    assert read_type("tensor<8x!tt.ptr<i64>>").pointee == "i64"
    assert read_type("!tt.ptr<!tt.ptr<f32>>").pointee == "ptr"
    assert read_type("!tt.ptr<f16, 3>").pointee == "half"
    with pytest.raises(ValueError, match="f32 is no pointer"):
        _ = read_type("f32").pointee


def test_splitting_outside_of_brackets_and_strings():
    assert split_outside('a, b<c, d>, "e, f", (g, h) -> i, {j = [k, l]}') == [
        "a", "b<c, d>", '"e, f"', "(g, h) -> i", "{j = [k, l]}",
    ]  # fmt: skip
    assert split_outside("") == []


def test_a_type_that_kernels_cannot_have():
    with pytest.raises(UnsupportedOpError, match=r"some.op of type tensor<4xf128> at kernel.py:8:4"):
        read_one('    %0 = "some.op"() : () -> tensor<4xf128> loc(#loc1)')


@pytest.mark.parametrize("line", ["    %0 = arith.constant 3 : i32 loc(#loc1)", "    nonsense"])
def test_another_form_is_refused(line):
    with pytest.raises(CompileError, match="cannot be read"):
        read_one(line)


def test_values_are_told_apart_by_identity():
    kind = read_type("i32")
    assert Var(kind) != Var(kind)
