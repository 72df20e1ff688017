"""Every operation has a reference and a Triton kernel of the same signature; every call through a plan names one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dispatch.registry import Registry
from dispatch.resolve import resolve
from dispatch.target import Target
from triton_spec.ops import OPS
from triton_spec.providers import register

ROOT = Path(__file__).parents[2]
FACTS = {"dtype": "bfloat16", "head_dim": 64}


@pytest.fixture
def registry():
    registry = Registry()
    register(registry)
    return registry


@pytest.mark.parametrize("feature", ["triton", None], ids=["triton", "no triton"])
def test_triton_serves_every_op_where_it_is(registry, feature):
    """Resolving loads each function, and compares its signature with the reference's."""
    plan = resolve(registry, Target("cpu", "test", frozenset({feature} - {None})), FACTS, {})
    assert {decision.op: decision.provider for decision in plan.decisions} == dict.fromkeys(
        (op.name for op in OPS), feature or "reference"
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_floats_served(registry, dtype):
    plan = resolve(registry, Target("cpu", "test", frozenset({"triton"})), {"dtype": dtype}, {"*": "triton"})
    assert {decision.provider for decision in plan.decisions} == {"triton"}


def test_doubles_are_left_to_references(registry):
    plan = resolve(registry, Target("cpu", "test", frozenset({"triton"})), {"dtype": "float64"}, {})
    assert {decision.op: decision.provider for decision in plan.decisions}["linear"] == "reference"


def test_registering_twice_changes_nothing(registry):
    register(registry)
    assert registry.ops == OPS


def test_the_engine_calls_ops_that_are_there():
    called = {
        node.attr
        for path in (ROOT / "engine").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).split(".")[-1] in ("plan", "_plan")
    }
    assert "linear" in called
    assert called - {"target", "decisions", "as_dict"} <= {op.name for op in OPS}


def test_modules_of_references_hold_no_kernels():
    for op in OPS:
        module, _, name = op.reference.partition(":")
        assert (module.endswith(".reference"), name) == (True, op.name)
        imports = {
            alias.name.split(".")[0]
            for node in ast.walk(ast.parse((ROOT / (module.replace(".", "/") + ".py")).read_text()))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert "triton" not in imports
