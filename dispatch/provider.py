"""A provider: an implementation of an op, and what it needs."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from dispatch.errors import DefinitionError, LoadError
from dispatch.op import Op, check_import_string

Fact: TypeAlias = str | int  # a static fact about the calls to come, e.g. dtype "bfloat16", head_dim 64

REFERENCE = "reference"  # name of the provider that every op has
REFERENCE_RANK = -1  # below all others


@dataclass(frozen=True)
class Provider:
    """An implementation of an op. Machine fit (`kinds`, `needs`), argument fit (`domain`) and preference (`rank`) are
    separate, and all of the first three must hold.

    Attributes:
        op: name of the op.
        name: name among the op's providers, as choices and the plan give it.
        load: import string "module:attribute" of the function, which has the signature of the op's reference.
        needs: features that the target must have, all of them, e.g. {"triton", "avx512"}.
        domain: fact -> the values that can be served, e.g. {"dtype": ("bfloat16",)}. Facts not named do not matter.
        rank: 0 or more; the highest one that can run wins.
        kinds: kinds of target ("cpu", "cuda") that it runs on; empty means all.

    Raises:
        DefinitionError: a field of the wrong form.
    """

    op: str
    name: str
    load: str
    needs: frozenset[str] = frozenset()
    domain: Mapping[str, Collection[Fact]] = field(default_factory=dict, hash=False)
    rank: int = 0
    kinds: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for what, name in (("op", self.op), ("name", self.name)):
            # The characters of the syntax of choices, "op=provider,*=provider", would make it impossible to ask for.
            if not isinstance(name, str) or not name or any(char in "=,*" or char.isspace() for char in name):
                raise DefinitionError(f"provider {what} {name!r}: must be text without '=', ',', '*' or spaces")
        check_import_string(self.load, f"load of {self}")
        if type(self.rank) is not int:
            raise DefinitionError(f"rank of {self}: {self.rank!r} is no integer")
        if (self.rank < 0) != (self.name == REFERENCE) or self.rank < REFERENCE_RANK:
            raise DefinitionError(
                f"rank of {self}: {self.rank}; ranks are 0 or more; {REFERENCE!r}, the op's own, has {REFERENCE_RANK}"
            )
        object.__setattr__(self, "needs", self._names("needs", self.needs))
        object.__setattr__(self, "kinds", self._names("kinds", self.kinds))
        object.__setattr__(self, "domain", self._frozen_domain())

    def __str__(self) -> str:
        return f"provider {self.name!r} of op {self.op!r}"

    def _names(self, what: str, names: Collection[str]) -> frozenset[str]:
        listed = not isinstance(names, str) and isinstance(names, Collection)
        if not listed or not all(isinstance(name, str) and name for name in names):
            raise DefinitionError(f'{what} of {self}: {names!r}; write a set of names, e.g. frozenset({{"avx512"}})')
        return frozenset(names)

    def _frozen_domain(self) -> Mapping[str, Collection[Fact]]:
        if not isinstance(self.domain, Mapping):
            raise DefinitionError(f"domain of {self}: {self.domain!r} does not map facts to values")
        frozen: dict[str, Collection[Fact]] = {}
        for fact, values in self.domain.items():
            if isinstance(values, str) or not isinstance(values, Collection) or not values:
                raise DefinitionError(
                    f"domain of {self}: {fact}={values!r}; list the values that can be served, e.g. ('bfloat16',)"
                )
            wrong = [value for value in values if not isinstance(value, (str, int))]
            if wrong:
                raise DefinitionError(f"domain of {self}: {fact}={wrong[0]!r}; facts are text or integers")
            frozen[fact] = values if isinstance(values, range) else tuple(values)
        return MappingProxyType(frozen)


def reference_of(op: Op) -> Provider:
    """The op's own PyTorch function as the provider that is always there: it needs nothing, and ranks lowest."""
    return Provider(op.name, REFERENCE, op.reference, rank=REFERENCE_RANK)


def load(provider: Provider) -> Callable[..., Any]:
    """Import the function of a provider.

    Raises:
        LoadError: the module cannot be imported (whatever its code raised), or has no such function.
    """
    module, _, attribute = provider.load.partition(":")
    try:
        function = operator.attrgetter(attribute)(importlib.import_module(module))
    except Exception as error:
        raise LoadError(
            f"{provider} cannot be loaded from {provider.load!r}: {type(error).__name__}: {error}"
        ) from error
    if not callable(function):
        raise LoadError(f"{provider}: {provider.load!r} is a {type(function).__name__}, not a function")
    return function  # type: ignore[no-any-return]
