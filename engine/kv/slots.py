"""Which slots of the KV pool are free."""

from collections.abc import Sequence


class SlotAllocator:
    """Hands out slots 0 .. total-1, each to one holder at a time."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = list(range(total - 1, -1, -1))  # a stack: the lowest slots are handed out first
        self._held = bytearray(total)

    @property
    def free_count(self) -> int:
        """Slots that nobody holds."""
        return len(self._free)

    def allocate(self, count: int) -> list[int]:
        """Take `count` slots. Raises RuntimeError, taking none, if fewer are free."""
        if count > len(self._free):
            raise RuntimeError(f"{count} KV slots are needed and {len(self._free)} of {self.total} are free")
        taken = [self._free.pop() for _ in range(count)]
        for slot in taken:
            self._held[slot] = 1
        return taken

    def release(self, slots: Sequence[int]) -> None:
        """Give slots back. Raises RuntimeError, changing nothing, if one of them is not held or is named twice."""
        if len(set(slots)) != len(slots) or not all(0 <= slot < self.total and self._held[slot] for slot in slots):
            raise RuntimeError(f"KV slots {sorted(slots)} are given back, but not each of them is held once")
        for slot in reversed(slots):
            self._held[slot] = 0
            self._free.append(slot)
