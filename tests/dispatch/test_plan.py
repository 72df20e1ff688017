"""A plan: the functions themselves as attributes, frozen, and as JSON."""

import copy
import json

import pytest

from dispatch.op import Op
from dispatch.plan import Plan
from dispatch.resolve import resolve
from dispatch.target import Target
from tests.dispatch.made import LARGE, provider


@pytest.fixture
def plan(registry):
    registry.add_provider(provider("fast", rank=2, needs={"triton"}))
    registry.add_provider(provider("gpu", rank=7, kinds={"cuda"}))
    registry.add_op(Op("scale_again", "implementations:reference", "multiply"))
    return resolve(registry, LARGE, {}, {})


def test_an_attribute_is_the_function_itself(plan):
    import implementations

    assert plan.scale is implementations.fast
    assert plan.scale_again is implementations.reference
    assert "scale" in vars(plan)  # found without a call of ours


def test_decisions_come_in_the_order_of_the_registry(plan):
    assert [decision.op for decision in plan.decisions] == ["scale", "scale_again"]


def test_an_unknown_op_is_an_attribute_error_with_close_names(plan):
    with pytest.raises(AttributeError, match="there is no op 'scael'; did you mean 'scale'"):
        plan.scael(1)
    with pytest.raises(AttributeError, match="there is no op 'linear'; known: none"):
        Plan(LARGE, (), {}).linear(1)
    assert not hasattr(plan, "_private")


@pytest.mark.parametrize("name", ["scale", "decisions", "target", "new"])
def test_a_plan_cannot_change(plan, name):
    before = plan.scale
    with pytest.raises(AttributeError):
        setattr(plan, name, None)
    with pytest.raises(AttributeError):
        delattr(plan, name)
    assert plan.scale is before


def test_decisions_cannot_change(plan):
    with pytest.raises(AttributeError):
        plan.decisions[0].provider = "other"
    assert isinstance(plan.decisions, tuple)
    assert isinstance(plan.decisions[0].rejected, tuple)


def test_copies_work(plan):
    again = copy.copy(plan)
    assert again == plan
    assert again.scale is plan.scale


def test_the_form_of_the_json(plan):
    assert json.loads(json.dumps(plan.as_dict())) == {
        "target": {"kind": "cpu", "name": "large", "features": ["avx2", "avx512", "triton"], "absent": {}},
        "ops": [
            {
                "op": "scale",
                "provider": "fast",
                "reason": "highest rank (2) of those that can run",
                "rejected": [
                    {"provider": "gpu", "reason": "runs on cuda, and the target is cpu 'large'"},
                    {"provider": "reference", "reason": "rank -1 is below 2 of 'fast'"},
                ],
            },
            {"op": "scale_again", "provider": "reference", "reason": "there is no other provider", "rejected": []},
        ],
    }


def test_the_json_says_why_a_feature_is_absent():
    target = Target("cpu", "here", frozenset(), {"triton": "not installed"})
    assert Plan(target, (), {}).as_dict()["target"]["absent"] == {"triton": "not installed"}
