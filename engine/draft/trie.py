"""Merge token sequences into one draft tree."""

from collections.abc import Sequence

from engine.draft.base import DraftTree


class DraftTrie:
    """A draft tree that grows by whole continuations, sharing their common beginnings, up to `max_nodes` drafts."""

    def __init__(self, max_nodes: int) -> None:
        self._max_nodes = max_nodes
        self._nodes: dict[tuple[int, int], int] = {}  # (parent node, token) -> node

    @property
    def full(self) -> bool:
        """No further node fits."""
        return len(self._nodes) >= self._max_nodes

    def add(self, continuation: Sequence[int]) -> bool:
        """Add the tokens as a path from the root, as far as nodes fit; True if that made a node."""
        before, node = len(self._nodes), 0
        for token in continuation:
            child = self._nodes.get((node, token))
            if child is None:
                if self.full:
                    break
                child = self._nodes[node, token] = len(self._nodes) + 1
            node = child
        return len(self._nodes) > before

    def tree(self) -> DraftTree:
        """The tree so far, nodes in order of insertion."""
        return DraftTree(
            tokens=tuple(token for _, token in self._nodes), parents=tuple(parent for parent, _ in self._nodes)
        )
