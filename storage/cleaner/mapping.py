"""The first pass of a cleaning: maps the keys of the dirty part to their latest offsets (S-CMP-3).

Every record with a key counts, tombstones too; data of aborted transactions and control records do
not. The map's latest offset is that of the last batch that was read. After a segment it is the one
before the next segment, so that gaps in the offsets are skipped (KAFKA-4586). A full map ends in
the middle of a batch, with the last record that it took: the cleaning goes so far, and the next one
begins there. As Kafka's `buildOffsetMapForSegment`.
"""

from collections.abc import Iterator

import numpy as np

from protocol.records.errors import RecordsError
from protocol.records.message_set import iter_legacy_records
from storage.cleaner.fates import BatchRule
from storage.cleaner.offset_map import OffsetMap
from storage.cleaner.opening import Records, chunks_of, corrupt, open_records
from storage.cleaner.request import CleanRequest, MapStep, SourceSegment
from storage.cleaner.retained import Columns, Ints
from storage.cleaner.transactions import TransactionWalk, control_types
from storage.cleaner.walking import SegmentWalk
from storage.filesystem import FileSystem
from storage.reader.frames import Frames


def keyed(records: Records) -> Ints:
    """Indexes of the records that have a key."""
    return np.flatnonzero(records.columns.key_lengths >= 0)


def keys_of(records: Records, rows: Ints) -> list[bytes]:
    """The keys of these records, all of which have one."""
    starts = records.columns.key_starts[rows]
    bounds = zip(
        starts.tolist(), (starts + records.columns.key_lengths[rows]).tolist(), strict=True
    )
    payload = records.payload
    return [payload[start:end] for start, end in bounds]


class MapBuilder:
    """Fills a map from the dirty part of a log, step by step."""

    __slots__ = ("_map", "_request", "_transactions", "_walk", "is_full", "messages")

    def __init__(self, fs: FileSystem, request: CleanRequest, offset_map: OffsetMap) -> None:
        self._request = request
        self._map = offset_map
        dirty = dirty_segments(request)
        self._walk = SegmentWalk(fs, request.directory, dirty, request.io_buffer_bytes)
        start = request.first_dirty_offset
        self._transactions = TransactionWalk(request.aborted, from_offset=start)
        self.is_full = False
        self.messages = 0

    def step(self, budget: int) -> MapStep:
        """Read on for about `budget` bytes. Raises UncleanableLog, OSError."""
        read = 0
        before = self.messages
        while not self.is_done and read < budget:
            for size in self._in_segment():
                read += size
                if read >= budget or self.is_full:
                    break
            if self._walk.is_at_end and not self.is_full:
                self._end_segment()
        if self.is_done:
            self._walk.close()
        return MapStep(
            read_bytes=read,
            messages=self.messages - before,
            is_done=self.is_done,
            end_offset=self._map.latest_offset + 1,
            map_utilization=self._map.utilization,
            is_full=self.is_full,
        )

    @property
    def is_done(self) -> bool:
        """Whether the whole dirty part is in the map, or the map is full."""
        return self.is_full or self._walk.current is None

    def close(self) -> None:
        """Close the file."""
        self._walk.close()

    def _end_segment(self) -> None:
        current = self._walk.current
        assert current is not None
        self._walk.next_segment()
        following = self._walk.current
        end = self._request.first_uncleanable_offset if following is None else following.base_offset
        self._map.latest_offset = end - 1

    def _in_segment(self) -> Iterator[int]:
        """Read the current segment on; yields the bytes of each piece."""
        for frames, batches in self._walk.pieces():
            if frames.legacy:
                self._add_legacy(frames)
            else:
                self._add(frames, batches)
            yield int(batches["size"].sum())

    def _add(self, frames: Frames, batches: Columns) -> None:
        rules, _ = self._transactions.rules(batches, control_types(frames, self._walk.where))
        start = self._request.first_dirty_offset
        last_offsets = batches["last_offset"]
        is_asked = (rules == BatchRule.BY_KEY) & (last_offsets >= start)
        self.messages += int(batches["record_count"].sum())
        for opened in open_records(frames, batches, is_asked, self._walk.where):
            bases = batches["base_offset"][opened.first : opened.after]
            parts = (
                chunks_of(frames.chunk, frames.starts[opened.first], self._walk.where)
                if opened.is_large
                else (opened.records,)
            )
            for records in parts:
                offsets = bases[records.owners] + records.columns.offset_deltas
                rows = keyed(records)
                rows = rows[offsets[rows] >= start]
                hashes = self._map.hashes_of(keys_of(records, rows))
                count = self._map.put_all(hashes, offsets[rows])
                if count < len(rows):
                    full_in = int(records.owners[rows[count]]) + opened.first
                    if full_in:
                        self._note(int(last_offsets[full_in - 1]))
                    if count:
                        self._note(int(offsets[rows[count - 1]]))
                    self.is_full = True
                    return
                if len(rows):
                    self._note(int(offsets[rows[-1]]))
            self._note(int(last_offsets[opened.after - 1]))

    def _note(self, offset: int) -> None:
        """Note that the map covers the log up to `offset`."""
        if offset >= self._request.first_dirty_offset:
            self._map.latest_offset = max(self._map.latest_offset, offset)

    def _add_legacy(self, frames: Frames) -> None:
        start = self._request.first_dirty_offset
        for at in frames.starts:
            last = -1
            try:
                for record in iter_legacy_records(frames.chunk, at):
                    last = record.offset
                    if record.key is not None and last >= start:
                        offset = np.array([last], np.int64)
                        if not self._map.put_all(self._map.hashes_of([record.key]), offset):
                            self.is_full = True
                            return
                        self._note(last)
                    self.messages += 1
            except RecordsError as error:
                raise corrupt(error, self._walk.where) from None
            self._note(last)


def dirty_segments(request: CleanRequest) -> tuple[SourceSegment, ...]:
    """The segments that hold offsets from the first dirty one on."""
    segments = request.segments
    bases = [segment.base_offset for segment in segments]
    first = max(int(np.searchsorted(bases, request.first_dirty_offset, "right")) - 1, 0)
    return segments[first:]
