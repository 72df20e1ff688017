"""Ops, providers and targets are checked when they are made, and cannot change afterwards."""

import dataclasses

import pytest

from dispatch.errors import DefinitionError, DispatchError, LoadError
from dispatch.op import RESERVED, Op
from dispatch.plan import Plan
from dispatch.provider import REFERENCE, REFERENCE_RANK, Provider, load, reference_of
from dispatch.target import Target
from tests.dispatch.made import BARE, provider


@pytest.mark.parametrize("name", ["", "two words", "a-b", "class", "_hidden", "1st", 3, *sorted(RESERVED)])
def test_an_op_must_be_an_attribute_of_the_plan(name):
    with pytest.raises(DefinitionError, match=f"op name {name!r}"):
        Op(name, "a.b:c", "")


def test_the_plan_has_no_attributes_that_an_op_could_hide():
    plan = Plan(BARE, (), {})
    assert {name for name in dir(plan) if not name.startswith("_")} == RESERVED


@pytest.mark.parametrize("text", ["", "module", "module:", ":f", "a b:c", "a:b:c", "a..b:c", "a.b:c()", None])
def test_import_strings_are_checked(text):
    with pytest.raises(DefinitionError, match=r"reference of op 'f': .*write 'package\.module:function'"):
        Op("f", text, "")
    with pytest.raises(DefinitionError, match="load of provider 'p' of op 'f'"):
        Provider("f", "p", text)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": ""}, "name ''"),
        ({"name": "a=b"}, "name 'a=b'"),
        ({"name": "a,b"}, "name 'a,b'"),
        ({"op": "*"}, "op '\\*'"),
        ({"rank": 1.5}, "1.5 is no integer"),
        ({"rank": True}, "True is no integer"),
        ({"rank": -1}, "ranks are 0 or more"),
        ({"name": REFERENCE, "rank": 5}, "ranks are 0 or more; 'reference'"),
        ({"name": REFERENCE, "rank": -2}, "ranks are 0 or more"),
        ({"needs": "avx512"}, "needs of provider 'p' of op 'f': 'avx512'; write a set"),
        ({"needs": {1}}, "needs of .*write a set"),
        ({"needs": 3}, "needs of .*write a set"),
        ({"kinds": "cpu"}, "kinds of .*'cpu'; write a set"),
        ({"domain": ("dtype",)}, "domain of .*does not map"),
        ({"domain": {"dtype": "bfloat16"}}, "dtype='bfloat16'; list the values"),
        ({"domain": {"dtype": ()}}, "dtype=\\(\\); list the values"),
        ({"domain": {"topk": 4}}, "topk=4; list the values"),
        ({"domain": {"dtype": (1.5,)}}, "dtype=1.5; facts are text or integers"),
    ],
    ids=repr,
)
def test_providers_are_checked(wrong, message):
    with pytest.raises(DefinitionError, match=message):
        Provider(**{"op": "f", "name": "p", "load": "a:b"} | wrong)


def test_definition_errors_are_dispatch_errors():
    assert issubclass(DefinitionError, DispatchError)


def test_definitions_are_frozen():
    made = (Op("f", "a:b", ""), provider("p"), BARE)
    for one in made:
        for field in dataclasses.fields(one):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(one, field.name, None)


def test_what_was_given_can_change_without_changing_a_provider():
    needs, values = {"avx2"}, ["bfloat16"]
    domain = {"dtype": values}
    made = provider("p", needs=needs, domain=domain)
    needs.add("amx_bf16")
    values.append("float32")
    domain["topk"] = (1,)
    assert made.needs == frozenset({"avx2"})
    assert dict(made.domain) == {"dtype": ("bfloat16",)}
    with pytest.raises(TypeError):
        made.domain["topk"] = (1,)


def test_equal_definitions_are_equal_and_hashable():
    one, two = (provider("p", needs={"avx2"}, domain={"head_dim": [64]}) for _ in range(2))
    assert one == two
    assert len({one, two}) == 1
    assert one != provider("p", needs={"avx2"}, domain={"head_dim": [128]})


def test_the_reference_needs_nothing_and_ranks_lowest():
    reference = reference_of(Op("f", "a.b:c", ""))
    assert reference == Provider("f", REFERENCE, "a.b:c", rank=REFERENCE_RANK)
    assert not reference.needs
    assert not reference.domain
    assert reference.rank < Provider("f", "p", "a:b").rank


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", "here", frozenset()), "kind of target 'here'"),
        (("cpu", "here", "avx2"), "features of target 'here': 'avx2'"),
        (("cpu", "here", frozenset({""})), "features of target 'here'"),
        (("cpu", "here", frozenset({"avx2"}), {"avx2": "hidden"}), "avx2 cannot be both"),
    ],
    ids=["kind", "text", "empty name", "both"],
)
def test_targets_are_checked(arguments, message):
    with pytest.raises(DefinitionError, match=message):
        Target(*arguments)


def test_load_imports_the_function(functions):
    assert load(provider("p"))(1) == "fast"
    assert load(provider("p", "os:path.join"))("a", "b") == "a/b"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no_such_module:f", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("implementations:absent", "AttributeError: .*'absent'"),
        ("broken:f", "RuntimeError: no such accelerator"),
        ("implementations:number", "'implementations:number' is a int, not a function"),
    ],
    ids=["module", "attribute", "code", "no function"],
)
def test_load_says_what_is_wrong(functions, path, message):
    with pytest.raises(LoadError, match=f"provider 'p' of op 'scale'.*{message}"):
        load(provider("p", path))
