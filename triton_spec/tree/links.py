"""First-child and next-sibling links of a tree whose parents are known."""

import triton
import triton.language as tl


@triton.jit
def insert_child(next_token, next_sibling, lanes, node, parent):
    """Put ``node`` in front of the children of ``parent``; a parent of -1 leaves it unlinked.

    next_token and next_sibling int32 [lanes] hold the links of all nodes. Called for descending nodes, the chain of
    children ascends.
    """
    has_parent = lanes == parent
    first = tl.max(tl.where(has_parent, next_token, -1), 0)
    next_token = tl.where(has_parent, node, next_token)
    linked = tl.where(parent >= 0, node, -1)
    next_sibling = tl.where(lanes == linked, first, next_sibling)
    return next_token, next_sibling
