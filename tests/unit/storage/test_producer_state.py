"""Producers of a partition: what `test_kafka_scripts` does not reach by chance."""

import errno
import logging

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader, read_header
from protocol.records.builder import build_batch
from protocol.records.control import ControlType, EndTransactionMarker
from protocol.types import TopicPartition
from storage.errors import CorruptSnapshot, InvalidTransactionState, OutOfOrderSequence
from storage.log.results import AppendOrigin
from storage.producers.analysis import ProducerDecision, ProducerVerdict
from storage.producers.entry import MAX_SEQUENCE, CompletedTxn, decrement_sequence
from storage.producers.snapshot import decode_snapshot, java_map_order
from storage.producers.state import ProducerStateManager
from storage.waits import at_once
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.producer_snapshots import encode_snapshot

NOW = 1_700_000_000_000
DAY = 86_400_000


class Partition:
    """A manager and what a log does around it."""

    def __init__(self, fs: FaultyFileSystem | None = None) -> None:
        self.fs = fs or FaultyFileSystem()
        self.fs.make_dirs("/p")
        self.state = ProducerStateManager(self.fs, TopicPartition("t", 0), "/p")
        self.end = 0

    def header(self, pid: int, epoch: int, sequence: int, count: int = 1) -> BatchHeader:
        batch = build_batch(
            [(NOW, None, b"v", [])], producer_id=pid, producer_epoch=epoch, base_sequence=sequence
        )
        header = read_header(batch)
        header.last_offset_delta = count - 1
        return header

    def produce(
        self,
        pid: int,
        epoch: int,
        sequence: int,
        count: int = 1,
        *,
        transactional: bool = False,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        now: int = NOW,
    ) -> ProducerVerdict:
        header = self.header(pid, epoch, sequence, count)
        header.attributes = TRANSACTIONAL_BIT if transactional else 0
        verdict = self.state.analyze(header, origin)
        if verdict.duplicate_of is None:
            self.state.update(header, self.end, self.end + count - 1, now)
            self._advance(count)
        return verdict

    def end_transaction(
        self, pid: int, epoch: int, *, commit: bool = True, coordinator_epoch: int = 0
    ) -> CompletedTxn | None:
        header = self.header(pid, epoch, -1)
        header.attributes = TRANSACTIONAL_BIT | CONTROL_BIT
        kind = ControlType.COMMIT if commit else ControlType.ABORT
        marker = EndTransactionMarker(control_type=kind, coordinator_epoch=coordinator_epoch)
        self.state.analyze(header, AppendOrigin.COORDINATOR, marker)
        completed = self.state.update(header, self.end, self.end, NOW, marker)
        self._advance(1)
        if completed is not None:
            self.state.complete_txn(completed)
        return completed

    def _advance(self, by: int) -> None:
        self.end += by
        self.state.map_end_offset = self.end
        self.state._check()

    def reopened(self, *, start: int = 0, now: int = NOW) -> "Partition":
        other = Partition(self.fs)
        other.state.truncate_and_reload(start, self.end, now)
        other.end = other.state.map_end_offset
        other.state._check()
        return other


@pytest.fixture
def partition() -> Partition:
    return Partition()


def refused(code: ErrorCode) -> "pytest.RaisesContext[KafkaError]":
    return pytest.raises(KafkaError, check=lambda error: error.code is code)


# --- sequences


def test_s_idem_1_the_last_five_batches_are_recognised(partition: Partition) -> None:
    for n in range(7):
        assert partition.produce(1, 0, n * 2, 2).duplicate_of is None
    for n in range(2, 7):
        verdict = partition.produce(1, 0, n * 2, 2)
        assert verdict.decision is ProducerDecision.DUPLICATE
        assert verdict.duplicate_of is not None
        assert verdict.duplicate_of.first_offset == n * 2
        assert verdict.duplicate_of.last_offset == n * 2 + 1
        assert verdict.duplicate_of.timestamp == NOW
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.produce(1, 0, 2, 2)


def test_s_idem_1_a_repetition_must_match_exactly(partition: Partition) -> None:
    partition.produce(1, 0, 0, 3)
    for sequence, count in ((0, 2), (1, 2), (0, 4), (2, 1)):
        with pytest.raises(OutOfOrderSequence, match="producer 1, partition t-0"):
            partition.produce(1, 0, sequence, count)


def test_s_idem_1_sequences_go_on_at_zero_after_the_largest(partition: Partition) -> None:
    assert partition.produce(1, 0, MAX_SEQUENCE).decision is ProducerDecision.UNKNOWN_PRODUCER
    assert partition.produce(1, 0, 0, 2).decision is ProducerDecision.IN_SEQUENCE
    assert partition.produce(1, 0, MAX_SEQUENCE).decision is ProducerDecision.DUPLICATE
    across = Partition()
    across.produce(1, 0, MAX_SEQUENCE - 1, 4)
    assert across.produce(1, 0, MAX_SEQUENCE - 1, 4).decision is ProducerDecision.DUPLICATE
    assert across.produce(1, 0, 2).decision is ProducerDecision.IN_SEQUENCE
    assert decrement_sequence(1, 3) == MAX_SEQUENCE - 1


def test_s_idem_1_an_unknown_producer_may_begin_anywhere(partition: Partition) -> None:
    assert partition.produce(1, 5, 77).decision is ProducerDecision.UNKNOWN_PRODUCER
    assert partition.produce(1, 5, 78).decision is ProducerDecision.IN_SEQUENCE


def test_s_idem_1_a_new_epoch_begins_at_zero_and_fences_the_old(partition: Partition) -> None:
    partition.produce(1, 0, 0)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.produce(1, 1, 1)
    assert partition.produce(1, 1, 0).decision is ProducerDecision.NEW_EPOCH
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.produce(1, 0, 1)
    assert partition.produce(1, 1, 0).decision is ProducerDecision.DUPLICATE


def test_s_idem_1_coordinators_have_epochs_but_no_sequences(partition: Partition) -> None:
    origin = AppendOrigin.COORDINATOR
    partition.produce(1, 3, -1, origin=origin)
    assert partition.produce(1, 3, -1, origin=origin).decision is ProducerDecision.NOT_SEQUENCED
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.produce(1, 2, -1, origin=origin)
    assert partition.produce(1, 4, -1, origin=origin).decision is ProducerDecision.NOT_SEQUENCED


def test_replicated_batches_are_remembered_not_checked(
    partition: Partition, caplog: pytest.LogCaptureFixture
) -> None:
    partition.produce(1, 5, 10)
    with caplog.at_level(logging.WARNING):
        verdict = partition.produce(1, 4, 99, origin=AppendOrigin.REPLICATION)
    assert verdict.decision is ProducerDecision.REPLICATED
    assert "below the last seen epoch 5" in caplog.text
    entry = partition.state.entry(1)
    assert entry is not None
    assert (entry.producer_epoch, entry.last_sequence, len(entry.batches)) == (4, 99, 1)


def test_a_refused_batch_changes_nothing(partition: Partition) -> None:
    partition.produce(1, 0, 0, transactional=True)
    before = repr(partition.state.entry(1))
    for epoch, sequence in ((0, 5), (1, 3), (-1, 0)):
        with pytest.raises(KafkaError):
            partition.produce(1, epoch, sequence, transactional=True)
    with pytest.raises(InvalidTransactionState):
        partition.produce(1, 0, 1)
    assert repr(partition.state.entry(1)) == before


# --- transactions


def test_s_txn_1_the_first_unstable_offset_waits_for_the_marker_and_the_high_watermark(
    partition: Partition,
) -> None:
    state = partition.state
    partition.produce(9, 0, 0)
    partition.produce(1, 0, 0, transactional=True)  # offset 1
    partition.produce(2, 0, 0, transactional=True)  # offset 2
    assert state.first_unstable_offset == 1
    completed = partition.end_transaction(1, 0)  # offset 3
    assert completed == CompletedTxn(producer_id=1, first_offset=1, last_offset=3, is_aborted=False)
    assert state.first_unstable_offset == 1, "not replicated yet"
    state.on_high_watermark_updated(3)
    assert state.first_unstable_offset == 1, "the marker itself is not below the high watermark"
    state.on_high_watermark_updated(4)
    assert state.first_unstable_offset == 2
    partition.end_transaction(2, 0, commit=False)
    state.on_high_watermark_updated(5)
    assert state.first_unstable_offset is None


def test_s_txn_1_the_last_stable_offset_of_a_completed_transaction(partition: Partition) -> None:
    partition.produce(1, 0, 0, transactional=True)
    partition.produce(2, 0, 0, transactional=True)
    done = CompletedTxn(producer_id=1, first_offset=0, last_offset=2, is_aborted=True)
    assert partition.state.last_stable_offset(done) == 1
    partition.end_transaction(2, 0)
    done = CompletedTxn(producer_id=1, first_offset=0, last_offset=3, is_aborted=True)
    assert partition.state.last_stable_offset(done) == 4


def test_s_txn_1_a_plain_batch_within_a_transaction_is_refused(partition: Partition) -> None:
    partition.produce(1, 0, 0, transactional=True)
    with refused(ErrorCode.INVALID_TXN_STATE):
        partition.produce(1, 0, 1)
    partition.end_transaction(1, 0)
    partition.produce(1, 0, 1)


def test_s_txn_2_a_deposed_coordinator_is_fenced(partition: Partition) -> None:
    partition.produce(1, 0, 0, transactional=True)
    partition.end_transaction(1, 0, coordinator_epoch=5)
    with refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        partition.end_transaction(1, 0, coordinator_epoch=4)
    assert partition.end_transaction(1, 0, coordinator_epoch=5) is None


def test_s_txn_2_a_marker_without_data_and_one_that_bumps_the_epoch(partition: Partition) -> None:
    assert partition.end_transaction(1, 3, commit=False) is None
    assert partition.state.first_unstable_offset is None
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        partition.produce(1, 2, 0, transactional=True)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        partition.produce(1, 3, 7, transactional=True)
    partition.produce(1, 3, 0, transactional=True)


def test_an_emptied_control_batch_teaches_nothing(partition: Partition) -> None:
    header = partition.header(1, 0, -1)
    header.attributes = TRANSACTIONAL_BIT | CONTROL_BIT
    assert partition.state.analyze(header, AppendOrigin.COORDINATOR)
    assert partition.state.update(header, 0, 0, NOW) is None
    assert partition.state.is_empty


def test_completing_what_was_not_begun_is_a_bug(partition: Partition) -> None:
    done = CompletedTxn(producer_id=1, first_offset=0, last_offset=2, is_aborted=True)
    with pytest.raises(ValueError, match="was not started"):
        partition.state.complete_txn(done)


def test_late_transactions_are_noticed(partition: Partition) -> None:
    partition.produce(1, 0, 0, transactional=True)
    allowed = 900_000 + 300_000
    assert not partition.state.has_late_transaction(NOW + allowed, 900_000)
    assert partition.state.has_late_transaction(NOW + allowed + 1, 900_000)
    assert not partition.state.has_late_transaction(NOW + allowed + 1, 900_001)
    partition.end_transaction(1, 0)
    assert not partition.state.has_late_transaction(NOW + DAY, 900_000)


# --- expiry


def test_s_idem_2_idle_producers_expire_unless_a_transaction_is_open(partition: Partition) -> None:
    partition.produce(1, 0, 0)
    partition.produce(2, 0, 0, now=NOW + 1)
    partition.produce(3, 0, 0, transactional=True)
    assert at_once(partition.state.expire(NOW + DAY - 1)) == 0
    assert at_once(partition.state.expire(NOW + DAY)) == 1
    assert sorted(partition.state.producers) == [2, 3]
    partition.state.expiration_ms = 0
    assert at_once(partition.state.expire(NOW + 1)) == 1
    assert sorted(partition.state.producers) == [3]


def test_s_idem_2_expiry_survives_a_restart(partition: Partition) -> None:
    partition.produce(1, 0, 0)
    partition.produce(2, 0, 0, now=NOW + 10)
    partition.state.take_snapshot()
    assert sorted(partition.reopened(now=NOW + DAY - 1).state.producers) == [1, 2]
    assert sorted(partition.reopened(now=NOW + DAY).state.producers) == [2]


def test_s_idem_3_deleting_records_does_not_forget_the_producer(partition: Partition) -> None:
    partition.produce(1, 0, 0, 5)
    partition.state.on_log_start_offset_incremented(5)
    assert partition.produce(1, 0, 5).decision is ProducerDecision.IN_SEQUENCE
    partition.state.on_log_start_offset_incremented(100)
    assert partition.state.map_end_offset == 100


# --- snapshots


def test_s_txn_6_a_restart_restores_sequences_and_open_transactions(partition: Partition) -> None:
    partition.produce(1, 2, 0, 3)
    partition.produce(2, 0, 0, transactional=True)
    partition.end_transaction(4, 1, coordinator_epoch=7)
    assert partition.state.take_snapshot() == 5
    after = Partition(partition.fs.crash())
    after.state.truncate_and_reload(0, 5, NOW)
    assert after.state.map_end_offset == 5
    assert after.state.first_unstable_offset == 3
    assert dict(after.state.producers) == dict(partition.state.producers)
    after.end = 5
    assert after.produce(1, 2, 0, 3).decision is ProducerDecision.DUPLICATE
    assert after.produce(1, 2, 3).decision is ProducerDecision.IN_SEQUENCE
    with refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        after.end_transaction(4, 1, coordinator_epoch=6)


def test_only_the_last_batch_is_kept_in_a_snapshot(partition: Partition) -> None:
    partition.produce(1, 0, 0)
    partition.produce(1, 0, 1)
    partition.state.take_snapshot()
    after = partition.reopened()
    assert after.produce(1, 0, 1).decision is ProducerDecision.DUPLICATE
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        after.produce(1, 0, 0)


def test_a_snapshot_is_taken_only_when_something_was_appended(partition: Partition) -> None:
    assert partition.state.take_snapshot() is None
    partition.produce(1, 0, 0)
    assert partition.state.take_snapshot(sync=False) == 1
    assert partition.state.take_snapshot() is None
    assert partition.fs.list_dir("/p") == ["00000000000000000001.snapshot"]
    assert partition.fs.crash().read_bytes("/p/00000000000000000001.snapshot") == b""
    snapshots = partition.state.snapshots
    assert snapshots.unsynced(0) == ()
    due = snapshots.unsynced(1)
    assert [offset for offset, _ in due] == [1]
    partition.produce(1, 0, 1)
    partition.state.take_snapshot(sync=False)
    snapshots.mark_synced(due)
    assert [offset for offset, _ in snapshots.unsynced(77)] == [2]


def test_a_snapshot_written_again_at_its_offset_is_not_taken_for_synced() -> None:
    snapshots = Partition().state.snapshots
    snapshots.add(5, is_synced=False)
    due = snapshots.unsynced(5)
    snapshots.delete(5)
    assert snapshots.unsynced(5) == ()
    snapshots.add(5, is_synced=False)
    snapshots.mark_synced(due)
    assert len(snapshots.unsynced(5)) == 1


def test_s_rec_5_a_damaged_snapshot_is_deleted_and_an_older_one_used(
    partition: Partition, caplog: pytest.LogCaptureFixture
) -> None:
    partition.produce(1, 0, 0)
    partition.state.take_snapshot()
    partition.produce(1, 0, 1)
    partition.state.take_snapshot()
    path = "/p/00000000000000000002.snapshot"
    data = bytearray(partition.fs.read_bytes(path))
    data[20] ^= 1
    partition.fs.write_bytes(path, bytes(data))
    with caplog.at_level(logging.WARNING):
        after = partition.reopened()
    assert after.state.map_end_offset == 1
    assert not partition.fs.exists(path)
    assert "CRC" in caplog.text


def test_s_rec_5_without_snapshot_replay_begins_at_the_log_start(partition: Partition) -> None:
    partition.end = 50
    after = partition.reopened(start=20)
    assert after.state.map_end_offset == 20
    assert after.state.snapshots.latest is None


def test_s_rec_5_snapshots_outside_the_log_are_deleted(partition: Partition) -> None:
    for n in range(6):
        partition.produce(1, 0, n)
        partition.state.take_snapshot()
    partition.state.truncate_and_reload(2, 4, NOW)
    assert partition.state.snapshots.offsets == (2, 3, 4)
    assert partition.state.map_end_offset == 4
    entry = partition.state.entry(1)
    assert entry is not None
    assert entry.last_sequence == 3


def test_truncation_to_where_the_state_ends_keeps_the_state(partition: Partition) -> None:
    partition.produce(1, 0, 0)
    partition.produce(1, 0, 1)
    partition.state.truncate_and_reload(0, 2, NOW)
    assert partition.produce(1, 0, 0).decision is ProducerDecision.DUPLICATE


def test_starting_anew_forgets_everything(partition: Partition) -> None:
    partition.produce(1, 0, 0, transactional=True)
    partition.state.take_snapshot()
    partition.state.truncate_fully_and_start_at(40)
    assert partition.state.is_empty
    assert partition.state.map_end_offset == 40
    assert partition.state.first_unstable_offset is None
    assert partition.fs.list_dir("/p") == []


def test_s_fl_4_snapshots_go_with_their_segments(partition: Partition) -> None:
    for n in range(5):
        partition.produce(1, 0, n)
        partition.state.take_snapshot()
    state = partition.state
    assert state.snapshots.offsets == (1, 2, 3, 4, 5)
    assert state.snapshots.mark_deleted(3) == "/p/00000000000000000003.snapshot.deleted"
    assert state.snapshots.mark_deleted(3) is None
    partition.fs.unlink("/p/00000000000000000004.snapshot")
    assert state.snapshots.mark_deleted(4) is None
    assert state.snapshots.offsets == (1, 2, 5)


@pytest.mark.parametrize(
    ("bases", "kept"),
    [
        ((0, 2, 4), (2, 4, 9)),
        ((0, 2, 9), (2, 9)),
        ((0, 20), ()),
        ((), (9,)),
    ],
)
def test_s_rec_5_stray_snapshots_go_except_the_one_of_a_clean_shutdown(
    bases: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    fs = FaultyFileSystem()
    for offset in (1, 2, 3, 4, 9):
        fs.write_bytes(f"/p/{offset:020d}.snapshot", b"")
    fs.write_bytes("/p/00000000000000000005.snapshot.deleted", b"")
    fs.write_bytes("/p/odd.snapshot", b"")
    state = ProducerStateManager(fs, TopicPartition("t", 0), "/p")
    state.snapshots.delete_strays(bases)
    assert state.snapshots.offsets == kept
    state._check()


def test_a_snapshot_that_cannot_be_written_is_not_counted(partition: Partition) -> None:
    partition.produce(1, 0, 0)
    partition.fs.fail("pwrite", errno=errno.ENOSPC, partial=9)
    with pytest.raises(OSError, match="No space"):
        partition.state.take_snapshot()
    assert partition.state.snapshots.offsets == ()
    assert partition.state.take_snapshot() == 1
    assert len(decode_snapshot(partition.fs.read_bytes("/p/00000000000000000001.snapshot"))) == 1


def test_a_snapshot_cut_anywhere_or_longer_is_corrupt(partition: Partition) -> None:
    partition.produce(1, 0, 0)
    partition.produce(2, 0, 0)
    data = encode_snapshot(list(partition.state.producers.values()))
    assert len(data) == 10 + 2 * 46
    assert encode_snapshot(decode_snapshot(data)) == data
    for end in range(len(data)):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(data[:end], "s")
    for bad in (data + b"\0", b"\0\2" + data[2:], data + data):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(bad, "s")


def test_s_fmt_3_entries_are_in_the_order_of_a_java_map() -> None:
    assert list(java_map_order([3, 1, 16, 0, 17], 5)) == [16, 0, 1, 17, 3]
    assert list(java_map_order([16, 17, 0], 13)) == [0, 16, 17]
    assert list(java_map_order([1 << 32, 2, 0], 3)) == [0, 1 << 32, 2]


def test_snapshots_move_with_their_partition(partition: Partition) -> None:
    partition.produce(1, 0, 0)
    partition.produce(2, 0, 0)
    partition.state.take_snapshot()
    partition.state.update_parent_dir("/q")
    assert partition.state.snapshots.path(2) == "/q/00000000000000000002.snapshot"
