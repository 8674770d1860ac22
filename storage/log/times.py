"""From a time to an offset (ListOffsets): finds a record, not a batch.

Segments are searched in order, those whose largest timestamp reaches the time (S-TS-2), where Kafka
asks the first of them only (decision 45). In a segment the search starts where both indexes lead
and walks the heads of batches until one reaches the time; only that batch is opened. If timestamps
are out of order, the first record by offset is found (S-TS-3).

A search may take long, so it is a generator (`Search`), advanced on the event loop:

* it yields None to let other tasks have their turn: between two segments, and between some heads;
* it yields an `OpenBatch` for a batch that is not small: the caller has it opened in a worker, and
  sends the result (or throws what was raised).

Across a yield a search holds only opened files, which stay readable whatever happens to the log.
Indexes and segments are looked up again.

Positions and offsets are those of `LogSegment`. Raises OSError, IndexInDoubt, and RecordsError for
damaged batches.
"""

from collections.abc import Generator, Sequence
from typing import Final, NamedTuple

from protocol.records.effort import EffortSpent
from protocol.records.search import Found, first_at_or_after, first_at_or_after_of_few
from protocol.types import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_TIMESTAMP
from storage.filesystem import File
from storage.log.position import BatchHead, batch_heads
from storage.log.results import FileSlice, TimestampOffset
from storage.log.segment import LogSegment
from storage.log.segments import LogSegments

_FUTURE: Final = 2**63 - 1
_SMALL_BATCH: Final = 64 * 1024
"""A batch of up to so many bytes is searched on the loop, as far as `search` allows."""
_HEADS_A_TURN: Final = 128


class OpenBatch(NamedTuple):
    """A batch to search for the first record at or after `timestamp` and `start_offset`."""

    batch: FileSlice
    timestamp: int
    start_offset: int

    def run(self) -> Found | None:
        """Search it here and now. Raises OSError, RecordsError."""
        return first_at_or_after(self.batch.read(), 0, self.timestamp, self.start_offset)


Search = Generator[OpenBatch | None, Found | None, TimestampOffset | None]
"""A search in progress: yields batches to be opened, and None to let others have their turn."""


def perform(search: Search) -> TimestampOffset | None:
    """Run a search to its end, here and now. Raises OSError, IndexInDoubt, RecordsError."""
    found = None
    try:
        while True:
            step = search.send(found)
            found = None if step is None else step.run()
    except StopIteration as end:
        answer: TimestampOffset | None = end.value
        return answer


def first_record_from(
    segments: LogSegments, timestamp: int, start_offset: int, end_offset: int
) -> Search:
    """Find the first record in [start_offset, end_offset) with `timestamp` or a later one."""
    segment: LogSegment | None = segments.first
    while segment is not None:
        if segment.size and segment.largest_timestamp() >= timestamp:
            found = yield from _first_in(segment, timestamp, start_offset)
            if found is not None:
                return found if found.offset < end_offset else None
        yield None
        segment = segments.higher(segment.base_offset)
    return None


def _first_in(segment: LogSegment, timestamp: int, start_offset: int) -> Search:
    start = segment.start_for(timestamp, start_offset)
    file = segment.file
    for count, head in enumerate(batch_heads(file, start, segment.size), start=1):
        if head.max_timestamp >= timestamp and head.last_offset >= start_offset:
            found = yield from _search(file, head, timestamp, start_offset)
            if found is not None:
                return found
        if count % _HEADS_A_TURN == 0:
            yield None
    return None


def _search(file: File, head: BatchHead, timestamp: int, start_offset: int) -> Search:
    batch = FileSlice(file, head.position, head.size)
    try:
        if head.size > _SMALL_BATCH:
            raise EffortSpent
        found = first_at_or_after_of_few(batch.read(), 0, timestamp, start_offset)
    except EffortSpent:
        found = yield OpenBatch(batch, timestamp, start_offset)
    if found is None:
        return None
    return TimestampOffset(offset=found[0], timestamp=found[1], leader_epoch=head.leader_epoch)


def latest_record(segments: LogSegments) -> Search:
    """Find the first record with the greatest timestamp (-3); None in an empty log (S-TS-1).

    A record without timestamp counts as -1, as in Kafka; records of format 0 do not count.
    """
    best: LogSegment | None = None
    segment: LogSegment | None = segments.first
    while segment is not None:
        if segment.size and (best is None or segment.max_timestamp > best.max_timestamp):
            best = segment
        yield None
        segment = segments.higher(segment.base_offset)
    if best is None or segments.get(best.base_offset) is not best:
        return None  # deleted meanwhile, and its indexes with it
    wanted = best.max_timestamp
    start = best.start_for(NO_TIMESTAMP, best.offset_of_max_timestamp)
    file = best.file
    for count, head in enumerate(batch_heads(file, start, best.size), start=1):
        if head.max_timestamp == wanted and head.magic:
            found = yield from _search(file, head, wanted, -1)
            if found is not None:
                return found
        if count % _HEADS_A_TURN == 0:
            yield None
    return None


def segments_before(
    segments: Sequence[LogSegment],
    timestamp: int,
    most: int,
    log_start_offset: int,
    high_watermark: int,
) -> list[int]:
    """ListOffsets v0: segment bases by the time of their last write, newest first (S-TS-5)."""
    offsets = [(max(s.base_offset, log_start_offset), s) for s in segments]
    dated = [(offset, segment.last_modified_ms()) for offset, segment in offsets]
    if segments[-1].size:
        dated.append((high_watermark, _FUTURE))
    if timestamp == LATEST_TIMESTAMP:
        chosen = [offset for offset, _ in dated]
    elif timestamp == EARLIEST_TIMESTAMP:
        chosen = [dated[0][0]]
    else:
        chosen = [offset for offset, written in dated if written <= timestamp]
    return sorted(set(chosen), reverse=True)[:most]
