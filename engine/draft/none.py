"""No drafts: every round is one plain decoding step."""

from collections.abc import Sequence

from engine.config import SpeculativeConfig
from engine.draft.base import DraftTree


class NoDrafter:
    """The drafter of plain decoding; it keeps no state, so that it is every request's state as well."""

    def __init__(self, config: SpeculativeConfig) -> None:
        """The configuration has nothing to say here; every drafter is made with one."""

    def open(self) -> "NoDrafter":
        """The state of a new request."""
        return self

    def extend(self, token_ids: Sequence[int]) -> None:
        """Tokens are of no use here."""

    def propose(self, max_depth: int) -> DraftTree:
        """Only the root."""
        return DraftTree()
