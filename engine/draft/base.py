"""What a drafter is: it guesses a tree of next tokens for each request; it never decides what is emitted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class DraftTree:
    """Guessed continuations of a request, below its last token.

    Node 0 is that last token, the root; draft i (from 0) is node i + 1 with token `tokens[i]` and the lower-numbered
    parent node `parents[i]`. The children of a node have different tokens. Without tokens there is only the root.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()


class Draft(Protocol):
    """The drafting state of one request; dropped with the request."""

    def extend(self, token_ids: Sequence[int]) -> None:
        """Further tokens of the request: its prompt, later the tokens of each round. They are final."""

    def propose(self, max_depth: int) -> DraftTree:
        """A tree below the last token, no node deeper than `max_depth` (0: only the root).

        It has at most num_draft_tokens - 1 tokens (see SpeculativeConfig), all of them ids of the model's vocabulary.
        """


class Drafter(Protocol):
    """Makes the drafting state of each request; its class is called with the SpeculativeConfig."""

    def open(self) -> Draft:
        """State of a new request without tokens."""
