"""Re-reading one segment: find its good batches and rebuild everything beside it (S-REC-3).

Each batch is read and its checksum compared; the three indexes, producer state and leader epochs
are rebuilt from the good batches. Nothing is cut here and no file but the indexes is changed: the
loader decides about the bytes after the last good batch and about later segments.

The place to begin
  A segment is read from its first byte, or, when the recovery point lies in it, from the last index
  entry below that point (`resume_point`). Batches below the point are believed: they were synced
  with their index entries, and a checkpoint never names an offset that was cut off since
  (`storage.manager.checkpoints`). If anything does not fit (an index entry at which no batch ends,
  a point inside a batch), the segment is read whole. One kind of damage fits all the same: missing
  entries of the transaction index. They are ruled out where the index agrees with what was noted
  (`storage.aborted_checkpoint`), or else when a committed reader has the segment read through.

`storage.recovery` calls this.
"""

import logging
from typing import NamedTuple

from protocol.records.batch import CONTROL_BIT, BatchHeader
from protocol.records.errors import RecordsError
from protocol.types import NO_TIMESTAMP
from storage.epochs import LeaderEpochCache
from storage.errors import CorruptIndex
from storage.index.offset_index import ENTRY_SIZE as OFFSET_ENTRY_SIZE
from storage.index.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from storage.index.transaction_index import Checksum
from storage.log import replay
from storage.log.batch_flaws import flaw_of
from storage.log.scan import HEADERS, Ended, Walk
from storage.log.segment import LogSegment
from storage.producers.state import ProducerStateManager

_log = logging.getLogger(__name__)


class ResumePoint(NamedTuple):
    """The place where the reading of a segment may begin."""

    offset: int
    """The recovery point: batches below it are good, and producers and epochs know them."""
    position: int
    """Position of the last indexed batch below `offset`; 0 if none is indexed."""
    entries: int
    """How many entries the offset index has up to that batch."""
    time_entries: int
    """How many entries the time index has up to that batch."""
    aborted: int
    """How many entries the transaction index has below `offset`."""
    aborted_sum: Checksum | None
    """The checksum of those entries; None if some may be missing."""
    is_all: bool
    """No batch follows `offset`, and the indexes are complete: nothing needs to be read."""


class _Entry(NamedTuple):
    """The last of the leading index entries that can be right."""

    number: int
    """How many entries there are up to this one; 0 if none can be right."""
    offset: int
    value: int
    """Position or timestamp."""


def resume_point(
    segment: LogSegment,
    point: int,
    *,
    index_bytes: int,
    time_index_bytes: int,
    noted: Checksum | None = None,
) -> ResumePoint | None:
    """The place to begin in the segment that holds `point`; None: its first byte. Raises OSError.

    Entries are read one by one, not searched: above the recovery point a power loss may leave
    anything, zeros in the middle included, which would mislead a binary search. `index_bytes` and
    `time_index_bytes` are the sizes of the index files. `noted`: the checksum that was noted of the
    transaction index with this recovery point or a higher one.
    """
    try:
        indexed = _entries_below(segment, point)
        dated = _time_entries_below(segment, indexed.offset + 1)
        ended = _time_entries_below(segment, point)
        aborted = _aborted_below(segment, point)
        if aborted is None or not (_is_dated(segment, dated) and _is_dated(segment, ended)):
            return None
        tail = _Tail(segment, indexed, dated.value)
        if not tail.reaches(point):
            return None
    except CorruptIndex as error:
        _log.warning("Reading %s whole: %s", segment.files.path, error)
        return None
    return ResumePoint(
        offset=point,
        position=indexed.value,
        entries=indexed.number,
        time_entries=dated.number,
        aborted=aborted,
        aborted_sum=_known_aborted(segment, aborted, noted),
        is_all=tail.is_all
        and tail.max_timestamp <= ended.value
        and index_bytes == indexed.number * OFFSET_ENTRY_SIZE
        and time_index_bytes == ended.number * TIME_ENTRY_SIZE,
    )


def _entries_below(segment: LogSegment, point: int) -> _Entry:
    """The last of the leading entries of the offset index that rise and lie below `point`."""
    index = segment.indexes.offset
    last, position, count = segment.base_offset - 1, 0, 0
    for slot in range(index.entries):
        offset, at = index.entry(slot)
        if not last < offset < point or not position < at < segment.size:
            break
        last, position, count = offset, at, slot + 1
    return _Entry(count, last, position)


def _time_entries_below(segment: LogSegment, point: int) -> _Entry:
    """The last of the leading entries of the time index that rise and lie below `point`."""
    index = segment.indexes.time
    last, latest, count = segment.base_offset - 1, NO_TIMESTAMP, 0
    for slot in range(index.entries):
        timestamp, offset = index.entry(slot)
        if not last < offset < point or timestamp <= latest:
            break
        latest, last, count = timestamp, offset, slot + 1
    return _Entry(count, last, latest)


def _is_dated(segment: LogSegment, entry: _Entry) -> bool:
    """Whether a batch with the entry's timestamp ends at its offset: a torn entry may look sane."""
    if not entry.number:
        return True
    header = _batch_that_ends_at(segment, entry.offset)
    return header is not None and header.max_timestamp == entry.value


def _aborted_below(segment: LogSegment, point: int) -> int | None:
    """How many rising entries below `point` the transaction index has; None if the last of them
    does not lead to a marker of its producer."""
    last, count, producer_id = segment.base_offset - 1, 0, -1
    for txn in segment.aborted.index.all_aborted():
        if not last < txn.last_offset < point:
            break
        last, count, producer_id = txn.last_offset, count + 1, txn.producer_id
    if not count:
        return 0
    header = _batch_that_ends_at(segment, last)
    if header is None or header.producer_id != producer_id:
        return None
    return count if header.attributes & CONTROL_BIT else None


def _known_aborted(segment: LogSegment, entries: int, noted: Checksum | None) -> Checksum | None:
    """The checksum of the first `entries` entries, if the noted ones include them; else None."""
    index = segment.aborted.index
    if noted is None or not index.begins_with(noted):
        return None
    known = index.checksum_of(entries)
    return known if known[0] <= noted[0] else None


def _batch_that_ends_at(segment: LogSegment, offset: int) -> BatchHeader | None:
    _, start = segment.indexes.offset.lookup(offset)
    for _, header, _, _ in Walk(segment.file, start, segment.size, chunk=HEADERS):
        if header.last_offset >= offset:
            return header if header.last_offset == offset else None
    return None


class _Tail:
    """The batches from the last indexed one up to a recovery point."""

    __slots__ = ("_indexed", "_latest", "_segment", "is_all", "max_timestamp")

    def __init__(self, segment: LogSegment, indexed: _Entry, latest: int) -> None:
        """`latest`: the greatest timestamp up to the indexed batch, by the time index."""
        self._segment = segment
        self._indexed = indexed
        self._latest = latest
        self.max_timestamp = NO_TIMESTAMP
        self.is_all = False
        """Set by `reaches`: the file ends where the walk did, with a whole batch."""

    def reaches(self, point: int) -> bool:
        """Whether the index entry leads to its batch and a batch from there on ends at `point`."""
        segment, indexed = self._segment, self._indexed
        base, after = segment.base_offset, segment.base_offset
        walk = Walk(segment.file, indexed.value, segment.size, chunk=HEADERS)
        for at, header, chunk, inside in walk:
            if header.last_offset >= point:
                return header.base_offset >= point and after > base
            if at == indexed.value and not self._is_indexed(header):
                return False
            if flaw_of(header, chunk, inside, base_offset=base, last_offset=after - 1):
                return False
            self.max_timestamp = max(self.max_timestamp, header.max_timestamp)
            after = header.last_offset + 1
        self.is_all = walk.ended is Ended.AT_END
        return after == point

    def _is_indexed(self, header: BatchHeader) -> bool:
        """Whether both indexes agree with this batch, which the last offset entry leads to."""
        indexed = self._indexed
        return not indexed.number or (
            header.last_offset == indexed.offset and header.max_timestamp <= self._latest
        )


class SegmentRecovery:
    """Reads a segment and rebuilds everything beside it (S-REC-3).

    `producers` must be at the segment's base, or at `resume.offset`.
    """

    __slots__ = ("_epochs", "_known", "_producers", "_resume", "_segment", "_total", "ended")

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
        self._resume = resume
        self.ended: Ended | None = None
        """Why the batches ended; None: a batch has a flaw."""

    def run(self) -> int:
        """Return how many bytes follow the last good batch; cuts none of them. Raises OSError."""
        segment, known = self._segment, self._known
        start = self._begin()
        last = segment.base_offset - 1
        walk = Walk(segment.file, start, self._total)
        for position, header, chunk, at in walk:
            flaw = flaw_of(header, chunk, at, base_offset=segment.base_offset, last_offset=last)
            if flaw is not None:
                _log.warning("Invalid batch in %s at %d: %s", segment.files.path, position, flaw)
                break
            last = header.last_offset
            try:
                segment.note_batch(header.size, last, header.max_timestamp)
                if header.magic >= 2 and last >= known:
                    self._note(header, chunk, at)
            except RecordsError as error:
                _log.warning(
                    "Found an invalid marker in %s at %d: %s", segment.files.path, position, error
                )
                segment.size = position
                break
            self._producers.map_end_offset = max(last + 1, known)
        else:
            self.ended = walk.ended
            if walk.ended not in (Ended.AT_END, Ended.ZEROS):
                _log.warning("%s ends at %d: %s", segment.files.path, walk.position, walk.ended)
        return self._total - segment.size

    def _begin(self) -> int:
        """Forget what the indexes say of the batches to read; returns the first one's position."""
        segment, resume = self._segment, self._resume
        if resume is None:
            segment.indexes.offset.truncate()
            segment.indexes.time.truncate()
            segment.aborted.index.truncate()
        if resume is None or not resume.position:
            segment.restart()
        else:
            segment.restart_from(resume.position)
        if resume is not None:
            segment.aborted.sum = resume.aborted_sum  # markers below its offset are not settled
        return segment.size

    def _note(self, header: BatchHeader, chunk: memoryview, at: int) -> None:
        """Take over the leader epoch and the producer of a good batch."""
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
    """Cut the indexes back to the entries that `resume` counts. Raises OSError."""
    segment.aborted.index.keep(resume.aborted)
    segment.aborted.sum = resume.aborted_sum
    if not resume.is_all:
        segment.indexes.offset.keep(resume.entries)
        segment.indexes.time.keep(resume.time_entries)
