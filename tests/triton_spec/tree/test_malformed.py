"""Trees that no sound draft makes: the walk ends, stays in its request, and stops at the gap; in every mask mode."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.triton_spec.floating import load_op
from tests.triton_spec.tree.batch import MODES, Trees, build
from triton_spec.tree.mask import TreeMaskMode
from triton_spec.tree.reference import build_tree_kernel_efficient as reference

each_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
NONE = [-1] * 4

# Depth 3, topk 2, not sorted: entries 4, 2, 0 hang below survivors 2, 1 and the root.
SELECTED = [[4, 2, 0], [2, 4, 0]]
SOUND = ([7, 10, 9, 8], [3, -1, 1, 2], NONE, ["1000", "1111", "1011", "1001"])  # root -> 3 -> 2 -> 1
SOUND_TOO = ([11, 13, 14, 12], [3, 2, -1, 1], NONE, ["1000", "1101", "1111", "1001"])  # root -> 3 -> 1 -> 2
CASES = {
    "deepest legal chain": ([[-1, 0, 2, 0, 0], [-1, 0, 2, 0, 0]], SELECTED, SOUND, SOUND_TOO),
    "no direct parent": (
        [[-1, 0, 99, 0, 0], [-1, 0, 2, 0, 0]], SELECTED,
        ([7, 8, 9, 8], [3, -1, -1, 2], NONE, ["1000", "1100", "1011", "1001"]), SOUND_TOO),
    "no direct parent in the last request": (
        [[-1, 0, 2, 0, 0], [-1, 0, 99, 0, 0]], SELECTED, SOUND,
        ([11, 13, 12, 12], [3, -1, -1, 1], NONE, ["1000", "1101", "1010", "1001"])),
    "gap further up": (
        [[-1, 99, 2, 0, 0], [-1, 0, 2, 0, 0]], SELECTED,
        ([7, 9, 8, 8], [3, -1, 1, -1], NONE, ["1000", "1110", "1010", "1001"]), SOUND_TOO),
    "loop": (
        [[-1, 4, 2, 0, 0], [-1, 0, 2, 0, 0]], SELECTED,
        ([7, 10, 10, 8], [3, 2, 1, -1], NONE, ["1000", "1110", "1110", "1001"]), SOUND_TOO),
    "node below itself": (
        [[-1, 0, 4, 0, 0], [-1, 0, 2, 0, 0]], SELECTED,
        ([7, 10, 9, 8], [3, 1, -1, 2], NONE, ["1000", "1100", "1011", "1001"]), SOUND_TOO),
    "parent only in the other request": (
        [[-1, 0, 2, 0, 0], [-1, 0, 2, 4, 0]], [[4, 2, 0], [6, 4, 0]], SOUND,
        ([11, 13, 12, 12], [3, -1, 1, -1], NONE, ["1000", "1110", "1010", "1001"])),
    "parent is the mark of the root's slot": (  # -1 in both lists is no match
        [[-1, -1, 2, 0, 0], [-1, 0, 2, 0, 0]], [[-1, 2, 0], [2, 4, 0]],
        ([7, 8, 8, 8], [3, -1, -1, -1], NONE, ["1000", "1100", "1010", "1001"]), SOUND_TOO),
    "entry beyond the parent list": (
        [[-1, 0, 2, 0, 0], [-1, 0, 2, 0, 0]], [[10, 2, 0], [2, 4, 0]],
        ([7, 8, 9, 8], [3, -1, -1, 2], NONE, ["1000", "1100", "1011", "1001"]), SOUND_TOO),
}  # fmt: skip


@pytest.fixture
def op(form):
    return load_op(form, "triton_spec.tree.build", "build_tree_kernel_efficient")


@each_mode
@pytest.mark.parametrize(("parents", "selected", "first", "second"), CASES.values(), ids=CASES)
def test_walks_stop_at_the_gap(op, mode, parents, selected, first, second):
    trees = build(op, parents, selected, [7, 11], 2, 3, mode)
    positions, next_token, next_sibling, rows = (list(pair) for pair in zip(first, second, strict=True))
    assert trees == Trees(positions, [[0, 1, 2, 3], [4, 5, 6, 7]], next_token, next_sibling, rows)


@each_mode
def test_child_chosen_without_its_parent(op, mode):
    """A NaN score lost entry 0, so its children 2 and 3 hang in the air; the other request is as if alone."""
    trees = build(op, [[-1, 0, 1]] * 2, [[1, 2, 3], [0, 1, 2]], [7, 5], 2, 2, mode)
    assert trees.next_token[0] == [1, -1, -1, -1]
    assert trees.next_sibling[0] == NONE
    alone = build(op, [[-1, 0, 1]], [[0, 1, 2]], [5], 2, 2, mode)
    assert (trees.positions[1], trees.next_token[1], trees.next_sibling[1], trees.rows[1]) == (
        alone.positions[0], alone.next_token[0], alone.next_sibling[0], alone.rows[0])  # fmt: skip


@each_mode
def test_depth_1_has_no_survivors(op, mode):
    trees = build(op, [[], []], [[0, 5], [1, 0]], [3, 4], 2, 1, mode)
    assert trees.next_token == [[1, -1, -1], [1, -1, -1]]
    assert trees.next_sibling == [[-1, -1, -1], [-1, 2, -1]]
    assert trees.positions == [[3, 4, 4], [4, 5, 5]]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_numbers_end_and_stay_in_their_request(op, data):
    """A request is the same alone and in company, and as the reference says."""
    topk, depth = data.draw(st.integers(1, 3), "topk"), data.draw(st.integers(1, 4), "depth")
    width = topk * (depth - 1) + 1 if depth > 1 else 0
    nodes = data.draw(st.integers(2, min(9, 1 + topk + (depth - 1) * topk * topk)), "nodes")
    wild = st.integers(-3, 14) | st.sampled_from([2**31 - 1, -(2**31)])
    batch = data.draw(st.integers(1, 3), "batch")
    parents = [data.draw(st.lists(wild, min_size=width, max_size=width)) for _ in range(batch)]
    selected = [data.draw(st.lists(wild, min_size=nodes - 1, max_size=nodes - 1)) for _ in range(batch)]
    mode = data.draw(st.sampled_from(list(TreeMaskMode)), "mode")
    index = data.draw(st.sampled_from([torch.int32, torch.int64]), "index")
    seq_lens = list(range(4, 4 + batch))
    trees = build(op, parents, selected, seq_lens, topk, depth, mode, index)
    assert trees == build(reference, parents, selected, seq_lens, topk, depth, mode, index)
    for request in range(batch):
        alone = build(op, [parents[request]], [selected[request]], [seq_lens[request]], topk, depth, mode, index)
        for field in ("positions", "next_token", "next_sibling", "rows"):
            assert getattr(trees, field)[request] == getattr(alone, field)[0]
