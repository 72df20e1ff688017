"""Where each position of each request lies in the KV pool."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from dispatch.plan import Plan
from engine.kv.slots import SlotAllocator


@dataclass
class Row:
    """A request's row of the table: positions [0, committed) hold final KV, position i < len(slots) has slots[i]."""

    index: int
    committed: int = 0
    slots: list[int] = field(default_factory=list)


class RequestTable:
    """The slot of every position: `req_to_token` int32 [requests, width].

    `width` is the longest request plus the nodes of one draft tree, which is written past its committed end.
    """

    def __init__(self, requests: int, width: int, slots: SlotAllocator, plan: Plan) -> None:
        self.req_to_token = torch.zeros((requests, width), dtype=torch.int32)
        self._slots = slots
        self._plan = plan
        self._free_rows = list(range(requests - 1, -1, -1))

    def open(self) -> Row:
        """A row without slots. Raises RuntimeError if every row is taken."""
        if not self._free_rows:
            raise RuntimeError(f"{len(self.req_to_token)} requests are running already; finish or close one first")
        return Row(self._free_rows.pop())

    def reserve(self, rows: Sequence[Row], count: int) -> torch.Tensor:
        """The slots of the `count` positions after each row's committed ones, int64 [len(rows) * count].

        Slots that a row reserved before and did not commit are used again. Raises RuntimeError, changing nothing, if
        the table is too narrow or the pool has too few free slots.
        """
        width = self.req_to_token.shape[1]
        ends = [row.committed + count for row in rows]
        if max(ends) > width:
            raise RuntimeError(f"a request needs {max(ends)} positions and the table has {width}")
        indices = self.indices(rows)
        held = [len(row.slots) for row in rows]
        missing = [max(end - length, 0) for end, length in zip(ends, held, strict=True)]
        if any(missing):
            new = self._slots.allocate(sum(missing))
            start = 0
            for row, count_of_row in zip(rows, missing, strict=True):
                row.slots += new[start : start + count_of_row]
                start += count_of_row
            reserved = torch.tensor([len(row.slots) for row in rows])
            self._plan.assign_req_to_token_pool(
                indices, self.req_to_token, torch.tensor(held), reserved, torch.tensor(new)
            )
        window = torch.empty(len(rows) * count, dtype=torch.int64)
        starts = torch.tensor([row.committed for row in rows])
        self._plan.assign_extend_cache_locs(indices, self.req_to_token, starts, starts + count, window)
        return window

    def indices(self, rows: Sequence[Row]) -> torch.Tensor:
        """The rows' places in the table, int64 [len(rows)]."""
        return torch.tensor([row.index for row in rows])

    def close(self, row: Row) -> None:
        """Give back the row and every slot it reserved.

        No tensor is touched: streams that are open when the interpreter exits close during its shutdown, when PyTorch
        aborts the process over views.
        """
        self._slots.release(row.slots)
        self._free_rows.append(row.index)
        row.committed, row.slots = 0, []
