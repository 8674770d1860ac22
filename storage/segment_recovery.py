"""Re-reading one segment: what in it is good, and everything beside it made to agree (S-REC-3).

Each batch is read and its checksum compared; the three indexes, producer state and leader epochs
are rebuilt from what is good. Nothing is cut here and no file but the indexes is changed: what
follows the last good batch, and the segments after this one, are the loader's to decide.

Where to begin
  A segment is read from its first byte, or, when the recovery point lies in it, from the last index
  entry below that point (`resume_point`). What lies below was synced with its index entries, and a
  checkpoint never names an offset that was cut off since (`storage.manager.checkpoints`), so it is
  believed. Whatever does not fit (an entry that leads to no batch that ends there, a point that
  is not between two batches) is a reason to read the segment whole.

`storage.recovery` calls this.
"""

import logging
from typing import Final, NamedTuple

from protocol.records.batch import BatchHeader
from protocol.records.errors import RecordsError
from protocol.types import NO_TIMESTAMP
from storage.epochs import LeaderEpochCache
from storage.errors import CorruptIndex
from storage.log import replay
from storage.log.scan import Ended, Walk
from storage.log.segment import LogSegment
from storage.log.soundness import flaw_of
from storage.producers.state import ProducerStateManager

_log = logging.getLogger(__name__)

_CHUNK: Final = 64 * 1024
"""From an index entry to the recovery point: an index interval, mostly."""


class ResumePoint(NamedTuple):
    """Where the reading of a segment may begin."""

    offset: int
    """Everything below is good and known: a recovery point."""
    position: int
    """Of the last indexed batch below it, in the record file."""
    entries: int
    """Of the offset index, up to that batch."""
    time_entries: int
    """Of the time index, up to that batch."""


def resume_point(segment: LogSegment, point: int) -> ResumePoint | None:
    """Where to begin in the segment that holds `point`; None: at its first byte. Raises OSError.

    Entries are gone through one by one, not searched: above the recovery point a power loss leaves
    anything, zeros in the middle included, and a search would be led astray.
    """
    try:
        entries, last, position = _entries_below(segment, point)
        time_entries, latest = _time_entries_up_to(segment, last)
        if entries and _is_between_batches(segment, position, last, latest, point):
            return ResumePoint(point, position, entries, time_entries)
    except CorruptIndex as error:
        _log.warning("Reading %s whole: %s", segment.path, error)
    return None


def _entries_below(segment: LogSegment, point: int) -> tuple[int, int, int]:
    """How many rising entries there are, and the last one's offset and position."""
    index = segment.offset_index
    last, position, count = segment.base_offset, 0, 0
    for slot in range(index.entries):
        offset, at = index.entry(slot)
        if offset >= point or offset <= last or not position < at < segment.size:
            break
        last, position, count = offset, at, slot + 1
    return count, last, position


def _time_entries_up_to(segment: LogSegment, last: int) -> tuple[int, int]:
    """How many rising entries there are, and the last one's timestamp."""
    index = segment.time_index
    latest, count = NO_TIMESTAMP, 0
    for slot in range(index.entries):
        timestamp, offset = index.entry(slot)
        if offset > last or timestamp <= latest:
            break
        latest, count = timestamp, slot + 1
    return count, latest


def _is_between_batches(
    segment: LogSegment, position: int, last: int, latest: int, point: int
) -> bool:
    """The batch at `position` ends at `last` and is dated `latest` at most, as both indexes say,
    and it, or one after it, ends right below `point`.
    """
    after = segment.base_offset
    for at, header, chunk, inside in Walk(segment.file, position, segment.size, chunk=_CHUNK):
        if at == position and (header.last_offset != last or header.max_timestamp > latest):
            return False
        if header.last_offset >= point:
            return header.base_offset >= point > last
        if flaw_of(header, chunk, inside, base_offset=segment.base_offset, last_offset=after - 1):
            return False
        after = header.last_offset + 1
    return after == point


class SegmentRecovery:
    """Reads a segment and makes everything beside it agree (S-REC-3).

    With `resume` the producers are those of a log that ends at its offset.
    """

    __slots__ = ("_epochs", "_known", "_position", "_producers", "_segment", "_total")

    def __init__(
        self,
        segment: LogSegment,
        producers: ProducerStateManager,
        epochs: LeaderEpochCache,
        resume: ResumePoint | None = None,
    ) -> None:
        self._segment = segment
        self._producers = producers
        self._epochs = epochs
        self._total = segment.size
        self._known = segment.base_offset if resume is None else resume.offset
        self._position = 0 if resume is None else resume.position

    def run(self) -> int:
        """Returns the bytes beyond the last good batch; they are still there. Raises OSError."""
        segment, known = self._segment, self._known
        self._begin()
        last = segment.base_offset - 1
        walk = Walk(segment.file, self._position, self._total)
        for position, header, chunk, at in walk:
            flaw = flaw_of(header, chunk, at, base_offset=segment.base_offset, last_offset=last)
            if flaw is not None:
                _log.warning("Invalid batch in %s at %d: %s", segment.path, position, flaw)
                break
            last = header.last_offset
            try:
                segment.note_batch(header.size, last, header.max_timestamp)
                if header.magic >= 2 and last >= known:
                    self._note(header, chunk, at)
            except RecordsError as error:
                _log.warning(
                    "Found an invalid marker in %s at %d: %s", segment.path, position, error
                )
                segment.size = position
                break
            self._producers.map_end_offset = max(last + 1, known)
        else:
            if walk.ended is not Ended.AT_END:
                _log.warning("%s ends at %d: %s", segment.path, walk.position, walk.ended)
        return self._total - segment.size

    def _begin(self) -> None:
        """Nothing is known of what lies from the first batch on that is read."""
        segment = self._segment
        if self._position:
            segment.restart_from(self._position)
            return
        segment.offset_index.truncate()
        segment.time_index.truncate()
        segment.txn_index.truncate()
        segment.restart()

    def _note(self, header: BatchHeader, chunk: memoryview, at: int) -> None:
        """Epoch and producer of a good batch."""
        epoch = header.partition_leader_epoch
        if epoch >= 0:
            latest = self._epochs.latest_epoch
            if latest is None or epoch > latest:
                self._epochs.assign(epoch, header.base_offset)
        if header.producer_id >= 0:
            completed = replay.remember_again(self._producers, header, chunk, at)
            if completed is not None:
                replay.settle(self._producers, self._segment, completed)


def cut_indexes(segment: LogSegment, resume: ResumePoint) -> None:
    """To what they hold up to the batch that is read first. Raises OSError."""
    segment.offset_index.keep(resume.entries)
    segment.time_index.keep(resume.time_entries)
    segment.txn_index.truncate_to(resume.offset)
