"""Reading a log by offset: finds the segment, the bytes, and the aborted transactions.

A consumer's next fetch mostly starts where its last one ended. The place where a read ended at the
reader's limit is remembered (`_ends`), so that such a fetch costs no lookup at all; others cost an
index bisection and one small read (`position`).

A read never goes past the file position of its limit (S-READ-7), so a batch that is only partly
exposed is not returned.

Only `Log` and its parts use this.
"""

from itertools import count
from typing import TYPE_CHECKING, Final, TypeAlias

from protocol.records.errors import RecordsError
from storage.errors import IndexInDoubt, OffsetOutOfRange
from storage.log.guard import DiskGuard
from storage.log.mending import IndexMender
from storage.log.offsets import LogOffsets, Place
from storage.log.position import read_batch_size
from storage.log.results import MOST_ABORTED, FetchIsolation, FileSlice, ReadInfo
from storage.log.segment import LogSegment
from storage.log.segments import LogSegments
from storage.log.validation import refusal

if TYPE_CHECKING:
    from storage.index.transaction_index import AbortedTxn

_REMEMBERED: Final = 64
"""Read ends kept per log, for a few consumer groups at the tail; one more clears them all."""


_TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED

_next_form: Final = count().__next__

Moment: TypeAlias = tuple[int, int, int, int, int]


class LogReader:
    """Reads over the segments of one log."""

    __slots__ = ("_ends", "_form", "_guard", "_mender", "_offsets", "_segments")

    def __init__(
        self, segments: LogSegments, offsets: LogOffsets, guard: DiskGuard, mender: IndexMender
    ) -> None:
        self._mender = mender
        self._segments = segments
        self._offsets = offsets
        self._guard = guard
        self._ends: dict[int, Place] = {}
        self._form = _next_form()
        """Another number, of all logs, whenever segments were cut, replaced or removed."""

    def moment(self) -> Moment:
        """All that the result of a read depends on: equal moments mean equal results."""
        offsets = self._offsets
        return (
            self._form,
            offsets.start,
            offsets.high_watermark,
            offsets.end,
            self._segments.active.base_offset,
        )

    def forget(self) -> None:
        """Drop remembered places: segments were cut, replaced or removed."""
        self._form = _next_form()
        self._ends.clear()
        self._offsets.high_watermark_place = None

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        min_one_message: bool = True,
    ) -> ReadInfo:
        """Read records from the batch that holds `offset`, up to what `isolation` shows (S-READ-5).

        With `min_one_message` at least one whole batch, else at most `max_bytes`. No records if the
        reader is at its limit. Raises OffsetOutOfRange, StorageError, CORRUPT_MESSAGE,
        BeingRepaired.
        """
        offsets = self._offsets
        end = offsets.end
        if not offsets.start <= offset <= end:
            raise OffsetOutOfRange(
                offset, start=offsets.start, high_watermark=offsets.high_watermark, end=end
            )
        with_aborted = isolation is _TXN_COMMITTED
        limit = offsets.visible_end(isolation)
        if offset >= limit:
            return nothing(offset, with_aborted=with_aborted, urgent=offset > limit)
        if self._guard.offline is not None:
            self._guard.check()  # raises
        try:
            return self._read_slice(
                offset,
                max_bytes,
                limit,
                self._place_of(limit),
                min_one_message=min_one_message,
                with_aborted=with_aborted,
            )
        except OSError as error:
            self._guard.fail(error)
        except RecordsError as flaw:
            raise refusal(flaw) from flaw
        except IndexInDoubt as doubt:
            self._mender.note(doubt)  # raises BeingRepaired, unless repaired here and now
        return self.read(offset, max_bytes, isolation, min_one_message)

    def _place_of(self, limit: int) -> Place:
        """The place of the offset `limit`, where its reader has to stop (S-READ-7)."""
        offsets = self._offsets
        if limit == offsets.end:
            active = self._segments.active
            return active, active.size
        if limit == offsets.high_watermark and offsets.high_watermark_place is not None:
            return offsets.high_watermark_place
        place = self.locate(limit)
        if place is None:
            active = self._segments.active
            place = active, active.size
        if limit == offsets.high_watermark:
            offsets.high_watermark_place = place
        return place

    def end_base(self, isolation: FetchIsolation) -> int:
        """Base offset of the segment in which the next record that `isolation` shows will lie."""
        return self._segment_of(self._offsets.visible_end(isolation)).base_offset

    def locate(self, offset: int) -> Place | None:
        """The start of the batch that holds `offset`, or of the next one; None at the log's end."""
        found = self._find(offset)
        return None if found is None else found[:2]

    def _read_slice(
        self,
        offset: int,
        max_bytes: int,
        limit: int,
        limit_place: Place,
        *,
        min_one_message: bool,
        with_aborted: bool,
    ) -> ReadInfo:
        """Whole batches from the one that holds `offset`, at most to `limit` (exclusive).

        `offset` < `limit`, and `limit_place` is where the batch that starts at or holds `limit`
        begins. One slice lies in one segment, so a read may end at a segment's end (S-READ-3,
        S-READ-4).
        """
        limit_segment, limit_position = limit_place
        found = self._find(offset)
        if found is None:
            return nothing(offset, with_aborted=with_aborted)
        segment, position, first_size = found
        urgent = segment.base_offset < self._segment_of(limit).base_offset
        if segment is limit_segment:
            end = limit_position
        elif segment.base_offset < limit_segment.base_offset:
            end = segment.size
        else:
            end = position
        size, incomplete = end - position, False
        if size > max_bytes:
            first_size = first_size or read_batch_size(segment.file, position)
            if first_size <= max_bytes or not min_one_message:
                size, incomplete = max_bytes, first_size > max_bytes
            else:
                size = min(size, first_size)
        elif segment is limit_segment:
            self._remember(limit, limit_place)
        if size <= 0:
            return nothing(offset, with_aborted=with_aborted, urgent=urgent)
        records = FileSlice(segment.file, position, size)
        info = ReadInfo(offset, records, segment.base_offset, position, incomplete, urgent=urgent)
        if with_aborted:
            whole = segment is limit_segment and position + size == end
            upper = limit if whole else self._upper_bound(segment, position, size, limit)
            marker = segment.aborted.marker_after(offset, MOST_ABORTED)
            if marker is not None and marker < upper:
                upper = marker
                info.records = _before(segment, marker, position, size)
            info.aborted = self.aborted(segment, offset, upper)
        return info

    def _find(self, offset: int) -> tuple[LogSegment, int, int] | None:
        """Segment, position and size (0: not known) of the first batch of a read at `offset`."""
        known = self._ends.get(offset)
        if known is not None and known[1] < known[0].size:
            return known[0], known[1], 0
        segment: LogSegment | None = self._segment_of(offset)
        while segment is not None:
            found = segment.find(offset)
            if found is not None:
                return segment, found.position, found.size
            segment = self._segments.higher(segment.base_offset)
        return None

    def aborted(self, segment: LogSegment, offset: int, upper: int) -> "list[AbortedTxn]":
        """Aborted transactions that overlap [offset, upper), from `segment` on (S-READ-5)."""
        found: list[AbortedTxn] = []
        following: LogSegment | None = segment
        while following is not None:
            some, complete = following.aborted.overlapping(offset, upper)
            found += some
            if complete or not following.aborted.leaves_open:
                break
            following = self._segments.higher(following.base_offset)
        return found

    def packed_aborted(self, end: int) -> bytes:
        """The index entries of aborted transactions with data below `end`, and perhaps of others,
        in the order of their markers; as bytes, because there may be millions.

        `end` is a segment's base, not above the last stable offset. Raises BeingRepaired,
        StorageError.
        """
        with self._guard.reading():
            return self._mender.answer(lambda: self._packed_aborted(end))

    def _packed_aborted(self, end: int) -> bytes:
        segments = self._segments.between(0, end)
        pieces = [segment.aborted.packed() for segment in segments]
        # The marker of a transaction that began below `end` may lie in a later segment.
        if segments and segments[-1].aborted.leaves_open:
            following = self._segments.higher(segments[-1].base_offset)
            if following is not None:
                pieces += [txn.pack() for txn in self.aborted(following, 0, end)]
        return b"".join(pieces)

    def _upper_bound(self, segment: LogSegment, position: int, size: int, limit: int) -> int:
        """An offset above all offsets in the `size` bytes at `position`."""
        bound = segment.indexes.bound_of(position, size, segment.size)
        if bound is not None:
            return bound
        following = self._segments.higher(segment.base_offset)
        return limit if following is None else following.base_offset

    def _segment_of(self, offset: int) -> LogSegment:
        active = self._segments.active
        if offset >= active.base_offset:
            return active
        return self._segments.floor(offset) or self._segments.first

    def _remember(self, offset: int, place: Place) -> None:
        ends = self._ends
        if offset not in ends:
            if len(ends) >= _REMEMBERED:
                ends.clear()
            ends[offset] = place


def nothing(offset: int, *, with_aborted: bool, urgent: bool = False) -> ReadInfo:
    """An answer without records: the reader is at its limit, or may have no bytes."""
    return ReadInfo(offset, b"", aborted=[] if with_aborted else None, urgent=urgent)


def _before(segment: LogSegment, offset: int, position: int, size: int) -> FileSlice:
    """The part of the `size` bytes at `position` before the batch that holds `offset`."""
    found = segment.find(offset)
    if found is not None:
        size = min(size, found.position - position)
    return FileSlice(segment.file, position, size)
