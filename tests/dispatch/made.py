"""Providers and targets that the tests of dispatch share."""

from __future__ import annotations

from dispatch.provider import Provider
from dispatch.target import Target

GROUP = "tests.providers"  # entry points that only these tests look for

BARE = Target("cpu", "bare", frozenset())
LARGE = Target("cpu", "large", frozenset({"triton", "avx2", "avx512"}))


def provider(name: str, load: str = "implementations:fast", **rest) -> Provider:
    """A provider of the op `scale`."""
    return Provider(op="scale", name=name, load=load, **rest)


class Silent:
    """A driver that cannot say what its target is."""

    def __init__(self, error):
        self.error = error

    def get_current_target(self):
        raise self.error
