"""Loads of a two-dimensional tile whose edge may lie outside the tensor."""

import triton
import triton.language as tl


@triton.jit
def load_tile(pointers, rows_inside, columns_inside, EVEN_ROWS: tl.constexpr, EVEN_COLUMNS: tl.constexpr):
    """Load ``pointers`` [R, C]; lanes outside ``rows_inside`` [R] or ``columns_inside`` [C] are not touched and read 0.

    ``EVEN_*`` says that a dimension lies inside altogether: no mask is made for it.
    """
    if EVEN_ROWS and EVEN_COLUMNS:
        tile = tl.load(pointers)
    elif EVEN_COLUMNS:
        tile = tl.load(pointers, mask=rows_inside[:, None], other=0.0)
    elif EVEN_ROWS:
        tile = tl.load(pointers, mask=columns_inside[None, :], other=0.0)
    else:
        tile = tl.load(pointers, mask=rows_inside[:, None] & columns_inside[None, :], other=0.0)
    return tile
