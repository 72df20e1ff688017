"""The online softmax of one block of scores."""

import triton
import triton.language as tl


@triton.jit
def softmax_step(scores, highest, total):
    """One step of a softmax whose scores arrive block by block, in the log2 domain.

    scores [R, B] f32, -inf where a row does not see a key; highest [R] f32: the largest score so far, -inf before
    the first one; total [R] f32: the sum of 2^(score - highest) so far.

    Returns (weights [R, B], decay [R], highest [R], total [R]): what was summed before has to be multiplied by decay.
    A row that has seen nothing yet has weights 0 and no NaN.
    """
    new_highest = tl.maximum(highest, tl.max(scores, 1))
    origin = tl.where(new_highest == float("-inf"), 0.0, new_highest)
    weights = tl.exp2(scores - origin[:, None])
    decay = tl.exp2(highest - origin)
    return weights, decay, new_highest, total * decay + tl.sum(weights, 1)
