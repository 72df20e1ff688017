"""N-gram drafts: which continuations are proposed, and in which tree."""

import random

import pytest

from engine.config import SpeculativeConfig
from engine.draft.base import DraftTree
from engine.draft.ngram import MAX_PLACES, NgramDraft
from engine.draft.table import make_drafter
from engine.draft.trie import DraftTrie


def propose(tokens, sizes=(2, 4), nodes=3, depth=100):
    draft = NgramDraft(*sizes, nodes)
    draft.extend(tokens)
    return draft.propose(depth)


def paths(tree):
    """Every root-to-leaf path of a tree, as token lists."""
    chains = [[]]
    for token, parent in zip(tree.tokens, tree.parents, strict=True):
        chains.append([*chains[parent], token])
    return [chain for node, chain in enumerate(chains) if node not in tree.parents and chain]


@pytest.mark.parametrize(
    ("tokens", "sizes", "expected"),
    [
        ([21, 22, 23, 30, 31, 21, 22, 23], (2, 4), [[30, 31, 21]]),
        ([], (2, 2), []),
        ([7], (2, 2), []),
        ([1, 2], (2, 2), []),
        ([1, 2, 3, 4, 5], (1, 4), []),
        ([4, 4, 4, 4], (2, 2), [[4, 4]]),
        ([1, 2, 3, 4, 9, 3, 4, 8, 1, 2, 3, 4], (2, 4), [[9, 3, 4]]),
        ([1, 2, 3, 4, 9, 3, 4, 8, 1, 2, 3, 4], (2, 2), [[8, 1, 2]]),
        ([5, 6, 7, 5, 6, 8, 5, 6], (2, 2), [[8, 5, 6]]),
    ],
    ids=["repeat", "empty", "one token", "shorter than n", "no repeat", "never beyond the text", "longest n wins",
         "maximum n respected", "latest first"],
)  # fmt: skip
def test_drafts(tokens, sizes, expected):
    assert paths(propose(tokens, sizes)) == expected


def test_continuations_that_differ_become_branches():
    tokens = [1, 2, 3, 9, 1, 2, 5, 9, 1, 2, 3, 8, 1, 2]
    tree = propose(tokens, nodes=7, depth=2)
    assert sorted(paths(tree)) == [[3, 8], [3, 9], [5, 9]]
    assert tree.tokens == (3, 8, 5, 9, 9)  # the shared 3 is one node
    assert tree.parents == (0, 1, 0, 3, 1)


def test_shorter_suffixes_fill_the_tree():
    tokens = [1, 2, 3, 4, 5, 6, 7, 99, 3, 4, 5, 6, 8, 2, 3, 4, 5, 6]
    tree = propose(tokens, sizes=(2, 5), nodes=4, depth=2)
    assert paths(tree)[0] == [7, 99]  # the five latest tokens occurred once before
    assert [8, 2] in paths(tree)  # the four latest occurred once more


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
def test_depth_is_limited(depth):
    tree = propose([1, 2, 3, 4, 5, 6, 7, 1, 2], nodes=7, depth=depth)
    assert max(map(len, paths(tree)), default=0) == depth


def test_nodes_are_limited():
    assert len(propose([1, 2, 3, 4, 5, 6, 7, 1, 2], nodes=3).tokens) == 3


def test_tokens_in_pieces_give_the_drafts_of_the_whole():
    generator = random.Random(0)
    tokens = [generator.randrange(4) for _ in range(300)]
    draft = NgramDraft(2, 4, 7)
    for end in range(len(tokens)):
        assert draft.propose(5) == propose(tokens[:end], nodes=7, depth=5)
        draft.extend(tokens[end : end + 1])


def test_every_path_occurs_in_the_text_after_the_suffix():
    generator = random.Random(1)
    for _ in range(200):
        tokens = [generator.randrange(3) for _ in range(generator.randrange(40))]
        suffix = tokens[-2:]
        occurrences = [tokens[i + 2 :] for i in range(len(tokens) - 2) if tokens[i : i + 2] == suffix]
        tree = propose(tokens, nodes=7, depth=4)
        assert bool(tree.tokens) == bool(occurrences)
        for path in paths(tree):
            assert any(following[: len(path)] == path for following in occurrences)


def test_memory_is_bounded():
    draft = NgramDraft(2, 4, 7)
    draft.extend([4] * 1000)
    assert {len(places) for places in draft._places.values()} == {MAX_PLACES}
    assert len(draft._places) == 3


def test_no_drafter_drafts_nothing():
    draft = make_drafter(SpeculativeConfig("none")).open()
    draft.extend([1, 2, 1, 2])
    assert draft.propose(5) == DraftTree()


def test_a_tree_has_each_path_once():
    trie = DraftTrie(5)
    assert [trie.add(path) for path in ([1, 2], [1, 2], [1], [1, 3], [])] == [True, False, False, True, False]
    assert not trie.full
    assert trie.add([4, 5, 6])
    assert trie.full
    assert trie.tree() == DraftTree((1, 2, 3, 4, 5), (0, 1, 1, 0, 4))
