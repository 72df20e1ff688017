"""Choose a provider for every op: (registry, target, facts, choices) -> plan, without looking at anything else."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from dispatch.errors import IneligibleError, LoadError, SignatureError, TieError, unknown
from dispatch.op import Op
from dispatch.plan import Decision, Plan, Rejected
from dispatch.policy import EVERY_OP
from dispatch.provider import REFERENCE, Fact, Provider, load
from dispatch.registry import Registry
from dispatch.target import Target

Function = Callable[..., Any]


def resolve(registry: Registry, target: Target, facts: Mapping[str, Fact], choices: Mapping[str, str]) -> Plan:
    """Choose for every op the provider of the highest rank that can run, or the one asked for.

    Args:
        facts: static facts about the calls to come, e.g. {"dtype": "bfloat16", "head_dim": 64}. A provider whose
            domain mentions a fact that is not given cannot be chosen.
        choices: op (or "*" for all others) -> provider, see policy.read_choices.

    Raises:
        UnknownNameError: a choice of an op or provider that does not exist.
        IneligibleError: a provider asked for that cannot run on this target or with these facts.
        LoadError: a provider asked for, or a reference, that cannot be imported.
        TieError: several providers of the highest rank can run.
        SignatureError: a provider loaded whose parameters are not those of the reference.
    """
    for name in choices:
        if name != EVERY_OP and name not in {op.name for op in registry.ops}:
            raise unknown("op", name, (op.name for op in registry.ops))
    decisions, functions = [], {}
    for op in registry.ops:
        candidates = registry.providers(op.name)
        reference = load(candidates[-1])
        asked = op.name if op.name in choices else EVERY_OP
        if asked in choices:
            decision, function = _take(op, candidates, choices[asked], f"{asked}={choices[asked]}", target, facts)
        else:
            decision, function = _best(op, candidates, target, facts)
        if function is not reference:
            _check_signature(op, decision.provider, function, reference)
        decisions.append(decision)
        functions[op.name] = function
    return Plan(target, tuple(decisions), functions)


def obstacle(provider: Provider, target: Target, facts: Mapping[str, Fact]) -> str:
    """Why a provider cannot run on this target with these facts, before it is loaded; empty if it can."""
    if provider.kinds and target.kind not in provider.kinds:
        return f"runs on {', '.join(sorted(provider.kinds))}, and the target is {target}"
    lacking = sorted(provider.needs - target.features)
    if lacking:
        whys = [f" ({name}: {target.absent[name]})" for name in lacking if name in target.absent]
        return f"needs {', '.join(lacking)}, which the target {target} lacks{''.join(whys)}"
    for fact, values in provider.domain.items():
        served = str(values) if isinstance(values, range) else ", ".join(map(str, values))
        if fact not in facts:
            return f"serves {fact} {served}, and the fact {fact!r} is not given"
        if facts[fact] not in values:
            return f"serves {fact} {served}, not {facts[fact]}"
    return ""


def _take(op: Op, candidates: tuple[Provider, ...], name: str, asked: str,
          target: Target, facts: Mapping[str, Fact]) -> tuple[Decision, Function]:  # fmt: skip
    """The provider asked for, whatever its rank."""
    by_name = {provider.name: provider for provider in candidates}
    if name not in by_name:
        raise unknown(f"provider of op {op.name!r} named", name, by_name)
    provider = by_name[name]
    reason = obstacle(provider, target, facts)
    if reason:
        raise IneligibleError(f"{asked} was asked for, but {provider} cannot run: it {reason}")
    rejected = [
        Rejected(other.name, obstacle(other, target, facts) or f"not asked for: {asked}")
        for other in candidates
        if other is not provider
    ]
    return Decision(op.name, name, f"asked for: {asked}", tuple(rejected)), load(provider)


def _best(op: Op, candidates: tuple[Provider, ...],
          target: Target, facts: Mapping[str, Fact]) -> tuple[Decision, Function]:  # fmt: skip
    """The provider of the highest rank that can run; candidates come by rank, and end with the reference."""
    rejected: list[Rejected] = []
    able: list[tuple[Provider, Function]] = []  # of one rank
    for provider in candidates:
        if able and provider.rank < able[0][0].rank:
            break
        reason = obstacle(provider, target, facts)
        if not reason:
            try:
                able.append((provider, load(provider)))
                continue
            except LoadError as error:
                if provider.name == REFERENCE:
                    raise  # the op has no meaning without it
                reason = str(error)
        rejected.append(Rejected(provider.name, reason))
    if len(able) > 1:
        names = " and ".join(repr(provider.name) for provider, _ in able)
        raise TieError(
            f"op {op.name!r}: {names} both have rank {able[0][0].rank} and can run here; "
            f"ask for one ({op.name}={able[0][0].name}) or give them different ranks"
        )
    (chosen, function), better = able[0], len(rejected)
    for provider in candidates:
        if provider is not chosen and all(provider.name != name for name, _ in rejected):
            rejected.append(Rejected(provider.name, f"rank {provider.rank} is below {chosen.rank} of {chosen.name!r}"))
    return Decision(op.name, chosen.name, _why(chosen, rejected[:better], len(candidates)), tuple(rejected)), function


def _why(chosen: Provider, better: list[Rejected], count: int) -> str:
    """The reason for the choice; `better` of the `count` candidates were rejected before it."""
    if chosen.name == REFERENCE:
        cannot = "; ".join(f"{name!r} {reason}" for name, reason in better)
        return f"nothing faster can run: {cannot}" if better else "there is no other provider"
    return f"highest rank ({chosen.rank}) of those that can run"


def _check_signature(op: Op, name: str, function: Function, reference: Function) -> None:
    """Raise SignatureError unless both take the same parameters: names, order, kinds and defaults."""
    try:
        theirs = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError) as error:
        raise SignatureError(
            f"provider {name!r} of op {op.name!r} has no signature that can be read: {error}"
        ) from error
    ours = list(inspect.signature(reference).parameters.values())
    for index in range(max(len(ours), len(theirs))):
        expected, found = (_describe(of[index]) if index < len(of) else "nothing" for of in (ours, theirs))
        if expected != found:
            raise SignatureError(
                f"provider {name!r} of op {op.name!r} has another signature than the reference: "
                f"parameter {index + 1} is {found} instead of {expected}"
            )


def _describe(parameter: inspect.Parameter) -> str:
    """Kind, name and default of a parameter; annotations are free."""
    return f"{parameter.kind.description} {parameter.replace(annotation=inspect.Parameter.empty)}"
