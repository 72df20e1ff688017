"""N-gram drafts: what followed the latest tokens where they occurred before in the same request."""

from collections.abc import Sequence

from engine.config import SpeculativeConfig
from engine.draft.base import DraftTree
from engine.draft.trie import DraftTrie

MAX_BRANCHES = 4  # different continuations in one tree
MAX_PLACES = 8  # latest occurrences that are kept of one n-gram


class NgramDrafter:
    """Makes the token index of each request."""

    def __init__(self, config: SpeculativeConfig) -> None:
        self._config = config

    def open(self) -> "NgramDraft":
        """An empty index."""
        return NgramDraft(self._config.ngram_min, self._config.ngram_max, self._config.num_draft_tokens - 1)


class NgramDraft:
    """The tokens of one request, indexed by the n-grams of `min_size` to `max_size` tokens that precede each place.

    A token costs max_size - min_size + 1 dictionary entries at most; an entry holds MAX_PLACES numbers at most.
    """

    def __init__(self, min_size: int, max_size: int, max_nodes: int) -> None:
        self._sizes = range(min_size, max_size + 1)
        self._max_nodes = max_nodes
        self._tokens: list[int] = []
        self._places: dict[tuple[int, ...], list[int]] = {}  # n-gram -> indices of the tokens that followed it

    def extend(self, token_ids: Sequence[int]) -> None:
        """Append tokens. An n-gram is indexed once a token follows it, so that the suffix never finds itself."""
        for token in token_ids:
            place = len(self._tokens)
            for size in self._sizes:
                if size <= place:
                    places = self._places.setdefault(tuple(self._tokens[place - size :]), [])
                    places.append(place)
                    del places[:-MAX_PLACES]
            self._tokens.append(token)

    def propose(self, max_depth: int) -> DraftTree:
        """Up to MAX_BRANCHES continuations of earlier occurrences, of the longest suffixes and the latest ones first.

        A continuation ends where the text ends.
        """
        trie, branches = DraftTrie(self._max_nodes), 0
        for size in reversed(self._sizes):
            if size > len(self._tokens):
                continue
            for place in reversed(self._places.get(tuple(self._tokens[-size:]), ())):
                branches += trie.add(self._tokens[place : place + max_depth])
                if trie.full or branches == MAX_BRANCHES:
                    return trie.tree()
        return trie.tree()
