"""Who is chosen, who is not and why, and what is an error."""

import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.errors import IneligibleError, LoadError, SignatureError, TieError, UnknownNameError
from dispatch.op import Op
from dispatch.provider import REFERENCE, Provider
from dispatch.registry import Registry
from dispatch.resolve import obstacle, resolve
from dispatch.target import Target
from tests.dispatch.made import BARE, LARGE, provider

FACTS = {"dtype": "bfloat16", "head_dim": 64}


@pytest.fixture
def decide(registry):
    """decide(*providers, ...) -> the decision about `scale`."""

    def of(*providers, target=LARGE, facts=FACTS, choices=None):
        for one in providers:
            registry.add_provider(one)
        (decision,) = resolve(registry, target, facts, choices or {}).decisions
        return decision

    return of


def test_the_reference_alone_is_chosen(decide):
    assert decide() == ("scale", "reference", "there is no other provider", ())


def test_the_highest_rank_wins_and_says_so(decide):
    decision = decide(provider("fast", rank=1), provider("faster", "implementations:faster", rank=10))
    assert decision.provider == "faster"
    assert decision.reason == "highest rank (10) of those that can run"
    assert decision.rejected == (
        ("fast", "rank 1 is below 10 of 'faster'"),
        ("reference", "rank -1 is below 10 of 'faster'"),
    )


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        ({"needs": {"amx_bf16"}}, "needs amx_bf16, which the target cpu 'large' lacks"),
        ({"needs": {"avx2", "amx_bf16", "amx_int8"}}, "needs amx_bf16, amx_int8, which the target cpu 'large' lacks"),
        ({"kinds": {"cuda", "hip"}}, "runs on cuda, hip, and the target is cpu 'large'"),
        ({"domain": {"dtype": ("float16", "float32")}}, "serves dtype float16, float32, not bfloat16"),
        ({"domain": {"head_dim": range(128, 256)}}, "serves head_dim range(128, 256), not 64"),
        ({"domain": {"topk": (1, 4)}}, "serves topk 1, 4, and the fact 'topk' is not given"),
        ({"domain": {"dtype": ("bfloat16",), "topk": (1,)}}, "serves topk 1, and the fact 'topk' is not given"),
    ],
    ids=["feature", "features", "kind", "value", "range", "missing fact", "one of two facts"],
)
def test_a_single_provider_that_cannot_run_leaves_it_to_the_reference_and_says_why(decide, needs, reason):
    decision = decide(provider("fast", **needs))
    assert decision.provider == REFERENCE
    assert decision.reason == f"nothing faster can run: 'fast' {reason}"
    assert decision.rejected == (("fast", reason),)


@pytest.mark.parametrize(
    "fits",
    [
        {"needs": {"avx2", "avx512"}},
        {"kinds": {"cuda", "cpu"}},
        {"domain": {"dtype": ("float32", "bfloat16")}},
        {"domain": {"head_dim": range(16, 129)}},
        {"domain": {}},
    ],
    ids=["features", "kinds", "value", "range", "no domain"],
)
def test_a_provider_that_fits_is_chosen(decide, fits):
    assert decide(provider("fast", **fits)).provider == "fast"


def test_the_reason_why_a_feature_is_absent_is_passed_on(decide):
    target = Target("cpu", "here", frozenset(), {"triton": "no active driver"})
    reason = "needs triton, which the target cpu 'here' lacks (triton: no active driver)"
    assert decide(provider("fast", needs={"triton"}), target=target).rejected == (("fast", reason),)


def test_the_next_rank_takes_over(decide):
    decision = decide(
        provider("gpu", rank=9, kinds={"cuda"}), provider("fast", rank=5), provider("slow", "implementations:faster")
    )
    assert decision.provider == "fast"
    assert dict(decision.rejected)["gpu"] == "runs on cuda, and the target is cpu 'large'"
    assert dict(decision.rejected).keys() == {"gpu", "slow", REFERENCE}


@pytest.mark.parametrize(
    ("path", "cause"),
    [("broken:f", "RuntimeError: no such accelerator"), ("absent_module:f", "No module named 'absent_module'")],
    ids=["code", "module"],
)
def test_a_provider_that_cannot_be_loaded_is_rejected_with_the_cause(decide, path, cause):
    decision = decide(provider("fast", path))
    assert decision.provider == REFERENCE
    ((name, reason),) = decision.rejected
    assert name == "fast"
    assert cause in reason
    assert cause in decision.reason


def test_a_reference_that_cannot_be_loaded_is_an_error(registry):
    registry.add_op(Op("other", "broken:f", ""))
    registry.add_provider(Provider("other", "fast", "implementations:fast"))
    with pytest.raises(LoadError, match=r"provider 'reference' of op 'other'.*no such accelerator"):
        resolve(registry, LARGE, FACTS, {})


def test_those_of_lower_rank_are_not_imported(decide):
    decide(provider("fast", rank=1), provider("slow", "recorded:fast"))
    assert "recorded" not in sys.modules


def test_those_that_cannot_run_are_not_imported(decide):
    decide(provider("fast", "recorded:fast", needs={"amx_bf16"}))
    assert "recorded" not in sys.modules


def test_a_tie_names_both_and_the_remedy(decide):
    with pytest.raises(TieError, match=r"op 'scale': 'a' and 'b' both have rank 4.*scale=a.*different ranks"):
        decide(provider("b", rank=4), provider("a", "implementations:faster", rank=4))


@pytest.mark.parametrize(
    "other",
    [{"needs": {"amx_bf16"}}, {"kinds": {"cuda"}}, {"domain": {"dtype": ("int8",)}}, {"load": "broken:f"}],
    ids=["features", "kind", "domain", "load"],
)
def test_one_that_cannot_run_ties_with_nobody(decide, other):
    assert decide(provider("a", rank=4), provider("b", rank=4, **other)).provider == "a"


def test_a_tie_below_the_winner_does_not_matter(decide):
    tied = [provider(name, rank=4) for name in "ab"]
    assert decide(*tied, provider("c", rank=5)).provider == "c"


def test_a_choice_ends_a_tie(decide):
    assert decide(provider("b", rank=4), provider("a", rank=4), choices={"scale": "b"}).provider == "b"


@pytest.mark.parametrize("choices", [{"scale": "reference"}, {"*": "reference"}, {"*": "fast", "scale": "reference"}])
def test_a_choice_wins_over_rank(decide, choices):
    decision = decide(provider("fast", rank=10), choices=choices)
    asked = "scale=reference" if "scale" in choices else "*=reference"
    assert decision == ("scale", "reference", f"asked for: {asked}", (("fast", f"not asked for: {asked}"),))


def test_a_choice_keeps_the_reasons_of_those_that_cannot_run(decide):
    decision = decide(provider("fast", needs={"amx_bf16"}), choices={"*": "reference"})
    assert decision.rejected == (("fast", "needs amx_bf16, which the target cpu 'large' lacks"),)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"needs": {"amx_bf16"}}, "needs amx_bf16, which the target cpu 'large' lacks"),
        ({"kinds": {"cuda"}}, "runs on cuda"),
        ({"domain": {"dtype": ("int8",)}}, "serves dtype int8, not bfloat16"),
        ({"domain": {"topk": (1,)}}, "the fact 'topk' is not given"),
    ],
    ids=["feature", "kind", "domain", "missing fact"],
)
@pytest.mark.parametrize("op", ["scale", "*"])
def test_asking_for_one_that_cannot_run_is_an_error(decide, wrong, reason, op):
    with pytest.raises(IneligibleError) as caught:
        decide(provider("fast", **wrong), choices={op: "fast"})
    assert f"{op}=fast was asked for, but provider 'fast' of op 'scale' cannot run: it " in str(caught.value)
    assert reason in str(caught.value)


def test_asking_for_one_that_cannot_be_loaded_is_an_error(decide):
    with pytest.raises(LoadError, match=r"provider 'fast' of op 'scale'.*no such accelerator"):
        decide(provider("fast", "broken:f"), choices={"scale": "fast"})


def test_asking_for_an_unknown_op_is_an_error_with_close_names(decide):
    with pytest.raises(UnknownNameError, match="there is no op 'scael'; did you mean 'scale'"):
        decide(choices={"scael": "reference"})


@pytest.mark.parametrize("op", ["scale", "*"])
def test_asking_for_an_unknown_provider_is_an_error_with_close_names(decide, op):
    with pytest.raises(UnknownNameError, match="no provider of op 'scale' named 'fsat'; did you mean 'fast'"):
        decide(provider("fast"), choices={op: "fsat"})
    with pytest.raises(UnknownNameError, match="named 'zzz'; known: fast, reference"):
        decide(choices={op: "zzz"})


@pytest.mark.parametrize(
    ("function", "difference"),
    [
        ("other_name", "parameter 2 is positional or keyword by=2.0 instead of positional or keyword factor=2.0"),
        ("other_default", "factor=3.0 instead of positional or keyword factor=2.0"),
        ("other_order", "parameter 1 is positional or keyword factor=2.0 instead of positional or keyword x"),
        ("other_kind", "parameter 3 is positional or keyword out=None instead of keyword-only out=None"),
        ("too_few", "parameter 3 is nothing instead of keyword-only out=None"),
        ("too_many", "parameter 4 is keyword-only extra=1 instead of nothing"),
        ("unreadable", "has no signature that can be read"),
    ],
)
@pytest.mark.parametrize("choices", [{}, {"scale": "fast"}], ids=["by rank", "asked for"])
def test_another_signature_than_the_references_is_an_error(decide, function, difference, choices):
    with pytest.raises(SignatureError) as caught:
        decide(provider("fast", f"implementations:{function}"), choices=choices)
    assert "provider 'fast' of op 'scale'" in str(caught.value)
    assert difference in str(caught.value)


def test_annotations_are_no_part_of_the_signature(decide):
    assert decide(provider("faster", "implementations:faster")).provider == "faster"


def test_the_same_question_has_the_same_answer(registry):
    registry.add_provider(provider("fast", domain={"dtype": ("bfloat16",)}))
    facts, choices = dict(FACTS), {"*": "reference"}
    asked = [resolve(registry, LARGE, facts, chosen) for chosen in ({}, choices, {})]
    assert asked[0] == asked[2] != asked[1]
    assert asked[0].scale is asked[2].scale
    assert (facts, choices) == (FACTS, {"*": "reference"})
    assert len(registry.providers("scale")) == 2


def test_the_environment_and_the_machine_are_not_asked(registry, monkeypatch):
    """A bare target stays bare here, and the variable is read by policy alone."""
    registry.add_provider(provider("fast"))
    registry.add_provider(provider("amx", rank=5, needs={"triton"}))
    monkeypatch.setenv("TRITON_SPEC_PROVIDERS", "scale=reference")
    assert resolve(registry, BARE, {}, {}).decisions[0].provider == "fast"


def test_the_order_of_registration_does_not_matter(functions):
    made = [provider("a", rank=1), provider("b", "broken:f", rank=2), provider("c", rank=3, needs={"amx_bf16"})]
    plans = []
    for order in itertools.permutations(made):
        registry = Registry()
        registry.add_op(Op("scale", "implementations:reference", ""))
        for one in order:
            registry.add_provider(one)
        plans.append(resolve(registry, LARGE, FACTS, {}))
    assert all(plan == plans[0] for plan in plans)
    assert plans[0].decisions[0].provider == "a"


FEATURES = st.frozensets(st.sampled_from(["triton", "avx2", "avx512"]))
DOMAINS = st.dictionaries(st.sampled_from(["dtype", "topk"]), st.lists(st.integers(0, 3), min_size=1, max_size=3))


@given(
    offered=st.lists(st.tuples(FEATURES, DOMAINS, st.sets(st.sampled_from(["cpu", "cuda"]))), max_size=5),
    features=FEATURES,
    facts=st.dictionaries(st.sampled_from(["dtype", "topk"]), st.integers(0, 3)),
)
def test_the_chosen_one_is_the_best_of_those_that_can_run(offered, features, facts):
    """Against the definition, spelled out; every one is either chosen or rejected."""
    target = Target("cpu", "drawn", features)
    registry, able = Registry(), [REFERENCE]
    registry.add_op(Op("join", "os.path:join", ""))
    for rank, (needs, domain, kinds) in enumerate(offered):
        one = Provider("join", f"p{rank}", "os.path:join", needs=needs, domain=domain, rank=rank, kinds=kinds)
        registry.add_provider(one)
        fits = all(fact in facts and facts[fact] in values for fact, values in domain.items())
        runs = needs <= features and (not kinds or "cpu" in kinds) and fits
        assert runs == (not obstacle(one, target, facts))
        able += [one.name] * runs
    (decision,) = resolve(registry, target, facts, {}).decisions
    assert decision.provider == able[-1]
    names = [decision.provider, *(name for name, _ in decision.rejected)]
    assert sorted(names) == sorted([REFERENCE, *(f"p{rank}" for rank in range(len(offered)))])
