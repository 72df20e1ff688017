"""Installed packages register by entry point; a broken one is named, never skipped."""

import importlib.metadata

import pytest

from dispatch.discovery import discover
from dispatch.errors import DiscoveryError, DispatchError
from tests.dispatch.made import GROUP

OPS = """
from dispatch.op import Op
def register(registry):
    registry.add_op(Op("scale", "implementations:reference", "multiply"))
"""
PROVIDERS = """
from dispatch.provider import Provider
def register(registry):
    registry.add_provider(Provider("scale", "fast", "implementations:fast"))
"""


@pytest.mark.parametrize("names", [("aaa", "bbb"), ("bbb", "aaa")], ids=["ops first", "providers first"])
def test_packages_are_found_in_any_order(install, names):
    ops, providers = names
    install(ops, OPS)
    install(providers, PROVIDERS)
    registry = discover(GROUP)
    assert [op.name for op in registry.ops] == ["scale"]
    assert [one.name for one in registry.providers("scale")] == ["fast", "reference"]


def test_chains_of_packages_are_found_in_the_worst_order(install):
    """One that needs an op of another, and defines one that a third needs."""
    define = 'registry.add_op(Op("{0}", "implementations:reference", ""))'
    use = 'registry.add_provider(Provider("{0}", "fast", "implementations:fast"))'
    head = "from dispatch.op import Op\nfrom dispatch.provider import Provider\ndef register(registry):\n    "
    install("aaa", head + use.format("second"))
    install("bbb", head + use.format("first") + "\n    " + define.format("second"))
    install("ccc", head + define.format("first"))
    registry = discover(GROUP)
    assert {op.name for op in registry.ops} == {"first", "second"}
    assert all(registry.providers(op.name)[0].name == "fast" for op in registry.ops)


def test_several_entry_points_of_one_package(install):
    install("both", f"{OPS.replace('register', 'ops')}\n{PROVIDERS}", ops="both:ops", providers="both:register")
    assert len(discover(GROUP).providers("scale")) == 2


def test_the_order_of_the_metadata_does_not_matter(install, monkeypatch):
    install("aaa", OPS)
    install("bbb", OPS.replace("scale", "other"))
    found = discover(GROUP).ops
    points = list(importlib.metadata.entry_points(group=GROUP))
    monkeypatch.setattr("dispatch.discovery.entry_points", lambda group: points[::-1])
    assert discover(GROUP).ops == found
    assert len(found) == 2


def test_each_discovery_gives_a_registry_of_its_own(install):
    install("aaa", OPS)
    assert discover(GROUP) is not discover(GROUP)


def test_nothing_installed_is_an_error_with_the_remedy():
    with pytest.raises(DiscoveryError, match=r"no installed package has an entry point of group 'nobody'.*pip install"):
        discover("nobody")


@pytest.mark.parametrize(
    ("text", "value", "cause"),
    [
        ("import no_such_dependency", "culprit:register", "ModuleNotFoundError: No module named 'no_such_dependency'"),
        ("raise OSError('libfast.so')", "culprit:register", "OSError: libfast.so"),
        ("", "culprit:register", "AttributeError: .*register"),
        ("", "not_there:register", "ModuleNotFoundError: No module named 'not_there'"),
        ("register = 3", "culprit:register", "is a int, not a function"),
        ("def register(registry): 1 / 0", "culprit:register", "failed: ZeroDivisionError"),
        ("def register(): pass", "culprit:register", "failed: TypeError"),
        (PROVIDERS.replace("scale", "scael"), "culprit:register", "no op 'scael'; did you mean 'scale'"),
        (OPS.replace(":reference", ":fast"), "culprit:register", "two different ops are named 'scale'"),
        (PROVIDERS.replace(":fast", ""), "culprit:register", "'implementations' is no import string"),
    ],
    ids=[
        "import",
        "code",
        "attribute",
        "module",
        "no function",
        "fails",
        "arguments",
        "unknown op",
        "conflict",
        "form",
    ],
)
@pytest.mark.parametrize("name", ["aaa", "zzz"], ids=["first", "last"])
def test_a_bad_entry_point_is_named_with_its_package_and_the_cause(install, text, value, cause, name):
    install("ours", OPS)
    install("culprit", text, **{name: value})
    with pytest.raises(DispatchError, match=cause) as caught:
        discover(GROUP)
    if "two different ops" not in cause:  # either of them may be second
        assert f"entry point {name!r} ({value}) of package 'culprit'" in str(caught.value)
