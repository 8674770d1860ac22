"""The producers of a partition: all of them as rows, recently used ones as objects, too.

A client may use a new producer id for every batch, and each must be remembered for a day: one
client can make half a million producers in a partition. So a producer takes 46 bytes, as in a
snapshot (`storage.producers.snapshot`), and a dict entry. Only recently used ones are
`ProducerStateEntry` objects, which an append reads and changes quickly.

    producer id -> place      every producer, in the order in which they were added
    place -> row              in blocks of `ROWS`. A row holds one batch: if more are remembered, or
                              a marker is newer than the last one, the block has the batches, too
    producer id -> entry      at most `AT_HAND`. A changed one is written into its row when an image
                              is taken, or when it is no longer kept as an object

An image (`ProducerImage`) shares the blocks: a shared block is copied before it is changed. Whoever
changes an entry calls `note_changed`. Used by `storage.producers.state` only, on the event loop (or
in the one thread that loads a log).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from struct import calcsize, pack, unpack
from typing import Final

from storage.producers.entry import ProducerStateEntry
from storage.producers.image import ProducerImage
from storage.producers.snapshot import (
    ENTRY_SIZE,
    IDLE_SINCE,
    PRODUCER_ID,
    pack_row_into,
    row_fields,
    unpack_row,
)
from storage.waits import PAUSE, at_once

ROWS: Final = 1024
"""Rows per block: copying a block takes some microseconds, a loop over its rows 0.2 ms."""
AT_HAND: Final = 1024
"""Entries kept as objects: some hundred KB per partition at most."""

_BLANK: Final = bytes(ENTRY_SIZE)
_BATCH: Final = "iqiq"
_BATCH_SIZE: Final = calcsize("<" + _BATCH)


class _Block:
    __slots__ = ("batches", "is_shared", "rows")

    def __init__(self, rows: bytearray, batches: list[bytes | None]) -> None:
        self.rows = rows
        self.batches = batches
        """Per row its packed batches, if the row does not hold them all; else None."""
        self.is_shared = False

    def writable(self) -> bytearray:
        if self.is_shared:
            self.rows = bytearray(self.rows)
            self.is_shared = False
        return self.rows


class ProducerTable(Mapping[int, ProducerStateEntry]):
    """The producers of one partition by id.

    Entries read through the mapping must not be changed; `at_hand` and `fetch` give those that may.
    """

    __slots__ = (
        "_blocks",
        "_changed",
        "_largest_size",
        "_next_block",
        "_places",
        "at_hand",
    )

    def __init__(self) -> None:
        self.at_hand: dict[int, ProducerStateEntry] = {}
        """The entries that are kept as objects; for other producers call `fetch`."""
        self._places: dict[int, int] = {}
        # By ascending number.
        self._blocks: dict[int, _Block] = {}
        self._next_block = 0
        self._changed: list[ProducerStateEntry] = []
        self._largest_size = 0

    # --- reading

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[int]:
        """Producer ids in the order in which they were added."""
        return iter(self._places)

    def __contains__(self, producer_id: object) -> bool:
        return producer_id in self._places

    def __getitem__(self, producer_id: int) -> ProducerStateEntry:
        entry = self.at_hand.get(producer_id)
        return self._read(producer_id) if entry is None else entry

    def _read(self, producer_id: int) -> ProducerStateEntry:
        """Raises KeyError."""
        number, row = divmod(self._places[producer_id], ROWS)
        block = self._blocks[number]
        entry = unpack_row(*row_fields(block.rows, row * ENTRY_SIZE))
        packed = block.batches[row]
        if packed is not None:
            entry.restore(unpack("<" + len(packed) // _BATCH_SIZE * _BATCH, packed))
        return entry

    # --- changing

    def fetch(self, producer_id: int) -> ProducerStateEntry | None:
        """Make the entry of a producer that is not in `at_hand`, and put it there; None for an
        unknown producer."""
        if producer_id not in self._places:
            return None
        entry = self._read(producer_id)
        self._take_in_hand(entry)
        return entry

    def add(self, entry: ProducerStateEntry) -> None:
        """Add a producer that was not known."""
        number = self._next_block - 1
        block = self._blocks.get(number)
        if block is None or len(block.rows) >= ROWS * ENTRY_SIZE:
            number = self._next_block
            block = self._blocks[number] = _Block(bytearray(), [])
            self._next_block += 1
        rows = block.writable()
        self._places[entry.producer_id] = number * ROWS + len(rows) // ENTRY_SIZE
        rows += _BLANK
        block.batches.append(None)
        self._largest_size = max(self._largest_size, len(self._places))
        self._take_in_hand(entry)
        self.note_changed(entry)

    def note_changed(self, entry: ProducerStateEntry) -> None:
        """Note that an entry of `at_hand` was changed."""
        if not entry.is_changed:
            entry.is_changed = True
            self._changed.append(entry)

    def _take_in_hand(self, entry: ProducerStateEntry) -> None:
        if len(self.at_hand) >= AT_HAND:
            self._lay_aside(AT_HAND // 2)
        self.at_hand[entry.producer_id] = entry

    def _lay_aside(self, count: int) -> None:
        """Drop the objects of the `count` producers that have been in `at_hand` the longest."""
        self._write_down()
        at_hand = self.at_hand
        for producer_id in list(at_hand)[:count]:
            recent = at_hand[producer_id].recent
            packed = None
            if len(recent) > 4 or (recent and recent[3] != at_hand[producer_id].last_timestamp):
                packed = pack("<" + len(recent) // 4 * _BATCH, *recent)
            del at_hand[producer_id]
            number, row = divmod(self._places[producer_id], ROWS)
            self._blocks[number].batches[row] = packed

    def _write_down(self) -> None:
        """Write the changed entries into their rows."""
        places, blocks = self._places, self._blocks
        for entry in self._changed:
            entry.is_changed = False
            number, row = divmod(places[entry.producer_id], ROWS)
            pack_row_into(blocks[number].writable(), row * ENTRY_SIZE, entry)
        self._changed.clear()

    def image(self) -> ProducerImage:
        """All producers at this moment, without copying the rows."""
        self._write_down()
        for block in self._blocks.values():
            block.is_shared = True
        return ProducerImage([block.rows for block in self._blocks.values()], self._largest_size)

    # --- in bulk

    def load(
        self, pieces: Sequence[bytes | bytearray], is_gone: Callable[[int, int], bool]
    ) -> None:
        """Fill the empty table with these rows, except those that `forget` would remove."""
        rows = b"".join(pieces)
        size = ROWS * ENTRY_SIZE
        first = self._next_block * ROWS
        self._places = {
            producer_id: place
            for place, (producer_id,) in enumerate(PRODUCER_ID.iter_unpack(rows), first)
        }
        if len(self._places) * ENTRY_SIZE < len(rows):
            # One id twice, which no known broker writes: the last row counts.
            rows = b"".join(
                rows[(place - first) * ENTRY_SIZE : (place - first + 1) * ENTRY_SIZE]
                for place in self._places.values()
            )
            self._places = dict(
                zip(self._places, range(first, first + len(self._places)), strict=True)
            )
        for at in range(0, len(rows), size):
            piece = bytearray(rows[at : at + size])
            self._blocks[self._next_block] = _Block(piece, [None] * (len(piece) // ENTRY_SIZE))
            self._next_block += 1
        at_once(self.forget(is_gone))
        self._largest_size = max(self._largest_size, len(self._places))

    def open_transactions(self) -> list[tuple[int, int]]:
        """(first offset, producer id) of each open transaction."""
        self._write_down()
        return [
            (first_offset, producer_id)
            for block in self._blocks.values()
            for producer_id, _, first_offset in IDLE_SINCE.iter_unpack(block.rows)
            if first_offset >= 0
        ]

    async def forget(self, is_gone: Callable[[int, int], bool]) -> int:
        """Remove the producers for which `is_gone(timestamp, current txn first offset)` is true.

        Returns how many. Others may change the table between two blocks.
        """
        total = 0
        previous: int | None = None
        for number in list(self._blocks):
            if number not in self._blocks:
                continue  # cleared meanwhile
            self._write_down()
            removed = self._forget_in(number, is_gone)
            if previous is not None and previous in self._blocks:
                number = self._merge(previous, number)
            previous = number if number in self._blocks else None
            total += removed
            await PAUSE
        if total > 4 * len(self._places):
            self._places = dict(self._places)  # a new dict of the rest takes less memory
        return total

    def _forget_in(self, number: int, is_gone: Callable[[int, int], bool]) -> int:
        block = self._blocks[number]
        kept_rows, kept_batches = bytearray(), list[bytes | None]()
        begin = removed = 0
        for row, (producer_id, timestamp, first_offset) in enumerate(
            IDLE_SINCE.iter_unpack(block.rows)
        ):
            if is_gone(timestamp, first_offset):
                del self._places[producer_id]
                self.at_hand.pop(producer_id, None)
                kept_rows += block.rows[begin * ENTRY_SIZE : row * ENTRY_SIZE]
                kept_batches += block.batches[begin:row]
                begin = row + 1
                removed += 1
        if removed:
            kept_rows += block.rows[begin * ENTRY_SIZE :]
            kept_batches += block.batches[begin:]
            self._put(number, kept_rows, kept_batches)
        return removed

    def _put(self, number: int, rows: bytearray, batches: list[bytes | None]) -> None:
        """Replace a block's content; an empty block is removed."""
        if not rows:
            del self._blocks[number]
            return
        self._blocks[number] = _Block(rows, batches)
        places = self._places
        for place, (producer_id,) in enumerate(PRODUCER_ID.iter_unpack(rows), number * ROWS):
            places[producer_id] = place

    def _merge(self, earlier: int, later: int) -> int:
        """Merge two neighbouring blocks if they fit in one; returns the number of the last left."""
        if later not in self._blocks:
            return earlier
        one, other = self._blocks[earlier], self._blocks[later]
        if len(one.rows) + len(other.rows) > ROWS * ENTRY_SIZE:
            return later
        self._put(earlier, one.rows + other.rows, one.batches + other.batches)
        del self._blocks[later]
        if later == self._next_block - 1:
            self._next_block = earlier + 1
        return earlier

    def clear(self) -> None:
        """Forget all producers, but not the most ever known, which decides the snapshots' order."""
        self.at_hand.clear()
        self._places.clear()
        self._blocks.clear()
        self._changed.clear()

    def _check(self) -> None:
        assert list(self._blocks) == sorted(self._blocks)
        numbers = [
            number * ROWS + row
            for number, block in self._blocks.items()
            for row in range(len(block.rows) // ENTRY_SIZE)
        ]
        assert list(self._places.values()) == numbers
        assert self.at_hand.keys() <= self._places.keys()
        assert all(
            len(block.batches) * ENTRY_SIZE == len(block.rows) for block in self._blocks.values()
        )
        assert all(self.at_hand[entry.producer_id] is entry for entry in self._changed)
        assert len(self.at_hand) <= AT_HAND
        assert not any(block.is_shared and not block.rows for block in self._blocks.values())
        changed = {entry.producer_id for entry in self._changed}
        for producer_id in self._places:
            entry = self[producer_id]
            assert entry.producer_id == producer_id
            assert entry.is_changed == (producer_id in changed)
            entry._check()
        for producer_id, entry in self.at_hand.items():
            if not entry.is_changed:
                row = self._read(producer_id)
                assert row._fields()[:5] == entry._fields()[:5]
        assert len(self._places) <= self._largest_size or not self._places
