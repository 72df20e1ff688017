"""build_tree_kernel_efficient: known trees, random trees as drafts make them, sizes, index dtypes, errors."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.triton_spec.floating import load_op
from tests.triton_spec.tree.batch import MODES, build, expected_trees, grow
from triton_spec.tree.mask import TreeMaskMode, new_tree_mask

each_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
each_index = pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=["int32", "int64"])


@pytest.fixture
def op(form):
    return load_op(form, "triton_spec.tree.build", "build_tree_kernel_efficient")


@each_mode
def test_tree_by_hand(op, mode):
    trees = build(op, [[-1, 0, 1]], [[0, 1, 2]], [5], 2, 2, mode)
    assert trees.positions == [[5, 6, 6, 7]]
    assert trees.retrieve_index == [[0, 1, 2, 3]]
    assert trees.next_token == [[1, 3, -1, -1]]
    assert trees.next_sibling == [[-1, 2, -1, -1]]
    assert trees.rows == [["1000", "1100", "1010", "1101"]]


@each_mode
@each_index
def test_trace_of_eagle(op, mode, index):
    """Two requests of a real draft, topk 4, depth 4, 8 nodes."""
    parents = [
        [-1, 0, 1, 2, 3, 4, 8, 9, 10, 20, 24, 21, 28],
        [-1, 0, 1, 2, 3, 4, 5, 6, 7, 24, 28, 20, 21],
    ]
    selected = [[0, 1, 4, 8, 20, 24, 36], [0, 4, 5, 6, 7, 24, 36]]
    trees = build(op, parents, selected, [5, 10], 4, 4, mode, index)
    assert trees.positions == [[5, 6, 6, 7, 7, 8, 8, 9], [10, 11, 12, 12, 12, 12, 13, 14]]
    assert trees.next_token == [[1, 3, 4, 5, 6, 7, -1, -1], [1, 2, -1, 6, -1, -1, 7, -1]]
    assert trees.next_sibling == [[-1, 2, -1, -1, -1, -1, -1, -1], [-1, -1, 3, 4, 5, -1, -1, -1]]
    words = [[1, 3, 5, 11, 21, 43, 85, 171], [1, 3, 7, 11, 19, 35, 75, 203]]
    assert trees.rows == [[format(word, "08b")[::-1] for word in row] for row in words]
    assert trees == expected_trees([[-1, 0, 0, 1, 2, 3, 4, 5], [-1, 0, 1, 1, 1, 1, 3, 6]], [5, 10])


@each_mode
@pytest.mark.parametrize("depth", [1, 2, 3, 8])
def test_chain(op, mode, depth):
    parents = [-1, *range(depth - 1)] if depth > 1 else []
    trees = build(op, [parents] * 2, [list(range(depth))] * 2, [7, 12], 1, depth, mode)
    assert trees == expected_trees([list(range(-1, depth))] * 2, [7, 12])
    assert trees.rows[0] == ["1" * (node + 1) + "0" * (depth - node) for node in range(depth + 1)]


@each_mode
@pytest.mark.parametrize("topk", [1, 2, 5, 31])
def test_star_without_a_parent_list(op, mode, topk):
    """Depth 1: the parent list has no columns."""
    trees = build(op, [[], [], []], [list(range(topk))] * 3, [0, 4, 1], topk, 1, mode)
    assert trees == expected_trees([[-1] + [0] * topk] * 3, [0, 4, 1])


@each_mode
def test_root_alone(op, mode):
    trees = build(op, [[-1, 0, 1]] * 2, [[], []], [3, 0], 2, 2, mode)
    assert trees == expected_trees([[-1], [-1]], [3, 0])


@each_mode
@each_index
@pytest.mark.parametrize("nodes", [2, 7, 8, 9, 16, 17, 31, 32])
def test_sizes(op, mode, index, nodes):
    grown = [grow(random.Random(seed), 4, 3, nodes) for seed in range(3)]
    seq_lens = [9, 3, 21]
    trees = build(op, [g.parent_list for g in grown], [g.selected for g in grown], seq_lens, 4, 3, mode, index)
    assert trees == expected_trees([g.parents for g in grown], seq_lens)


@pytest.mark.parametrize("mode", MODES[:2], ids=lambda mode: mode.name)
def test_more_nodes_than_a_word_has_bits(op, mode):
    grown = [grow(random.Random(seed), 6, 4, 67) for seed in range(2)]
    trees = build(op, [g.parent_list for g in grown], [g.selected for g in grown], [2, 40], 6, 4, mode)
    assert trees == expected_trees([g.parents for g in grown], [2, 40])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_trees(op, data):
    topk, depth = data.draw(st.integers(1, 4), "topk"), data.draw(st.integers(1, 5), "depth")
    most = 1 + topk + (depth - 1) * topk * topk
    nodes = data.draw(st.integers(1, min(most, 20)), "nodes")
    seq_lens = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=4), "seq_lens")
    mode = data.draw(st.sampled_from(MODES), "mode")
    seed = data.draw(st.integers(0, 2**32), "seed")
    grown = [grow(random.Random(seed + request), topk, depth, nodes) for request in range(len(seq_lens))]
    trees = build(op, [g.parent_list for g in grown], [g.selected for g in grown], seq_lens, topk, depth, mode)
    assert trees == expected_trees([g.parents for g in grown], seq_lens)


@each_mode
def test_no_requests(op, mode):
    lengths = torch.empty(0, dtype=torch.int64)
    links = [torch.empty(0, 4, dtype=torch.int64) for _ in range(3)]
    mask = new_tree_mask(mode, lengths, 4)
    op(torch.empty(0, 5, dtype=torch.int64), torch.empty(0, 3, dtype=torch.int64), lengths, mask, lengths, *links,
       2, 3, 4, mode)  # fmt: skip
    assert mask.numel() == 0


def test_new_masks_are_what_the_caller_prefills():
    lengths = torch.tensor([2, 5])
    full, small = (new_tree_mask(mode, lengths, 3) for mode in (TreeMaskMode.FULL_MASK, TreeMaskMode.QLEN_ONLY))
    assert (full.numel(), small.numel()) == (3 * 7 + 2 * 9, 18)
    assert full.all()
    assert small.all()
    words = [new_tree_mask(TreeMaskMode.QLEN_ONLY_BITPACKING, lengths, nodes) for nodes in (8, 9, 17)]
    assert [word.dtype for word in words] == [torch.uint8, torch.uint16, torch.uint32]
    assert [word.tolist() for word in words] == [[0] * 16, [0] * 18, [0] * 34]


def arguments(**changes):
    fitting = {
        "parent_list": torch.zeros(2, 5, dtype=torch.int64),
        "selected_index": torch.zeros(2, 3, dtype=torch.int64),
        "verified_seq_len": torch.tensor([7, 11]),
        "tree_mask": torch.ones(32, dtype=torch.bool),
        "positions": torch.zeros(8, dtype=torch.int64),
        "retrieve_index": torch.zeros(2, 4, dtype=torch.int64),
        "retrieve_next_token": torch.zeros(2, 4, dtype=torch.int64),
        "retrieve_next_sibling": torch.zeros(2, 4, dtype=torch.int64),
        "topk": 2, "depth": 3, "draft_token_num": 4, "tree_mask_mode": 1,
    }  # fmt: skip
    return {**fitting, **changes}


def of_nodes(nodes, mode=1, dtype=torch.bool, elements=None):
    """Arguments for another number of nodes."""
    links = {f"retrieve_{name}": torch.zeros(2, nodes, dtype=torch.int64)
             for name in ("index", "next_token", "next_sibling")}  # fmt: skip
    mask = torch.zeros(2 * nodes * nodes if elements is None else elements, dtype=dtype)
    return {
        "selected_index": torch.zeros(2, max(nodes - 1, 0), dtype=torch.int64),
        "positions": torch.zeros(2 * nodes, dtype=torch.int64),
        "tree_mask": mask, "draft_token_num": nodes, "tree_mask_mode": mode, **links,
    }  # fmt: skip


ERRORS = {
    "topk": ({"topk": 0}, ValueError, "topk is 0"),
    "depth": ({"depth": 0}, ValueError, "depth is 0"),
    "no nodes": (of_nodes(0), ValueError, "draft_token_num is 0, expected 1 to 1024"),
    "too many nodes": (of_nodes(1025), ValueError, "draft_token_num is 1025, expected 1 to 1024"),
    "more than candidates": (
        of_nodes(12), ValueError, "draft_token_num is 12: topk 2 and depth 3 make 10 candidates, so at most 11 nodes"),
    "parent width": ({"parent_list": torch.zeros(2, 6, dtype=torch.int64)}, ValueError,
                     r"parent_list has shape \[2, 6\], expected \[2, 5\]"),
    "requests": ({"selected_index": torch.zeros(3, 3, dtype=torch.int64)}, ValueError, "selected_index has shape"),
    "float": ({"selected_index": torch.zeros(2, 3)}, TypeError, "selected_index has dtype torch.float32"),
    "lengths of no dimension": ({"verified_seq_len": torch.tensor(7)}, ValueError, r"verified_seq_len has shape \[\]"),
    "strided": ({"retrieve_index": torch.zeros(4, 2, dtype=torch.int64).t()}, ValueError, "retrieve_index has strides"),
    "positions": ({"positions": torch.zeros(7, dtype=torch.int64)}, ValueError, r"positions has shape \[7\]"),
    "mask size": ({"tree_mask": torch.ones(33, dtype=torch.bool)}, ValueError, "33 elements, expected 32"),
    "mask dtype": ({"tree_mask": torch.ones(32)}, TypeError, "tree_mask has dtype torch.float32"),
    "small full mask": ({"tree_mask": torch.ones(103, dtype=torch.bool), "tree_mask_mode": 0}, ValueError,
                        "103 elements, expected at least 104"),
    "negative length": ({"tree_mask_mode": 0, "verified_seq_len": torch.tensor([7, -1])}, ValueError,
                        "verified_seq_len has -1"),
    "word dtype": (of_nodes(9, 2, torch.uint8, 18), TypeError, "has dtype torch.uint8, expected torch.uint16"),
    "words": (of_nodes(4, 2, torch.uint8, 7), ValueError, "7 elements, expected 8"),
    "33 bits": ({**of_nodes(33, 2, torch.uint32, 66), "topk": 8, "depth": 1}, ValueError, "make 8 candidates"),
    "33 bits of enough": ({**of_nodes(33, 2, torch.uint32, 66), "topk": 32, "depth": 1}, ValueError,
                          "at most 32 nodes, not 33: use TreeMaskMode.QLEN_ONLY"),
    "mode": ({"tree_mask_mode": 3}, ValueError, "tree_mask_mode is 3, expected one of"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_arguments_that_do_not_fit(op, changes, error, message):
    with pytest.raises(error, match=message):
        op(**arguments(**changes))
