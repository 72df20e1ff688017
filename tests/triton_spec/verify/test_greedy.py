"""verify_tree_greedy: known walks, random trees against a walk over parents, malformed links, errors."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.triton_spec.floating import load_op

UNSEEN = -7  # fill of predicts
each_index = pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=["int32", "int64"])


@pytest.fixture
def op(form):
    return load_op(form, "triton_spec.verify.greedy", "verify_tree_greedy")


def verify(op, candidates, next_token, next_sibling, target, width, index=torch.int64, retrieve_index=None):
    """predicts, accept_index, accept_token_num as lists."""
    batch, nodes = len(candidates), len(candidates[0])
    predicts = torch.full((batch * nodes,), UNSEEN, dtype=torch.int32)
    accept_index = torch.full((batch, width), -1, dtype=torch.int32)
    accept_token_num = torch.empty(batch, dtype=torch.int32)
    if retrieve_index is None:
        retrieve_index = torch.arange(batch * nodes).view(batch, nodes).tolist()
    inputs = (candidates, retrieve_index, next_token, next_sibling, target)
    op(predicts, accept_index, accept_token_num, *(torch.tensor(rows, dtype=index) for rows in inputs))
    return predicts.tolist(), accept_index.tolist(), accept_token_num.tolist()


def walk(parents, tokens, target, width):
    """The nodes from the root: at each step the first child that the target predicts."""
    path = [0]
    while len(path) < width:
        children = [node for node in range(1, len(parents)) if parents[node] == path[-1]]
        matching = [node for node in children if tokens[node] == target[path[-1]]]
        if not matching:
            break
        path.append(matching[0])
    return path


def links(parents):
    """next_token and next_sibling, children ascending."""
    nodes = range(len(parents))
    first = [min((k for k in nodes[1:] if parents[k] == node), default=-1) for node in nodes]
    later = [[k for k in nodes[node + 1 :] if node and parents[k] == parents[node]] for node in nodes]
    sibling = [min(siblings, default=-1) for siblings in later]
    return first, sibling


def expected(parents, candidates, target, width):
    """What the op writes for these trees."""
    nodes = len(parents[0])
    predicts, accept_index, counts = [UNSEEN] * (nodes * len(parents)), [], []
    for request, rows in enumerate(zip(parents, candidates, target, strict=True)):
        path = walk(*rows, width)
        for node in path:
            predicts[request * nodes + node] = target[request][node]
        accept_index.append([request * nodes + node for node in path] + [-1] * (width - len(path)))
        counts.append(len(path) - 1)
    return predicts, accept_index, counts


@each_index
def test_chain_by_hand(op, index):
    chain = [[1, 2, 3, -1]]
    result = verify(op, [[10, 3, 4, 5]], chain, [[-1] * 4], [[3, 4, 9, 9]], 4, index)
    assert result == ([3, 4, 9, UNSEEN], [[0, 1, 2, -1]], [2])


@each_index
def test_known_trees(op, index):
    """The second request links its node 4 before its node 1."""
    target = [[3, 18, 18, 4, 5, 18], [11, 18, 18, 18, 12, 18]]
    predicts, accept_index, counts = verify(
        op, [[0, 1, 2, 3, 4, 5], [7, 8, 9, 10, 11, 12]], [[1, 2, -1, 4, 5, -1], [4, 2, 3, -1, 5, -1]],
        [[-1, 3, -1, -1, -1, -1], [-1, -1, -1, -1, 1, -1]], target, 4, index)  # fmt: skip
    assert predicts == [3, UNSEEN, UNSEEN, 4, 5, 18, 11, UNSEEN, UNSEEN, UNSEEN, 12, 18]
    assert (accept_index, counts) == ([[0, 3, 4, 5], [6, 10, 11, -1]], [3, 2])


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("matches", range(4))
def test_as_many_as_match(op, matches, batch):
    generator = random.Random(matches)
    candidates = [[generator.randrange(100) for _ in range(4)] for _ in range(batch)]
    target = [[row[k + 1] if k < matches else 100 for k in range(3)] + [55] for row in candidates]
    predicts, accept_index, counts = verify(op, candidates, [[1, 2, 3, -1]] * batch, [[-1] * 4] * batch, target, 4)
    assert counts == [matches] * batch
    for request in range(batch):
        accepted = range(4 * request, 4 * request + matches + 1)
        assert accept_index[request] == [*accepted, *[-1] * (3 - matches)]
        assert [predicts[place] for place in accepted] == target[request][: matches + 1]


def test_first_of_equal_siblings_wins(op):
    first, sibling = links([-1, 0, 0, 0])
    result = verify(op, [[9, 5, 6, 6]], [first], [sibling], [[6, 1, 2, 3]], 3)
    assert result == ([6, UNSEEN, 2, UNSEEN], [[0, 2, -1]], [1])


@pytest.mark.parametrize("width", [1, 2, 3, 4, 6])
def test_the_width_bounds_the_walk(op, width):
    first, sibling = links([-1, 0, 1, 2])
    kept = min(width, 4)
    predicts, accept_index, counts = verify(op, [[0, 1, 2, 3]], [first], [sibling], [[1, 2, 3, 4]], width)
    assert predicts == [1, 2, 3, 4][:kept] + [UNSEEN] * (4 - kept)
    assert accept_index == [[0, 1, 2, 3, -1, -1][:width]]
    assert counts == [kept - 1]


def test_random_trees_of_few_tokens(op):
    """topk 4, depth 3: rejections and hops between siblings occur."""
    generator = random.Random(3)
    parents = [[-1, *(generator.randrange(max(0, node - 4), node) for node in range(1, 16))] for _ in range(4)]
    candidates, target = ([[generator.randrange(3) for _ in range(16)] for _ in range(4)] for _ in range(2))
    first, sibling = zip(*map(links, parents), strict=True)
    result = verify(op, candidates, list(first), list(sibling), target, 4)
    assert result == expected(parents, candidates, target, 4)
    assert max(result[2]) >= 1
    assert any(place % 16 not in (-1, 0, *row) for row, path in zip(first, result[1], strict=True) for place in path)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_trees(op, data):
    nodes, batch = data.draw(st.integers(1, 12), "nodes"), data.draw(st.integers(1, 4), "batch")
    width = data.draw(st.integers(1, nodes), "width")
    tree = st.tuples(*(st.integers(0, node - 1) for node in range(1, nodes)))
    tokens = st.lists(st.integers(0, 2), min_size=nodes, max_size=nodes)
    parents = [[-1, *data.draw(tree)] for _ in range(batch)]
    candidates, target = ([data.draw(tokens) for _ in range(batch)] for _ in range(2))
    first, sibling = zip(*map(links, parents), strict=True)
    index = data.draw(st.sampled_from([torch.int32, torch.int64]), "index")
    result = verify(op, candidates, list(first), list(sibling), target, width, index)
    assert result == expected(parents, candidates, target, width)
    for request in range(batch):  # a request is the same alone
        alone = verify(op, candidates[request : request + 1], first[request : request + 1],
                       sibling[request : request + 1], target[request : request + 1], width)  # fmt: skip
        assert alone[0] == result[0][request * nodes : (request + 1) * nodes]
        assert alone[2] == result[2][request : request + 1]


MALFORMED = {
    "siblings in a loop": ([1, -1, -1], [-1, 2, 1], 1),
    "sibling of itself": ([1, -1, -1], [-1, 1, -1], 1),
    "child beyond the request": ([3, -1, -1], [-1, -1, -1], 1),
    "sibling beyond the request": ([1, -1, -1], [-1, 2**30, -1], 1),
    "negative child": ([-5, -1, -1], [-1, -1, -1], 1),
    "back to the root": ([1, 0, -1], [-1, -1, -1], 2),
    "child of itself": ([1, 1, -1], [-1, -1, -1], 3),
}


@pytest.mark.parametrize(("first", "sibling", "kept"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_links_end_the_walk(op, first, sibling, kept):
    """The requests before and after are as if alone."""
    sound, tokens = links([-1, 0, 1]), [7, 5, 6] if kept == 1 else [4, 4, 4]
    target = [[4, 4, 4]] * 3
    nexts, siblings = [sound[0], first, sound[0]], [sound[1], sibling, sound[1]]
    predicts, accept_index, counts = verify(op, [[0, 4, 9], tokens, [0, 4, 4]], nexts, siblings, target, 3)
    assert counts == [1, kept - 1, 2]
    assert [accept_index[0], accept_index[2]] == [[0, 1, -1], [6, 7, 8]]
    assert predicts[:3] + predicts[6:] == [4, 4, UNSEEN, 4, 4, 4]


def test_numbers_outside_of_predicts_are_not_written(op):
    places, target = [[0, 40], [-3, 3]], [[2, 8], [4, 9]]
    result = verify(op, [[1, 2], [3, 4]], [[1, -1]] * 2, [[-1, -1]] * 2, target, 2, retrieve_index=places)
    assert result == ([2, UNSEEN, UNSEEN, 9], places, [1, 1])


def test_no_requests(op):
    flat, rows = torch.empty(0, dtype=torch.int32), torch.empty(0, 4, dtype=torch.int64)
    op(flat, torch.empty(0, 4, dtype=torch.int32), flat, rows, rows, rows, rows, rows)


ERRORS = {
    "predicts": ({"predicts": torch.zeros(9, dtype=torch.int32)}, ValueError, r"predicts has shape \[9\], expected"),
    "no column": ({"accept_index": torch.zeros(2, 0, dtype=torch.int32)}, ValueError, "accept_index 0, expected"),
    "links": ({"retrieve_next_token": torch.zeros(2, 5, dtype=torch.int64)}, ValueError, "next_token has shape"),
    "float": ({"target_predict": torch.zeros(2, 4)}, TypeError, "target_predict has dtype torch.float32"),
    "strided": ({"candidates": torch.zeros(2, 8, dtype=torch.int64)[:, ::2]}, ValueError, "candidates has strides"),
    "counts": ({"accept_token_num": torch.zeros(3, dtype=torch.int32)}, ValueError, "accept_token_num has shape"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_arguments_that_do_not_fit(op, changes, error, message):
    rows = ("candidates", "retrieve_index", "retrieve_next_token", "retrieve_next_sibling", "target_predict")
    fitting = {name: torch.zeros(2, 4, dtype=torch.int64) for name in rows}
    fitting |= {"predicts": torch.zeros(8, dtype=torch.int32), "accept_index": torch.zeros(2, 3, dtype=torch.int32),
                "accept_token_num": torch.zeros(2, dtype=torch.int32)}  # fmt: skip
    with pytest.raises(error, match=message):
        op(**{**fitting, **changes})
