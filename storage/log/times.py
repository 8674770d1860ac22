"""From a time to an offset (ListOffsets): a record, not a batch, is the answer.

Each segment is asked in order, from the first whose largest timestamp reaches the time (S-TS-2).
Inside, both indexes give a place to start, and the heads of batches are walked from there until one
reaches the time; only that one is opened (S-TS-3: also when timestamps are out of order the answer
is the first by offset).

That may be long work, so a search is a generator (`Search`), advanced on the event loop:

* it yields None when others may have their turn: between two segments, and between some heads;
* it yields an `OpenBatch` that is more than a small one: whoever advances it has it opened in a
  worker, and sends the answer (or throws what was raised).

What it holds across a yield stays readable, whatever becomes of the log meanwhile: files that were
opened. Indexes and segments are looked up again.

Positions and offsets as in `LogSegment`. Raises OSError, and the records errors for damaged
batches.
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
"""Read and searched at once; its records may be more than that is granted (`search`)."""
_HEADS_A_TURN: Final = 128


class OpenBatch(NamedTuple):
    """A batch in which the first record dated `timestamp` or later is to be found."""

    batch: FileSlice
    timestamp: int
    start_offset: int

    def run(self) -> Found | None:
        """Here and now. Raises OSError and the records errors."""
        return first_at_or_after(self.batch.read(), 0, self.timestamp, self.start_offset)


Search = Generator[OpenBatch | None, Found | None, TimestampOffset | None]
"""A search under way: it yields batches to be opened, and None for a turn of others."""


def perform(search: Search) -> TimestampOffset | None:
    """Begin to end, here and now."""
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
    """The first record dated `timestamp` or later in [start_offset, end_offset), if any."""
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
    """The first record with the greatest timestamp of the log (-3); None in an empty log (S-TS-1).

    Records without timestamps count as dated -1, as in Kafka, but not those of format 0.
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
