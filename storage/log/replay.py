"""Updating the producer state from batches, at an append and when the state is rebuilt.

The same function serves a live append, recovery after a crash and a truncation, so that the state
rebuilt is the state before (S-TXN-6); `remember_again` handles the one case that differs. Only
control batches are opened, for their one small record.

`Log` and the loader call this. `remember` raises what `iter_records` does for a damaged marker,
everything OSError.
"""

import logging

from protocol.records.batch import CONTROL_BIT, BatchHeader
from protocol.records.errors import RecordsError
from protocol.types import MAX_SEQUENCE
from storage.index.transaction_index import AbortedTxn
from storage.log.markers import marker_of
from storage.log.scan import Walk
from storage.log.segment import LogSegment
from storage.log.segments import LogSegments
from storage.log.validation import Bytes
from storage.producers.entry import CompletedTxn
from storage.producers.state import ProducerStateManager

_log = logging.getLogger(__name__)


def remember(
    producers: ProducerStateManager, header: BatchHeader, buf: Bytes, at: int
) -> CompletedTxn | None:
    """Add a batch with a producer id to the state; returns the transaction that it ended."""
    marker, timestamp = None, header.max_timestamp
    if header.attributes & CONTROL_BIT:
        marker, timestamp = marker_of(buf, at)
    return producers.update(header, header.base_offset, header.last_offset, timestamp, marker)


def remember_again(
    producers: ProducerStateManager, header: BatchHeader, buf: Bytes, at: int
) -> CompletedTxn | None:
    """`remember` a batch that is read back from the log.

    A batch that begins at sequence 0 was appended when its producer was unknown. If earlier batches
    of it are still in the log, it had expired, so they are forgotten here: otherwise the sequences
    that follow would count as duplicates. (Kafka keeps them.)
    """
    if header.base_sequence == 0:
        entry = producers.entry(header.producer_id)
        if (
            entry is not None
            and entry.producer_epoch == header.producer_epoch
            and entry.last_sequence != MAX_SEQUENCE  # which 0 follows
        ):
            producers.start_epoch(header.producer_id, header.producer_epoch)
    return remember(producers, header, buf, at)


def settle(
    producers: ProducerStateManager, segment: LogSegment | None, completed: CompletedTxn
) -> None:
    """Close a transaction that ended; if it was aborted, index it in `segment`, if given."""
    if segment is not None and completed.is_aborted:
        segment.aborted.add(
            AbortedTxn(
                producer_id=completed.producer_id,
                first_offset=completed.first_offset,
                last_offset=completed.last_offset,
                last_stable_offset=producers.last_stable_offset(completed),
            )
        )
    producers.complete_txn(completed)


def rebuild(
    producers: ProducerStateManager,
    segments: LogSegments,
    end_offset: int,
    now_ms: int,
    *,
    clean: bool = False,
) -> None:
    """Rebuild the state of a log that ends at `end_offset`, and snapshot it there (S-REC-5).

    Batches are replayed from the newest snapshot on. The log start does not matter: all of the
    first segment counts, and so does the snapshot at its base, which alone knows the producers
    whose records were deleted with earlier segments (S-IDEM-3, decision 16).

    `clean` without any snapshot: the directory was closed by a version that kept none, so no
    producer is remembered, and empty snapshots are written.
    """
    wanted = _snapshot_offsets(segments, end_offset)
    if clean and producers.snapshots.latest is None:
        for offset in wanted:
            producers.map_end_offset = offset
            producers.take_snapshot()
        return
    nobody_known = producers.is_empty and producers.map_end_offset >= end_offset
    producers.truncate_and_reload(segments.first.base_offset, end_offset, now_ms)
    if producers.map_end_offset < end_offset and not nobody_known:
        for segment in segments.from_offset(producers.map_end_offset):
            if segment.base_offset >= end_offset:
                break
            start = max(segment.base_offset, producers.map_end_offset)
            producers.map_end_offset = start
            if segment.base_offset in wanted and start == segment.base_offset:
                producers.take_snapshot()
            _replay(producers, segment, start, end_offset)
    producers.map_end_offset = end_offset
    producers.take_snapshot()


def _snapshot_offsets(segments: LogSegments, end_offset: int) -> list[int]:
    """The bases of the last two segments and the end: the likeliest targets of a truncation."""
    offsets = []
    if len(segments):
        last = segments.active.base_offset
        before = segments.lower(last)
        offsets = [before.base_offset] if before is not None else []
        offsets.append(last)
    return [offset for offset in offsets if offset < end_offset] + [end_offset]


def _replay(
    producers: ProducerStateManager, segment: LogSegment, start: int, end_offset: int
) -> None:
    """Replay the batches of one segment from `start` on, up to `end_offset` or to a damaged one.

    Below the recovery point damage stays where it is, and its readers are refused.
    """
    try:
        position = _position_of(segment, start)
        for _, header, chunk, at in Walk(segment.file, position, segment.size):
            if header.base_offset >= end_offset:
                break
            if header.magic >= 2 and header.producer_id >= 0:
                completed = remember_again(producers, header, chunk, at)
                if completed is not None:
                    settle(producers, None, completed)
            producers.map_end_offset = header.last_offset + 1
    except RecordsError as error:
        _log.warning("The producers in the rest of %s are not known: %s", segment.files.path, error)


def _position_of(segment: LogSegment, start: int) -> int:
    """The position of the batch that holds `start`, or the next. Raises CorruptBatch, OSError."""
    if start == segment.base_offset:
        return 0
    found = segment.find_for_sure(start)
    return segment.size if found is None else found.position
