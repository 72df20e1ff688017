"""The stages of one round, on trees made by hand."""

import pytest
import torch

from engine.accept import accept
from engine.draft.base import DraftTree
from engine.errors import ModelError
from engine.kv.pool import KVPool
from engine.tree import build_tree
from engine.verify import verify_greedy
from tests.engine.decoding import reference_plan

#      root -> 1 -> 3 -> 4      two requests; the second tree is smaller and is filled up
#           -> 2                root -> 1
FULL = DraftTree((11, 12, 13, 14), (0, 0, 1, 3))
SMALL = DraftTree((21,), (0,))


@pytest.fixture
def plan():
    return reference_plan()


@pytest.fixture
def tree(plan):
    return build_tree(plan, [10, 20], [FULL, SMALL], torch.tensor([7, 3]), 5)


def logits_for(*targets, vocab=40):
    logits = torch.zeros(len(targets), vocab)
    logits[torch.arange(len(targets)), torch.tensor(targets)] = 1.0
    return logits


def test_tensors_of_a_tree(tree):
    assert tree.candidates.tolist() == [[10, 11, 12, 13, 14], [20, 21, -1, -1, -1]]
    assert tree.token_ids.tolist() == [10, 11, 12, 13, 14, 20, 21, 0, 0, 0]
    assert tree.positions.tolist() == [7, 8, 8, 9, 10, 3, 4, 4, 4, 4]
    assert tree.mask.view(2, 5, 5).int().tolist() == [
        [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 1, 0, 1, 0], [1, 1, 0, 1, 1]],
        [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [1, 0, 0, 0, 1]],
    ]
    assert tree.retrieve_index.tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert tree.next_token.tolist() == [[1, 3, -1, 4, -1], [1, -1, -1, -1, -1]]
    assert tree.next_sibling.tolist() == [[-1, 2, -1, -1, -1], [-1, 2, 3, 4, -1]]


def test_a_root_alone_needs_no_mask(plan):
    tree = build_tree(plan, [10], [DraftTree()], torch.tensor([7]), 1)
    assert tree.mask is None
    assert (tree.positions.tolist(), tree.token_ids.tolist()) == ([7], [10])


def test_the_walk_ends_where_the_model_disagrees(plan, tree):
    logits = logits_for(11, 13, 0, 30, 0, 22, 0, 0, 0, 0)
    verified = verify_greedy(plan, tree, logits)
    assert verified.accept_lens.tolist() == [3, 1]
    assert verified.accept_index.tolist() == [[0, 1, 3, -1, -1], [5, -1, -1, -1, -1]]


def test_filled_up_nodes_match_no_token(plan, tree):
    verified = verify_greedy(plan, tree, logits_for(12, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    assert verified.accept_index.tolist() == [[0, 2, -1, -1, -1], [5, -1, -1, -1, -1]]


def test_nan_logits_of_an_accepted_node_are_reported(plan, tree):
    logits = logits_for(11, 13, 0, 30, 0, 22, 0, 0, 0, 0)
    logits[2, 5] = float("nan")  # a rejected branch: plain decoding never sees it
    verify_greedy(plan, tree, logits)
    logits[3, 5] = float("nan")
    with pytest.raises(ModelError, match="NaN logits"):
        verify_greedy(plan, tree, logits)


@pytest.mark.parametrize(
    ("targets", "runs", "kept"),
    [
        ((11, 13, 0, 14, 31, 21, 32, 0, 0, 0), [[11, 13, 14, 31], [21, 32]], [[0, 1, 3, 4], [5, 6]]),
        ((12, 0, 33, 0, 0, 34, 0, 0, 0, 0), [[12, 33], [34]], [[0, 2], [5]]),
        ((11, 35, 0, 0, 0, 21, 36, 0, 0, 0), [[11, 35], [21, 36]], [[0, 1], [5, 6]]),
        ((30, 0, 0, 0, 0, 30, 0, 0, 0, 0), [[30], [30]], [[0], [5]]),
    ],
    ids=["deep path", "second child", "already in front", "nothing accepted"],
)
def test_accepted_tokens_and_their_kv_come_to_the_front(plan, tree, targets, runs, kept):
    pool = KVPool(slots=30, layers=2, kv_heads=1, head_dim=2, dtype=torch.float32)
    for number, buffer in enumerate((*pool.keys, *pool.values)):
        buffer[:] = torch.arange(30.0)[:, None, None] + 100 * number
    window = torch.tensor([20, 3, 17, 8, 5, 29, 11, 2, 14, 1])
    before = pool.keys[0].clone()
    accepted = accept(plan, verify_greedy(plan, tree, logits_for(*targets)), window, pool)
    assert accepted.runs == runs
    assert accepted.roots == [run[-1] for run in runs]
    for number, buffer in enumerate((*pool.keys, *pool.values)):
        for request, nodes in enumerate(kept):
            front = window[request * 5 : request * 5 + len(nodes)]
            assert buffer[front, 0, 0].tolist() == (window[nodes] + 100.0 * number).tolist()
    outside = [slot for slot in range(30) if slot not in window]
    assert torch.equal(pool.keys[0][outside], before[outside])
