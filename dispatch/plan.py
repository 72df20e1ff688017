"""The plan: for each op the function to call, and why that one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass
from typing import Any, NamedTuple

from dispatch.errors import unknown
from dispatch.target import Target


class Rejected(NamedTuple):
    """A provider that was not chosen, and why."""

    provider: str
    reason: str


class Decision(NamedTuple):
    """Who serves an op, why, and why nobody else does."""

    op: str
    provider: str
    reason: str
    rejected: tuple[Rejected, ...]


@dataclass(frozen=True)
class Plan:
    """The function of each op as an attribute: `plan.linear(x, weight)` calls the chosen function itself.

    Attributes:
        target: what the plan was made for.
        decisions: one an op, in the order of the registry.
    """

    target: Target
    decisions: tuple[Decision, ...]
    functions: InitVar[Mapping[str, Callable[..., Any]]]  # op -> function

    def __post_init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        for op, function in functions.items():
            object.__setattr__(self, op, function)

    def __getattr__(self, name: str) -> Callable[..., Any]:  # reached only for what is no op
        if name.startswith("_"):
            raise AttributeError(f"the plan has no attribute {name!r}")
        known = [decision.op for decision in vars(self).get("decisions", ())]
        raise AttributeError(f"in this plan {unknown('op', name, known)}", name=name, obj=self)

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON can hold it: {"target": {...}, "ops": [{"op", "provider", "reason", "rejected"}, ...]}."""
        return {
            "target": {
                "kind": self.target.kind,
                "name": self.target.name,
                "features": sorted(self.target.features),
                "absent": dict(self.target.absent),
            },
            "ops": [
                decision._asdict() | {"rejected": [rejected._asdict() for rejected in decision.rejected]}
                for decision in self.decisions
            ],
        }
