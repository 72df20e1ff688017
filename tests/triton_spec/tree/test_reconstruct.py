"""reconstruct_indices_from_tree_mask: known masks, random trees, arbitrary masks, errors."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.triton_spec.floating import load_op
from tests.triton_spec.tree.batch import Trees, expected_trees


@pytest.fixture
def op(form):
    return load_op(form, "triton_spec.tree.reconstruct", "reconstruct_indices_from_tree_mask")


def reconstruct(op, rows, seq_lens, index=torch.int64):
    """Call the op; no output is prefilled."""
    batch, nodes = len(rows), len(rows[0])
    mask = torch.tensor([[int(cell) for cell in row] for block in rows for row in block], dtype=torch.bool).flatten()
    positions = torch.empty(batch * nodes, dtype=index)
    links = [torch.empty(batch, nodes, dtype=index) for _ in range(3)]
    op(mask, torch.tensor(seq_lens, dtype=index), positions, *links, batch, nodes)
    return Trees(positions.view(batch, nodes).tolist(), *(link.tolist() for link in links), rows)


@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=["int32", "int64"])
def test_masks_by_hand(op, index):
    rows = [["1000", "1100", "1010", "1011"], ["1000", "1100", "1110", "1111"]]
    trees = reconstruct(op, rows, [12, 5], index)
    assert trees.positions == [[12, 13, 13, 14], [5, 6, 7, 8]]
    assert trees.retrieve_index == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert trees.next_token == [[1, -1, 3, -1], [1, 2, 3, -1]]
    assert trees.next_sibling == [[-1, 2, -1, -1], [-1, -1, -1, -1]]


@pytest.mark.parametrize("nodes", [1, 2, 3, 7, 8, 9, 16, 33, 65])
def test_sizes(op, nodes):
    generator = random.Random(nodes)
    parents = [[-1, *(generator.randrange(node) for node in range(1, nodes))] for _ in range(3)]
    expected = expected_trees(parents, [9, 0, 4])
    assert reconstruct(op, expected.rows, [9, 0, 4]) == expected


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_trees(op, data):
    nodes, batch = data.draw(st.integers(1, 13), "nodes"), data.draw(st.integers(1, 4), "batch")
    tree = st.tuples(*(st.integers(0, node - 1) for node in range(1, nodes)))
    parents = [[-1, *data.draw(tree)] for _ in range(batch)]
    seq_lens = data.draw(st.lists(st.integers(0, 2**31 - 20), min_size=batch, max_size=batch), "seq_lens")
    expected = expected_trees(parents, seq_lens)
    assert reconstruct(op, expected.rows, seq_lens) == expected


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_mask(op, data):
    """Cells above the diagonal do not matter, the diagonal neither; a node that sees none below it has no parent."""
    nodes, batch = data.draw(st.integers(1, 6), "nodes"), data.draw(st.integers(1, 3), "batch")
    row = st.lists(st.sampled_from("01"), min_size=nodes, max_size=nodes).map("".join)
    rows = [data.draw(st.lists(row, min_size=nodes, max_size=nodes)) for _ in range(batch)]
    trees = reconstruct(op, rows, [10] * batch)
    for request in range(batch):
        parent = [rows[request][node].rfind("1", 0, node) for node in range(nodes)]
        assert trees.positions[request] == [10 + rows[request][node].count("1", 0, node) for node in range(nodes)]
        assert trees.next_token[request] == [parent.index(node) if node in parent else -1 for node in range(nodes)]
        later = [[k for k in range(node + 1, nodes) if parent[k] == parent[node] != -1] for node in range(nodes)]
        assert trees.next_sibling[request] == [nodes_[0] if nodes_ else -1 for nodes_ in later]


def test_no_requests(op):
    none, links = torch.empty(0, dtype=torch.int64), [torch.empty(0, 4, dtype=torch.int64) for _ in range(3)]
    op(torch.empty(0, dtype=torch.bool), none, none, *links, 0, 4)


ERRORS = {
    "mask size": ({"tree_mask": torch.ones(31, dtype=torch.bool)}, ValueError, "31 elements, expected 32: 2 requests"),
    "mask dtype": ({"tree_mask": torch.ones(32, dtype=torch.uint8)}, TypeError, "tree_mask has dtype torch.uint8"),
    "mask strides": ({"tree_mask": torch.ones(64, dtype=torch.bool)[::2]}, ValueError, "tree_mask has strides"),
    "requests": ({"verified_seq_len": torch.zeros(3, dtype=torch.int64)}, ValueError, "verified_seq_len has shape"),
    "links": ({"retrieve_next_token": torch.zeros(2, 5, dtype=torch.int64)}, ValueError, "retrieve_next_token has sh"),
    "positions": ({"positions": torch.zeros(8)}, TypeError, "positions has dtype torch.float32"),
    "nodes": ({"draft_token_num": 1025}, ValueError, "draft_token_num is 1025"),
}


@pytest.mark.parametrize(("changes", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_arguments_that_do_not_fit(op, changes, error, message):
    links = {f"retrieve_{name}": torch.zeros(2, 4, dtype=torch.int64)
             for name in ("index", "next_token", "next_sibling")}  # fmt: skip
    fitting = {"tree_mask": torch.ones(32, dtype=torch.bool), "verified_seq_len": torch.tensor([7, 11]),
               "positions": torch.zeros(8, dtype=torch.int64), "batch_size": 2, "draft_token_num": 4,
               **links}  # fmt: skip
    with pytest.raises(error, match=message):
        op(**{**fitting, **changes})
