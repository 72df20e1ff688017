"""A registry: the same thing twice is nothing new, two things under one name are an error."""

import itertools

import pytest

from dispatch.errors import ConflictError, UnknownNameError
from dispatch.op import Op
from dispatch.provider import reference_of
from dispatch.registry import Registry
from tests.dispatch.made import provider

SCALE = Op("scale", "implementations:reference", "multiply")


def test_registries_share_nothing(registry):
    registry.add_provider(provider("fast"))
    assert Registry().ops == ()


def test_the_reference_of_an_op_is_a_provider(registry):
    assert registry.providers("scale") == (reference_of(SCALE),)


def test_the_same_again_changes_nothing(registry):
    for _ in range(2):
        registry.add_op(Op("scale", "implementations:reference", "multiply"))
        registry.add_provider(provider("fast", domain={"dtype": ["bfloat16"]}, needs={"avx2"}))
    registry.add_provider(reference_of(SCALE))
    assert registry.ops == (SCALE,)
    assert [one.name for one in registry.providers("scale")] == ["fast", "reference"]


def test_two_ops_of_one_name_conflict(registry):
    with pytest.raises(ConflictError, match=r"'scale'.*implementations:reference.*implementations:fast"):
        registry.add_op(Op("scale", "implementations:fast", "multiply"))
    assert registry.ops == (SCALE,)


@pytest.mark.parametrize(
    "change",
    [{"load": "implementations:faster"}, {"rank": 3}, {"needs": {"avx2"}}, {"domain": {"dtype": ("f",)}}],
    ids=str,
)
def test_two_providers_of_one_name_conflict(registry, change):
    first = provider("fast")
    registry.add_provider(first)
    second = provider("fast", **change)
    with pytest.raises(ConflictError) as caught:
        registry.add_provider(second)
    assert repr(first) in str(caught.value)
    assert repr(second) in str(caught.value)
    assert registry.providers("scale")[0] == first


def test_nobody_replaces_a_reference(registry):
    with pytest.raises(ConflictError, match="'reference'"):
        registry.add_provider(provider("reference", rank=-1))


def test_unknown_ops_are_an_error_with_close_names(registry):
    mistyped = provider("fast")
    object.__setattr__(mistyped, "op", "scael")
    with pytest.raises(UnknownNameError, match="there is no op 'scael'; did you mean 'scale'"):
        registry.add_provider(mistyped)
    with pytest.raises(UnknownNameError, match="there is no op 'zzz'; known: scale"):
        registry.providers("zzz")


def test_providers_come_by_rank_whatever_the_order_of_adding(functions):
    made = [provider("a", rank=1), provider("c", rank=2), provider("b", rank=2)]
    for order in itertools.permutations(made):
        registry = Registry()
        registry.add_op(SCALE)
        for one in order:
            registry.add_provider(one)
        assert [one.name for one in registry.providers("scale")] == ["b", "c", "a", "reference"]
