"""From a time to an offset (ListOffsets): a record, not a batch, is the answer.

Each segment is asked in order, from the first whose largest timestamp reaches the time (S-TS-2).
Inside, both indexes give a place to start, and batches are walked from there until one reaches the
time; only that one is opened (S-TS-3: also when timestamps are out of order the answer is the first
by offset).

Positions and offsets as in `LogSegment`. Raises OSError, and the records errors for damaged
batches.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from protocol.records.batch import BatchHeader
from protocol.records.errors import CorruptBatch
from protocol.records.scan import first_at_or_after
from protocol.types import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_TIMESTAMP
from storage.log.results import TimestampOffset
from storage.log.scan import Ended, Walk
from storage.log.segment import LogSegment

_FUTURE: Final = 2**63 - 1
_CHUNK: Final = 64 * 1024
"""Read at a time: from an index entry to the batch looked for is one index interval."""


def first_record_from(
    segments: Iterable[LogSegment], timestamp: int, start_offset: int, end_offset: int
) -> TimestampOffset | None:
    """The first record dated `timestamp` or later in [start_offset, end_offset), if any."""
    for segment in segments:
        if segment.size == 0 or segment.largest_timestamp() < timestamp:
            continue
        found = _first_in(segment, timestamp, start_offset)
        if found is not None:
            return found if found.offset < end_offset else None
    return None


def _first_in(segment: LogSegment, timestamp: int, start_offset: int) -> TimestampOffset | None:
    start = segment.start_for(timestamp, start_offset)
    walk = Walk(segment.file, start, segment.size, chunk=_CHUNK)
    for _, header, chunk, at in walk:
        if header.max_timestamp < timestamp or header.last_offset < start_offset:
            continue
        found = first_at_or_after(chunk, at, timestamp, start_offset=start_offset)
        if found is not None:
            return TimestampOffset(offset=found[0], timestamp=found[1], leader_epoch=_epoch(header))
    if walk.ended is not Ended.AT_END:
        raise CorruptBatch(f"{segment.path}: no batch at position {walk.position}")
    return None


def latest_record(segments: Iterable[LogSegment]) -> TimestampOffset | None:
    """The first record with the greatest timestamp of the log (-3); None without timestamps."""
    best: LogSegment | None = None
    for segment in segments:
        if segment.size and (best is None or segment.max_timestamp > best.max_timestamp):
            best = segment
    if best is None or best.max_timestamp < 0:
        return None
    wanted = best.max_timestamp
    start = best.start_for(NO_TIMESTAMP, best.offset_of_max_timestamp)
    for _, header, chunk, at in Walk(best.file, start, best.size, chunk=_CHUNK):
        if header.max_timestamp == wanted:
            found = first_at_or_after(chunk, at, wanted)
            if found is not None:
                return TimestampOffset(
                    offset=found[0], timestamp=found[1], leader_epoch=_epoch(header)
                )
    return None


def _epoch(header: BatchHeader) -> int:
    return header.partition_leader_epoch if header.magic >= 2 else -1


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
