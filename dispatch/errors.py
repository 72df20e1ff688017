"""The errors of dispatch. Each message names what was wrong, with its value, and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DispatchError(Exception):
    """Base of every error that this package raises on purpose."""


class DefinitionError(DispatchError, ValueError):
    """An op, a provider or a target that makes no sense by itself."""


class ConflictError(DispatchError):
    """Two different definitions under one name."""


class UnknownNameError(DispatchError):
    """An op, or a provider of an op, that nobody registered."""


class DiscoveryError(DispatchError):
    """An entry point that cannot be loaded or does not register what it should."""


class ChoiceSyntaxError(DispatchError, ValueError):
    """Choices that are not of the form op=provider,op=provider."""


class ProbeError(DispatchError):
    """The machine could not be asked what it can run."""


class LoadError(DispatchError):
    """The function of a provider, or of an op's reference, cannot be imported."""


class SignatureError(DispatchError):
    """A provider's function does not take the arguments of the op's reference."""


class TieError(DispatchError):
    """Several providers of the same rank could serve an op."""


class IneligibleError(DispatchError):
    """A provider that was asked for cannot serve this target or these facts."""


def unknown(what: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """The error for a name that is not among the known ones, with those that resemble it (or all, if none does)."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names)
    if close:
        remedy = f"did you mean {' or '.join(map(repr, close))}?"
    else:
        remedy = f"known: {', '.join(names) or 'none'}"
    return UnknownNameError(f"there is no {what} {name!r}; {remedy}")
