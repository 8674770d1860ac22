"""Transactions in a compacted log (S-CMP-7): cases of Kafka's LogCleanerTest, and their indexes."""

import pytest

from protocol.records.batch import DELETE_HORIZON_BIT
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType
from storage.cleaner.fates import RecordFate
from storage.index.transaction_index import TransactionIndex
from storage.waits import at_once
from tests.support.compacted_log import CompactedLog
from tests.support.log_builder import DIRECTORY

RETENTION = 1000
A, B, C = (b"a", b"1"), (b"b", b"2"), (b"c", b"3")


def new_log() -> CompactedLog:
    return CompactedLog(delete_retention_ms=RETENTION)


def bases(log: CompactedLog) -> list[int]:
    return [header.base_offset for header, _ in log.batches()]


def markers(log: CompactedLog) -> list[int]:
    return [
        header.base_offset for header, records in log.batches() if header.is_control and records
    ]


def indexed(log: CompactedLog) -> list[tuple[int, int, int]]:
    """(producer, first, marker) of what the transaction indexes say, read from the files."""
    found = []
    for segment in log.log.segments:
        index = TransactionIndex(log.fs, segment.files.txn_index_path, segment.base_offset)
        found += [(t.producer_id, t.first_offset, t.last_offset) for t in index.all_aborted()]
    return found


def expire(log: CompactedLog, *producers: int) -> None:
    """Nobody remembers these any more."""
    log.clock.advance(ms=10**9)
    log.log.producers.expiration_ms = 1
    at_once(log.log.producers.expire(log.clock.wall_ms()))
    assert all(log.log.producers.entry(producer) is None for producer in producers)


def test_s_cmp_7_aborted_data_goes_at_once_and_is_not_in_the_map() -> None:
    log = new_log()
    log.put(A, B)
    log.transactional(1, 0, (b"a", b"aborted"))
    log.abort(1)
    log.transactional(2, 0, (b"b", b"committed"))
    log.commit(2)
    stats = log.clean()
    assert log.offsets() == [0, 4]
    assert log.state_of(log.seen()) == {b"a": b"1", b"b": b"committed"}
    assert stats.fates[RecordFate.DROPPED_ABORTED] == 1


def test_s_cmp_7_an_abort_marker_stays_while_data_is_left_and_then_until_its_horizon() -> None:
    log = new_log()
    log.transactional(1, 0, A)
    log.abort(1)
    log.keys(1)
    log.clean()
    # The data batch is the last of an active producer: its header is data still.
    assert (bases(log), markers(log), log.offsets()) == ([0, 1, 2], [1], [2])
    assert indexed(log) == [(1, 0, 1)]
    expire(log, 1)
    log.clean()
    # In this walk the header was met, so the marker is judged by the next one.
    assert (bases(log), indexed(log)) == ([1, 2], [(1, 0, 1)])
    assert not log.batches()[0][0].attributes & DELETE_HORIZON_BIT
    log.clean()
    assert (bases(log), indexed(log)) == ([1, 2], [])
    (marker, _), *_ = log.batches()
    assert marker.attributes & DELETE_HORIZON_BIT
    assert marker.base_timestamp == log.clock.wall_ms() + RETENTION
    log.clock.advance(ms=RETENTION - 1)
    log.clean()
    assert bases(log) == [1, 2]
    log.clock.advance(ms=1)
    stats = log.clean()
    assert bases(log) == [2]
    assert stats.fates[RecordFate.DROPPED_MARKER] == 1


def test_s_cmp_7_a_commit_marker_stays_while_data_is_left() -> None:
    log = new_log()
    log.transactional(1, 0, A)
    log.commit(1)
    log.put(B)
    for _ in range(3):
        log.clean()
        log.clock.advance(ms=RETENTION)
        assert (log.offsets(), markers(log)) == ([0, 2], [1])
    log.put((b"a", b"new"))
    expire(log, 1)
    log.clean()
    assert (log.offsets(), markers(log)) == ([2, 3], [1])
    assert not log.batches()[0][0].attributes & DELETE_HORIZON_BIT
    log.clean()
    assert log.batches()[0][0].attributes & DELETE_HORIZON_BIT
    log.clock.advance(ms=RETENTION)
    log.clean()
    assert bases(log) == [2, 3]


def test_s_cmp_7_the_marker_of_a_producer_without_data_stays_for_its_epoch() -> None:
    log = new_log()
    log.end_transaction(5, ControlType.COMMIT)
    log.keys(1)
    for _ in range(3):
        log.clean()
        log.clock.advance(ms=RETENTION)
    # Its record is gone, and the header tells the epoch (fencing).
    (header, records), _ = log.batches()
    assert (header.producer_id, header.is_control, records) == (5, True, [])
    assert log.log.producers.entry(5) is not None
    log.stopped()
    expire(log, 5)
    log.clean()
    assert bases(log) == [1]


def test_s_cmp_7_the_last_batch_of_an_active_producer_is_kept_empty() -> None:
    log = new_log()
    for sequence in range(3):
        log.put((b"a", b"%d" % sequence), producer_id=9, producer_epoch=0, base_sequence=sequence)
    log.put((b"a", b"other"))
    log.clean()
    (last, records), (_, [kept]) = log.batches()
    assert (last.base_offset, last.base_sequence, records, kept.offset) == (2, 2, [], 3)
    log.killed()
    # Sequence 3 follows, and a repetition of the last one is known.
    info = log.put((b"a", b"2"), producer_id=9, producer_epoch=0, base_sequence=2)
    assert (info.first_offset, log.log.log_end_offset) == (2, 4)
    log.put((b"a", b"3"), producer_id=9, producer_epoch=0, base_sequence=3)
    assert log.offsets() == [3, 4]


@pytest.mark.parametrize("kind", [ControlType.ABORT, ControlType.COMMIT])
def test_s_cmp_7_transactions_over_several_segments(kind: ControlType) -> None:
    log = new_log()
    log.transactional(1, 0, A)
    log.log.roll()
    log.transactional(1, 1, B)
    log.keys(1)
    log.log.roll()
    log.transactional(1, 2, C)
    log.log.roll()
    log.end_transaction(1, kind)  # in the active segment, which is not cleaned
    log.put((b"z", b"1"))
    log.clean(roll=False)
    aborted = kind is ControlType.ABORT
    assert log.offsets() == ([2, 5] if aborted else [0, 1, 2, 3, 5])
    assert {one.offset for one in log.committed()} == set(log.offsets())
    assert markers(log) == [4]
    # The entry is where its marker is, and covers what is left of the data.
    assert indexed(log) == ([(1, 0, 4)] if aborted else [])


def test_s_cmp_7_the_new_index_covers_all_that_was_merged() -> None:
    log = new_log()
    for producer in (1, 2, 3):
        log.transactional(producer, 0, (b"k%d" % producer, b"1"))
        log.abort(producer)
        log.log.roll()
    log.keys(1)
    log.clean()
    assert len(log.log.segments) == 2
    assert indexed(log) == [(1, 0, 1), (2, 2, 3), (3, 4, 5)]
    assert [one.offset for one in log.committed()] == [6]
    log.killed()
    log.log.update_high_watermark(log.log.log_end_offset)
    assert [one.offset for one in log.committed()] == [6]


def test_s_cmp_7_readers_need_not_read_a_cleaned_segment_for_its_index() -> None:
    log = new_log()
    log.transactional(1, 0, A)
    log.abort(1)
    log.keys(1)
    log.clean()
    segment = log.log.segments.first
    assert segment.aborted.sum == segment.aborted.index.checksum != (0, 0)
    log.clean()
    assert log.log.segments.first is not segment
    assert log.log.segments.first.aborted.sum == segment.aborted.index.checksum


def test_s_cmp_7_an_index_that_lies_does_not_bring_aborted_data_back() -> None:
    """The cleaner asks the log's own knowledge, and that is rebuilt when it is in doubt."""
    log = new_log()
    log.transactional(1, 0, A)
    log.abort(1)
    log.keys(1)
    path = log.log.segments.first.files.txn_index_path
    log.log.roll()
    log.stopped()
    log.fs.unlink(path)
    log.clean(roll=False)
    assert log.offsets() == [2]


def test_a_transaction_that_is_open_bounds_nothing_here() -> None:
    """The planner ends a cleaning below an open transaction; the cleaning itself does not look."""
    log = new_log()
    log.put(A)
    log.log.roll()
    log.transactional(1, 0, A)
    log.clean(roll=False)
    assert log.offsets() == [0, 1]
    assert log.log.dir == DIRECTORY


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
def test_s_cmp_7_an_emptied_batch_has_neither_codec_nor_horizon(codec: CompressionType) -> None:
    log = new_log()
    log.put((b"a", None), codec=codec, producer_id=9, producer_epoch=3, base_sequence=7)
    log.keys(1)
    log.clean()
    before = log.batches()[0][0]
    assert before.attributes == codec | DELETE_HORIZON_BIT
    log.clock.advance(ms=RETENTION)
    log.clean()
    ((header, records), _) = log.batches()
    assert (header.attributes, header.base_timestamp, records) == (0, -1, [])
    assert header.max_timestamp == before.max_timestamp
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 3, 7)
