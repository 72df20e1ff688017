"""A target: what the functions of a plan will run on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dispatch.errors import DefinitionError


@dataclass(frozen=True)
class Target:
    """What the functions of a plan will run on.

    Attributes:
        kind: "cpu", "cuda", ...: the name Triton's backends have for it.
        name: for people, e.g. "x86_64".
        features: what it has, e.g. {"triton", "avx512", "amx_bf16"}. "triton": Triton compiles for it.
        absent: feature that one would expect -> why it is not there.

    Raises:
        DefinitionError: an empty kind, features that are no set of names, or a feature both there and absent.
    """

    kind: str
    name: str
    features: frozenset[str]
    absent: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or not self.kind:
            raise DefinitionError(f"kind of target {self.name!r}: {self.kind!r}; name one, e.g. 'cpu' or 'cuda'")
        if isinstance(self.features, str) or not all(isinstance(name, str) and name for name in self.features):
            raise DefinitionError(f"features of target {self.name!r}: {self.features!r} is no set of names")
        both = sorted(self.absent.keys() & self.features)
        if both:
            raise DefinitionError(f"target {self.name!r}: {', '.join(both)} cannot be both there and absent")
        object.__setattr__(self, "features", frozenset(self.features))
        object.__setattr__(self, "absent", MappingProxyType(dict(self.absent)))

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"
