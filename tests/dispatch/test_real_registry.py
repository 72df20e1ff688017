"""The ops and providers of this project: all there, all loadable, all of the reference's signature."""

import importlib.metadata
import re
from pathlib import Path

import pytest

from dispatch.discovery import GROUP, discover
from dispatch.probe import probe_target
from dispatch.provider import REFERENCE, load
from dispatch.resolve import resolve
from tests.dispatch.made import BARE

FACTS = {"dtype": "bfloat16", "head_dim": 64}


@pytest.fixture(scope="module")
def registry():
    return discover()


def test_our_own_package_registers_as_any_other_does():
    assert ("triton_spec", "triton_spec.providers:register") in {
        (point.name, point.value) for point in importlib.metadata.entry_points(group=GROUP)
    }


def test_every_op_has_something_faster_than_its_reference(registry):
    assert registry.ops
    assert not [op.name for op in registry.ops if len(registry.providers(op.name)) < 2]


@pytest.mark.parametrize("target", [lambda: BARE, probe_target], ids=["bare", "here"])
def test_references_can_serve_everything(registry, target):
    plan = resolve(registry, target(), FACTS, {"*": REFERENCE})
    for op in registry.ops:
        assert getattr(plan, op.name) is load(registry.providers(op.name)[-1])


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_kernels_are_the_default_where_triton_compiles(registry, dtype):
    target = probe_target()
    assert "triton" in target.features
    plan = resolve(registry, target, FACTS | {"dtype": dtype}, {})
    assert {decision.op for decision in plan.decisions if decision.provider == REFERENCE} == set()
    for decision in plan.decisions:
        (provider,) = [one for one in registry.providers(decision.op) if one.name == decision.provider]
        assert getattr(plan, decision.op) is load(provider)


def test_without_triton_references_take_over_and_the_plan_says_why(registry):
    for decision in resolve(registry, BARE, FACTS, {}).decisions:
        assert decision.provider == REFERENCE
        assert "needs triton, which the target cpu 'bare' lacks" in decision.reason
        assert decision.rejected


def test_every_operation_the_engine_calls_exists(registry):
    """Calls of plans, by the text of the engine."""
    text = "\n".join(path.read_text() for path in (Path(__file__).parents[2] / "engine").rglob("*.py"))
    called = set(re.findall(r"\b_?plan\.(\w+)\(", text))
    assert called
    assert called <= {op.name for op in registry.ops}
