"""The ops and providers that are known. A value that is passed around; there is no global one."""

from __future__ import annotations

from dispatch.errors import ConflictError, unknown
from dispatch.op import Op
from dispatch.provider import Provider, reference_of


class Registry:
    """Ops, and the providers of each. Adding the same thing twice changes nothing."""

    def __init__(self) -> None:
        self._ops: dict[str, Op] = {}
        self._providers: dict[str, dict[str, Provider]] = {}  # op -> name -> provider

    def add_op(self, op: Op) -> None:
        """Add an op; its reference becomes its first provider.

        Raises:
            ConflictError: another op has this name.
        """
        known = self._ops.setdefault(op.name, op)
        if known != op:
            raise ConflictError(f"two different ops are named {op.name!r}: {known} and {op}; rename one")
        reference = reference_of(op)
        self._providers.setdefault(op.name, {reference.name: reference})

    def add_provider(self, provider: Provider) -> None:
        """Add a provider of an op that is there already.

        Raises:
            UnknownNameError: there is no such op.
            ConflictError: another provider of the op has this name.
        """
        if provider.op not in self._ops:
            raise unknown("op", provider.op, self._ops)
        known = self._providers[provider.op].setdefault(provider.name, provider)
        if known != provider:
            raise ConflictError(
                f"op {provider.op!r} has two different providers named {provider.name!r}: "
                f"{known!r} and {provider!r}; rename one"
            )

    @property
    def ops(self) -> tuple[Op, ...]:
        """All ops, in the order in which they were added."""
        return tuple(self._ops.values())

    def providers(self, op: str) -> tuple[Provider, ...]:
        """The providers of an op, the highest rank first, those of equal rank by name; the last one is the reference.

        Raises:
            UnknownNameError: there is no such op.
        """
        if op not in self._ops:
            raise unknown("op", op, self._ops)
        return tuple(sorted(self._providers[op].values(), key=lambda provider: (-provider.rank, provider.name)))
