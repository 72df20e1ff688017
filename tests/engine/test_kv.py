"""Slots and the request table: nothing is lost, nothing is handed out twice."""

import random
from types import SimpleNamespace

import pytest
import torch

from engine.kv.pool import KVPool
from engine.kv.slots import SlotAllocator
from engine.kv.table import RequestTable
from tests.engine.decoding import reference_plan


def test_slots_are_handed_out_once():
    slots = SlotAllocator(6)
    first, second = slots.allocate(2), slots.allocate(4)
    assert sorted(first + second) == list(range(6))
    assert slots.free_count == 0
    slots.release(second)
    assert slots.free_count == 4
    assert slots.allocate(4) == second


def test_too_many_slots_take_none():
    slots = SlotAllocator(3)
    slots.allocate(1)
    with pytest.raises(RuntimeError, match="3 KV slots are needed and 2 of 3 are free"):
        slots.allocate(3)
    assert slots.free_count == 2


@pytest.mark.parametrize("wrong", [[1, 1], [2], [0, 7], [-1]], ids=["twice", "not held", "beyond", "negative"])
def test_slots_that_are_not_held_are_refused(wrong):
    slots = SlotAllocator(3)
    held = slots.allocate(2)
    with pytest.raises(RuntimeError, match="not each of them is held once"):
        slots.release(wrong)
    slots.release(held)
    assert slots.free_count == 3


def test_the_pool_says_where_its_buffers_are():
    pool = KVPool(slots=5, layers=3, kv_heads=2, head_dim=4, dtype=torch.bfloat16)
    assert [tuple(buffer.shape) for buffer in (*pool.keys, *pool.values)] == [(5, 2, 4)] * 6
    assert pool.data_ptrs.dtype == torch.uint64
    assert pool.data_ptrs.tolist() == [buffer.data_ptr() for buffer in (*pool.keys, *pool.values)]
    assert pool.row_bytes.tolist() == [16] * 6


def test_reserved_slots_that_were_not_committed_are_used_again():
    slots = SlotAllocator(40)
    table = RequestTable(2, 20, slots, reference_plan())
    row, other = table.open(), table.open()
    first = table.reserve([row], 5)
    row.committed = 2
    again = table.reserve([row, other], 4).tolist()
    assert again[:3] == first[2:].tolist()
    assert (row.committed, len(row.slots), len(other.slots)) == (2, 6, 4)
    assert table.req_to_token[row.index, :6].tolist() == first[:2].tolist() + again[:4]
    assert slots.free_count == 40 - 10
    table.close(row)
    assert slots.free_count == 40 - 4
    table.close(other)
    assert slots.free_count == 40


def test_a_failed_reservation_changes_nothing():
    slots = SlotAllocator(6)
    table = RequestTable(2, 8, slots, reference_plan())
    row, other = table.open(), table.open()
    table.reserve([row], 4)
    with pytest.raises(RuntimeError, match="3 KV slots are needed and 2 of 6 are free"):
        table.reserve([row, other], 3)
    with pytest.raises(RuntimeError, match="needs 9 positions and the table has 8"):
        table.reserve([row], 9)
    assert (len(row.slots), len(other.slots), slots.free_count) == (4, 0, 2)


def test_slots_of_a_reservation_that_broke_off_come_back():
    def interrupted(*arguments):
        raise KeyboardInterrupt

    slots = SlotAllocator(8)
    table = RequestTable(1, 8, slots, SimpleNamespace(assign_req_to_token_pool=interrupted))
    row = table.open()
    with pytest.raises(KeyboardInterrupt):
        table.reserve([row], 5)
    table.close(row)
    assert slots.free_count == 8


def test_rows_are_limited_and_come_back():
    table = RequestTable(1, 8, SlotAllocator(8), reference_plan())
    row = table.open()
    with pytest.raises(RuntimeError, match="1 requests are running already"):
        table.open()
    table.close(row)
    assert table.open().index == row.index


def test_random_histories_lose_nothing():
    generator = random.Random(2)
    slots = SlotAllocator(64)
    table = RequestTable(4, 16, slots, reference_plan())
    open_rows = []
    for _ in range(500):
        if len(open_rows) < 4 and generator.random() < 0.4:
            open_rows.append(table.open())
        elif open_rows and generator.random() < 0.3:
            table.close(open_rows.pop(generator.randrange(len(open_rows))))
        else:
            for row in open_rows:
                count = generator.randint(1, 4)
                if row.committed + count <= 16:
                    table.reserve([row], count)
                    row.committed += generator.randint(0, count)
        held = [slot for row in open_rows for slot in table.req_to_token[row.index, : len(row.slots)].tolist()]
        assert len(set(held)) == len(held) == 64 - slots.free_count
