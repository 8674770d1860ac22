"""From a time to an offset (ListOffsets): finds a record, not a batch.

The search takes in order all segments whose largest timestamp reaches the time (S-TS-2); Kafka
takes the first of them only (decision 45). In a segment the search starts where both indexes lead
and walks the heads of batches until one reaches the time; it opens only that batch. If timestamps
are out of order, it finds the first record by offset (S-TS-3).

A search may take long, so it pauses between two segments and between two heads, and a look at a
batch that is not small runs elsewhere (`storage.log.looking`). Across a wait a search holds only
opened files, which stay readable whatever happens to the log; it looks up indexes and segments
again.

Positions and offsets are those of `LogSegment`. Raises OSError, IndexInDoubt, RecordsError for
damaged batches, and the errors of the look elsewhere.
"""

from collections.abc import Sequence
from typing import Final

from protocol.records.effort import EffortSpent
from protocol.records.search import first_at_or_after, first_at_or_after_of_few
from protocol.types import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_TIMESTAMP
from storage.filesystem import File
from storage.log.looking import Look
from storage.log.position import BatchHead, batch_heads
from storage.log.results import FileSlice, TimestampOffset
from storage.log.segment import LogSegment
from storage.log.segments import LogSegments
from storage.waits import PAUSE

_SMALL_BATCH: Final = 64 * 1024
"""A batch of up to so many bytes is searched on the loop, as far as `search` allows."""


async def first_record_from(
    segments: LogSegments, timestamp: int, start_offset: int, end_offset: int, look: Look
) -> TimestampOffset | None:
    """Find the first record in [start_offset, end_offset) with `timestamp` or a later one."""
    segment: LogSegment | None = segments.first
    while segment is not None:
        if segment.size and segment.largest_timestamp() >= timestamp:
            start = segment.indexes.start_for(timestamp, start_offset, segment.size)
            file = segment.file
            for head in batch_heads(file, start, segment.size):
                if head.max_timestamp >= timestamp and head.last_offset >= start_offset:
                    found = await _search(file, head, timestamp, start_offset, look)
                    if found is not None:
                        return found if found.offset < end_offset else None
                await PAUSE
        await PAUSE
        segment = segments.higher(segment.base_offset)
    return None


async def latest_record(segments: LogSegments, look: Look) -> TimestampOffset | None:
    """Find the first record with the greatest timestamp (-3); None in an empty log (S-TS-1).

    A record without timestamp counts as -1, as in Kafka; records of format 0 do not count.
    """
    best: LogSegment | None = None
    segment: LogSegment | None = segments.first
    while segment is not None:
        if segment.size and (best is None or segment.max_timestamp > best.max_timestamp):
            best = segment
        await PAUSE
        segment = segments.higher(segment.base_offset)
    if best is None or segments.get(best.base_offset) is not best:
        return None  # deleted meanwhile, and its indexes with it
    wanted = best.max_timestamp
    start = best.indexes.start_for(NO_TIMESTAMP, best.offset_of_max_timestamp, best.size)
    file = best.file
    for head in batch_heads(file, start, best.size):
        if head.max_timestamp == wanted and head.magic:
            found = await _search(file, head, wanted, -1, look)
            if found is not None:
                return found
        await PAUSE
    return None


async def _search(
    file: File, head: BatchHead, timestamp: int, start_offset: int, look: Look
) -> TimestampOffset | None:
    batch = FileSlice(file, head.position, head.size)
    try:
        if head.size > _SMALL_BATCH:
            raise EffortSpent
        found = first_at_or_after_of_few(batch.read(), 0, timestamp, start_offset)
    except EffortSpent:
        found = await look(batch, first_at_or_after, 0, timestamp, start_offset)
    if found is None:
        return None
    return TimestampOffset(offset=found[0], timestamp=found[1], leader_epoch=head.leader_epoch)


def segments_before(
    segments: Sequence[LogSegment],
    timestamp: int,
    most: int,
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> list[int]:
    """ListOffsets v0: segment bases by the time of their last write, newest first (S-TS-5).

    The last one that is old enough counts, and all before it, whatever their times are. Consumers
    get the high watermark for all that lies above it.
    """
    offsets = [max(segment.base_offset, log_start_offset) for segment in segments]
    times = [segment.files.last_modified_ms() for segment in segments]
    if segments[-1].size:
        offsets.append(log_end_offset)
        times.append(now_ms)
    if timestamp == LATEST_TIMESTAMP:
        count = len(offsets)
    elif timestamp == EARLIEST_TIMESTAMP:
        count = 1
    else:
        old_enough = (at for at in range(len(times), 0, -1) if times[at - 1] <= timestamp)
        count = next(old_enough, 0)
    found = sorted(offsets[max(count - most, 0) : count], reverse=True)
    visible = [offset for offset in found if offset <= high_watermark]
    return visible if len(visible) == len(found) else [high_watermark, *visible]
