"""Indexes against a sorted list, through any sequence of operations (S-IDX-2, S-IDX-3, S-IDX-5)."""

from bisect import bisect_left, bisect_right

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from storage.index.offset_index import OffsetIndex
from storage.index.time_index import TimeIndex
from tests.support.faulty_filesystem import FaultyFileSystem

BASE = 7
MAX_SIZE = 40_000
STEPS = st.lists(st.integers(1, 3), min_size=1, max_size=600)


class IndexMachine(RuleBasedStateMachine):
    """Both indexes of one segment, closed, reopened and cut at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.fs = FaultyFileSystem()
        self.fs.make_dirs("/d")
        self.open()
        self.offset_model: list[tuple[int, int]] = []
        self.time_model: list[tuple[int, int]] = []

    def open(self) -> None:
        self.offsets = OffsetIndex(self.fs, "/d/i", BASE, MAX_SIZE)
        self.times = TimeIndex(self.fs, "/d/t", BASE, MAX_SIZE)

    @rule(steps=STEPS)
    def append(self, steps: list[int]) -> None:
        offset, position = self.offset_model[-1] if self.offset_model else (BASE, 0)
        timestamp, at = self.time_model[-1] if self.time_model else (1000, BASE)
        for step in steps:
            if self.offsets.is_full or self.times.is_full:
                return
            offset, position = offset + step, position + 1 + step
            self.offsets.append(offset, position)
            self.offset_model.append((offset, position))
            timestamp, at = timestamp + step - 1, max(at, offset - 1)
            added = self.times.maybe_append(timestamp, at)
            assert added == (not self.time_model or timestamp > self.time_model[-1][0])
            if added:
                self.time_model.append((timestamp, at))
            timestamp, at = self.time_model[-1]

    @rule(back=st.integers(-3, 900))
    def truncate(self, back: int) -> None:
        offset = self.offsets.last_offset - back
        self.offsets.truncate_to(offset)
        self.times.truncate_to(offset)
        self.offset_model = [entry for entry in self.offset_model if entry[0] < offset]
        self.time_model = [entry for entry in self.time_model if entry[1] < offset]

    @rule()
    def trim(self) -> None:
        self.offsets.trim_to_valid_size()
        self.times.trim_to_valid_size()
        self.offsets.close()

    @rule()
    def reopen(self) -> None:
        self.offsets.close()
        self.times.close()
        self.open()
        self.offsets.sanity_check(full=True)
        self.times.sanity_check(full=True)

    @rule()
    def kill(self) -> None:
        self.offsets.write_entries()
        self.times.write_entries()
        self.fs = self.fs.crash(keep_unsynced=True)
        self.open()

    @rule(back=st.integers(-5, 900))
    def look_up(self, back: int) -> None:
        target = self.offsets.last_offset - back
        slot = bisect_right(self.offset_model, (target, 1 << 40))
        assert self.offsets.lookup(target) == (self.offset_model[slot - 1] if slot else (BASE, 0))
        timestamp = self.times.last_entry[0] - back
        slot = bisect_right(self.time_model, (timestamp, 1 << 40))
        assert self.times.lookup(timestamp) == (self.time_model[slot - 1] if slot else (-1, BASE))

    @rule(position=st.integers(0, 3000), size=st.integers(1, 3000))
    def bound(self, position: int, size: int) -> None:
        slot = bisect_left([at for _, at in self.offset_model], position + size)
        expected = self.offset_model[slot] if slot < len(self.offset_model) else None
        assert self.offsets.upper_bound(position, size) == expected

    @invariant()
    def is_sound(self) -> None:
        assert self.offsets.entries == len(self.offset_model)
        assert self.times.entries == len(self.time_model)
        assert self.offsets.last_offset == (self.offset_model[-1][0] if self.offset_model else BASE)
        assert self.times.last_entry == (self.time_model[-1] if self.time_model else (-1, BASE))
        self.offsets._check()
        self.times._check()


TestIndexes = IndexMachine.TestCase
