"""Opening what a stop, a kill or a power cut left (S-REC-1 to S-REC-10)."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.records.control import ControlType
from storage import recovery
from storage.errors import StorageError
from storage.log.log import Log
from storage.log.results import FetchIsolation, StartOffsetReason
from storage.recovery import LoadOptions, load_log
from tests.support.log_builder import DIRECTORY, TP, LogBuilder
from tests.support.manual_clock import ManualClock


def path(base: int, kind: str = "log") -> str:
    return f"{DIRECTORY}/{base:020d}.{kind}"


def filled(**config: object) -> LogBuilder:
    """Three segments of four batches of two records."""
    built = LogBuilder(index_interval_bytes=0, **config)
    for at in range(12):
        if at in (4, 8):
            built.log.roll()
        built.append(2, producer_id=7, producer_epoch=0, base_sequence=2 * at)
    return built


def offsets(built: LogBuilder) -> list[int]:
    return [record.offset for record in built.records()]


def test_s_rec_1_a_clean_stop_is_believed_without_reading_the_log() -> None:
    built = filled()
    built.stopped()
    before = len(built.fs.operations)
    built.open(clean=True)
    touched = {name for _, name in built.fs.operations[before:] if name.endswith(".log")}
    assert path(0) not in {name for op, name in built.fs.operations[before:] if op == "open"}
    assert path(8) in touched
    log = built.log
    assert (log.log_end_offset, log.recovery_point) == (24, 24)
    assert offsets(built) == list(range(24))


def test_s_rec_3_everything_is_rebuilt_after_a_kill() -> None:
    built = filled()
    wanted = [
        (list(s.offset_index.as_array()), s.time_index.last_entry) for s in built.log.segments
    ]
    for base in (0, 8, 16):
        for kind in ("index", "timeindex"):
            built.fs.write_bytes(path(base, kind), b"\xff" * 100)
    built.fs.unlink(f"{DIRECTORY}/leader-epoch-checkpoint", missing_ok=True)
    for name in built.names():
        if name.endswith(".snapshot"):
            built.fs.unlink(f"{DIRECTORY}/{name}")
    log = built.killed()
    assert [list(s.offset_index.as_array()) for s in log.segments] == [w[0] for w in wanted]
    assert [s.time_index.last_entry for s in log.segments][:2] == [w[1] for w in wanted][:2]
    assert log.leader_epochs.entries == [(0, 0)]
    entry = log.producers.entry(7)
    assert entry is not None
    assert (entry.last_sequence, len(entry.batches)) == (23, 5)
    assert offsets(built) == list(range(24))
    log._check()


def test_s_rec_3_a_cut_takes_later_segments_along() -> None:
    built = filled()
    file = built.fs.open(path(8))
    file.pwrite(b"\x00", file.size() // 2 + 30)
    log = built.killed()
    assert log.segments.base_offsets == [0, 8]
    assert log.log_end_offset == 12
    assert offsets(built) == list(range(12))
    assert log.producers.entry(7).last_sequence == 11  # type: ignore[union-attr]
    assert built.append().first_offset == 12
    built.stopped()
    assert offsets(built) == list(range(13))


def test_s_rec_3_only_from_the_recovery_point_on() -> None:
    built = filled()
    file = built.fs.open(path(0))
    file.pwrite(b"\x00", 100)
    log = built.killed(recovery_point=8)
    assert log.segments.base_offsets == [0, 8, 16]
    assert (log.log_end_offset, log.recovery_point) == (24, 8)


def test_s_rec_3_a_segment_that_starts_wrong_is_cut_to_its_base() -> None:
    built = filled()
    data = built.fs.read_bytes(path(0))
    built.fs.write_bytes(path(8), data)  # offsets below the base
    log = built.killed()
    assert (log.segments.base_offsets, log.log_end_offset) == ([0, 8], 8)


TORN = {
    "half a header": lambda good, batch: good + batch[:9],
    "header only": lambda good, batch: good + batch[:61],
    "length beyond the end": lambda good, batch: good + batch[:-1],
    "zeroed pages": lambda good, batch: good + bytes(4096),
    "bad checksum": lambda good, batch: good + batch[:-1] + bytes([batch[-1] ^ 1]),
    "valid batch after garbage": lambda good, batch: good + b"\x01" * 50 + batch,
    "valid batch after zeros": lambda good, batch: good + bytes(80) + batch,
    "the same batch again": lambda good, batch: good + good[-len(batch) :],
    "huge length": lambda good, batch: good + batch[:8] + b"\x7f\xff\xff\xff" + batch[12:],
    "negative length": lambda good, batch: good + batch[:8] + b"\xff\xff\xff\xff" + batch[12:],
    "unknown magic": lambda good, batch: good + batch[:16] + b"\x09" + batch[17:],
}


@pytest.mark.parametrize("form", TORN)
@pytest.mark.parametrize("clean", [False, True])
def test_s_rec_9_torn_tails_end_the_log_at_the_last_whole_batch(form: str, clean: bool) -> None:
    built = filled()
    good = built.fs.read_bytes(path(16))
    batch = bytes(built.batch(2, base_offset=24, producer_id=7, producer_epoch=0, base_sequence=24))
    if clean:
        if form in ("bad checksum", "the same batch again"):
            pytest.skip("a clean stop is believed as far as the frames go")
        built.stopped()
    built.fs.write_bytes(path(16), TORN[form](good, batch))
    built.fs = built.fs.crash(keep_unsynced=True)
    log = built.open(clean=clean)
    assert log.log_end_offset == 24
    assert built.fs.size(path(16)) == len(good)
    assert built.append(2, producer_id=7, producer_epoch=0, base_sequence=24).first_offset == 24
    assert offsets(built) == list(range(26))
    log._check()


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("base", [0, 16])
def test_s_rec_9_missing_index_files_are_rebuilt(kind: str, base: int, clean: bool) -> None:
    built = filled()
    built.stopped()
    wanted = built.fs.read_bytes(path(base, kind))
    built.fs.unlink(path(base, kind))
    log = built.open(clean=clean)
    assert offsets(built) == list(range(24))
    for segment in log.segments:
        segment.close()
    assert built.fs.read_bytes(path(base, kind)) == wanted


def test_s_idx_8_an_empty_time_index_below_the_recovery_point_is_rebuilt() -> None:
    built = filled()
    built.stopped()
    wanted = built.fs.read_bytes(path(0, "timeindex"))
    built.fs.write_bytes(path(0, "timeindex"), b"")
    built.killed(recovery_point=24)
    assert built.fs.read_bytes(path(0, "timeindex")) == wanted


def test_s_idx_8_and_6_a_padded_index_below_the_recovery_point_is_rebuilt() -> None:
    built = filled()
    built.log.flush()
    built.log.close()
    wanted = built.fs.read_bytes(path(0, "index"))
    built.fs.write_bytes(path(0, "index"), wanted[:8] + bytes(800))
    log = built.killed(recovery_point=24)
    assert log.log_end_offset == 24
    assert list(log.segments.first.offset_index.as_array()["position"]) == [
        int.from_bytes(wanted[at + 4 : at + 8], "big") for at in range(0, len(wanted), 8)
    ]


@pytest.mark.parametrize("clean", [False, True])
def test_s_rec_9_zero_length_and_missing_record_files(clean: bool) -> None:
    built = filled()
    built.stopped()
    built.fs.write_bytes(path(16), b"")
    log = built.open(clean=clean)
    assert log.log_end_offset == 16
    built.fs.unlink(path(16))
    log = built.open(clean=clean)
    assert f"{16:020d}.index" not in built.names()
    assert log.log_end_offset == 16
    assert offsets(built) == list(range(16))


def test_s_rec_9_an_index_longer_than_its_log() -> None:
    built = filled()
    built.stopped()
    size = built.fs.size(path(16)) // 2
    built.fs.write_bytes(path(16), built.fs.read_bytes(path(16))[:size])
    log = built.open(clean=True)
    assert log.log_end_offset == 20
    assert offsets(built) == list(range(20))
    assert log.segments.active.offset_index.last_offset < 20


def test_s_rec_9_a_txn_index_cut_in_an_entry() -> None:
    built = LogBuilder()
    for producer in (1, 2):
        built.append(2, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
        built.end_transaction(producer, replicated=False)
    wanted = built.fs.read_bytes(path(0, "txnindex"))
    assert len(wanted) == 68
    for clean in (True, False):
        built.stopped()
        built.fs.write_bytes(path(0, "txnindex"), wanted[:50])
        built.open(clean=clean)
        assert built.fs.read_bytes(path(0, "txnindex")) == wanted


def test_s_rec_2_leftovers_of_an_unfinished_compaction_go() -> None:
    built = filled()
    built.stopped()
    for kind in ("log", "index", "timeindex"):
        built.fs.write_bytes(path(8, f"{kind}.cleaned"), b"half written")
        built.fs.write_bytes(path(0, f"{kind}.deleted"), b"old")
    built.fs.write_bytes(path(16, "log.swap"), b"of a split that did not get through")
    built.open()
    assert all(name.count(".") <= 1 for name in built.names())
    assert offsets(built) == list(range(24))


@pytest.mark.parametrize("clean", [False, True])
def test_s_rec_2_a_finished_swap_replaces_its_segments(clean: bool) -> None:
    built = filled()
    built.stopped()
    merged = built.fs.read_bytes(path(0)) + built.fs.read_bytes(path(8))
    built.fs.write_bytes(path(0, "log.swap"), merged)
    log = built.open(clean=clean)
    assert log.segments.base_offsets == [0, 16]
    assert offsets(built) == list(range(24))
    log._check()


def test_s_rec_4_a_log_start_beyond_the_end_starts_over() -> None:
    built = filled()
    log = built.killed(log_start_offset=100)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert log.segments.base_offsets == [100]
    assert log.producers.is_empty
    assert log.leader_epochs.is_empty
    assert built.append().first_offset == 100


def test_log_start_from_the_checkpoint_or_the_first_segment() -> None:
    built = filled()
    assert built.killed(log_start_offset=5).log_start_offset == 5
    for kind in ("log", "index", "timeindex"):
        built.fs.unlink(path(0, kind))
    assert built.killed(log_start_offset=5).log_start_offset == 8


def test_s_rec_5_a_corrupt_snapshot_is_replaced_by_an_older_one_and_replay() -> None:
    built = filled()
    built.stopped()
    built.fs.write_bytes(path(24, "snapshot"), b"rubbish")
    entry = built.open().producers.entry(7)
    assert entry is not None
    assert entry.last_sequence == 23
    assert len(entry.batches) > 1  # replayed, not read


def test_s_rec_5_clean_without_any_snapshot_remembers_nobody() -> None:
    built = filled()
    built.stopped()
    for name in built.names():
        if name.endswith(".snapshot"):
            built.fs.unlink(f"{DIRECTORY}/{name}")
    log = built.open(clean=True)
    assert log.producers.is_empty
    assert log.producers.snapshots.offsets == (8, 16, 24)


@pytest.mark.parametrize("clean", [False, True])
def test_s_idem_1_a_producer_that_was_forgotten_and_began_again_is_not_remembered_from_before(
    clean: bool,
) -> None:
    built = LogBuilder()
    for sequence in (0, 1, 2):
        built.append(producer_id=7, producer_epoch=0, base_sequence=sequence)
    built.log.truncate_to(2)
    assert sum(built.log.producers.expire(built.clock.wall_ms() + 2**40)) == 1
    assert built.log.producers.is_empty
    assert built.append(producer_id=7, producer_epoch=0, base_sequence=0).first_offset == 2
    if clean:
        built.log.close()
        built.fs.unlink(path(3, "snapshot"))
    built.killed()
    info = built.append(producer_id=7, producer_epoch=0, base_sequence=1)
    assert (info.duplicate, info.first_offset) == (False, 3)


def test_s_idem_3_a_truncation_does_not_forget_a_producer_below_the_log_start() -> None:
    built = LogBuilder()
    for sequence in (0, 1, 2):
        built.append(producer_id=7, producer_epoch=0, base_sequence=sequence)
    built.log.maybe_increment_log_start_offset(2, StartOffsetReason.CLIENT_RECORD_DELETION)
    built.log.truncate_to(2)
    for _ in range(3):
        built.append()
        built.log.roll()
    built.log.flush()
    # The power loss came before the new log start was written.
    built.killed(log_start_offset=0, recovery_point=5)
    assert built.append(producer_id=7, producer_epoch=0, base_sequence=1).duplicate


@pytest.mark.parametrize("restarts", [0, 1, 2])
def test_s_idem_3_a_producer_whose_segments_are_gone_outlives_starts_and_truncations(
    restarts: int,
) -> None:
    built = LogBuilder(file_delete_delay_ms=0)
    built.append(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    built.log.roll()
    built.append(producer_id=8, producer_epoch=0, base_sequence=0)
    built.log.maybe_increment_log_start_offset(1, StartOffsetReason.CLIENT_RECORD_DELETION)
    assert [gone.base_offset for gone in built.log.delete_old_segments()] == [0]
    for _ in range(restarts):
        built.killed(log_start_offset=1)
    built.log.truncate_to(1)
    # Only the snapshot at the base of what is left knows of it: Kafka deletes that, and forgets.
    known = built.log.producers.entry(7)
    assert known is not None
    assert (known.current_txn_first_offset, known.last_sequence) == (0, 0)
    assert built.log.producers.entry(8) is None
    info = built.append(producer_id=7, producer_epoch=0, base_sequence=1, transactional=True)
    assert info.first_offset == 1
    built.killed(log_start_offset=1)
    known = built.log.producers.entry(7)
    assert known is not None
    assert known.current_txn_first_offset == 0
    assert built.log.producers.first_unstable_offset == 0


@pytest.mark.parametrize("still_there", [True, False])
def test_s_idem_3_deleted_records_do_not_make_recovery_forget_a_producer(
    still_there: bool,
) -> None:
    built = LogBuilder()
    built.append(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    built.log.roll()
    built.end_transaction(7, ControlType.COMMIT, replicated=False)
    built.append()
    built.log.update_high_watermark(3)
    built.log.maybe_increment_log_start_offset(2, StartOffsetReason.CLIENT_RECORD_DELETION)
    if still_there:
        built.fs.unlink(path(1, "snapshot"))
    else:
        built.log.delete_old_segments()
        assert built.log.segments.base_offsets == [1]
    built.killed(log_start_offset=2, recovery_point=1)
    assert built.append(producer_id=7, producer_epoch=0, base_sequence=1).first_offset == 3


def test_s_rec_6_epochs_beyond_the_end_are_forgotten() -> None:
    built = LogBuilder()
    for epoch in range(3):
        built.log.append_as_leader(built.batch(2), leader_epoch=epoch)
    file = built.fs.open(path(0))
    file.truncate(file.size() - 1)
    log = built.killed()
    assert log.leader_epochs.entries == [(0, 0), (1, 2)]
    assert log.log_end_offset == 4


def test_s_rec_3_epochs_that_began_after_the_last_flush_are_learned_from_the_batches() -> None:
    built = LogBuilder(index_interval_bytes=0)
    for epoch in (0, 2):
        built.log.append_as_leader(built.batch(2), leader_epoch=epoch)
    built.log.flush()
    for epoch in (2, 3, 3, 7):
        built.log.append_as_leader(built.batch(2), leader_epoch=epoch)
    built.fs = built.fs.crash(keep_unsynced=True)
    disk = built.fs
    for point in (0, 4):
        built.fs = disk.crash(keep_unsynced=True)
        log = built.open(clean=False, recovery_point=point)
        assert log.leader_epochs.entries == [(0, 0), (2, 2), (3, 6), (7, 10)]
        log._check()


def test_s_rec_6_epochs_of_records_that_are_back_are_learned_from_them() -> None:
    built = LogBuilder()
    for epochs in ((0, 0, 2), (2, 3), (3, 5)):
        for epoch in epochs:
            built.log.append_as_leader(built.batch(2), leader_epoch=epoch)
        built.log.roll()
    log = built.log
    wanted = log.leader_epochs.entries
    assert wanted == [(0, 0), (2, 4), (3, 8), (5, 12)]
    log.update_high_watermark(14)
    log.maybe_increment_log_start_offset(9, StartOffsetReason.CLIENT_RECORD_DELETION)
    log.flush()
    assert log.leader_epochs.entries == [(3, 9), (5, 12)]
    # The power loss came before the new log start was written.
    for start, entries in (
        (0, wanted),
        (3, [(0, 3), *wanted[1:]]),
        (4, wanted[1:]),
        (8, wanted[2:]),
        (9, [(3, 9), (5, 12)]),
        (13, [(5, 13)]),
    ):
        disk = built.fs
        log = built.killed(recovery_point=14, log_start_offset=start)
        assert (log.log_start_offset, log.leader_epochs.entries) == (start, entries)
        log._check()
        built.fs = disk


@pytest.mark.parametrize("content", [b"0\nx\n", b"0\n1\n7 -3\n", b"\xff\xff"])
@pytest.mark.parametrize(
    "options", [{"clean": True}, {"clean": False}, {"clean": False, "recovery_point": 6}]
)
def test_an_unreadable_epoch_file_is_made_anew(content: bytes, options: dict[str, Any]) -> None:
    """A consumer that asks where its epoch has ended is not told that it is unknown."""
    built = LogBuilder()
    for epoch in (1, 4, 6):
        built.log.append_as_leader(built.batch(2), leader_epoch=epoch)
        built.log.roll()
    built.stopped()
    built.fs.write_bytes(f"{DIRECTORY}/leader-epoch-checkpoint", content)
    built.fs = built.fs.crash(keep_unsynced=True)
    assert built.open(**options).leader_epochs.entries == [(1, 0), (4, 2), (6, 4)]
    assert built.log.leader_epochs.end_offset_for(4, 6) == (4, 4)
    name = f"{DIRECTORY}/leader-epoch-checkpoint"
    assert built.fs.crash().read_bytes(name) == b"0\n3\n1 0\n4 2\n6 4\n"


def test_s_rec_10_a_crash_during_recovery_is_recoverable() -> None:
    built = filled(segment_index_bytes=400)
    file = built.fs.open(path(8))
    file.truncate(file.size() - 3)
    built.fs = built.fs.crash(keep_unsynced=True)
    damaged = built.fs
    built.fs = damaged.crash(keep_unsynced=True)
    built.open(clean=False)
    assert built.log.recovery_point == 0
    wanted = offsets(built)
    built.fs = damaged
    for killed_at in built.interrupted_starts("open", "truncate", "pwrite", "rename", "unlink"):
        assert offsets(built) == wanted, killed_at


def test_power_loss_keeps_what_was_flushed() -> None:
    built = filled()
    built.log.flush()
    built.append(2, producer_id=7, producer_epoch=0, base_sequence=24)
    built.fs = built.fs.crash()
    log = built.open(clean=False, recovery_point=24)
    assert log.log_end_offset == 24
    assert offsets(built) == list(range(24))
    assert log.read(0, 100, FetchIsolation.LOG_END).records


def test_s_fl_1_what_a_kill_leaves_unsynced_is_synced_before_it_is_relied_on() -> None:
    built = LogBuilder()
    built.append(3)
    built.config = TopicConfig(flush_messages=4)
    assert built.killed().recovery_point == 0
    built.config = TopicConfig(flush_messages=3)
    assert built.killed().recovery_point == 3
    built.fs = built.fs.crash()
    built.open(clean=False, recovery_point=3)
    assert offsets(built) == [0, 1, 2]


def test_s_fl_1_a_disk_that_fails_then_is_an_error_of_the_start() -> None:
    built = LogBuilder(flush_messages=1)
    built.fs.fail("fsync", "*.log", times=None)
    with pytest.raises(StorageError):
        built.append()
    built.fs = built.fs.crash(keep_unsynced=True)
    built.fs.fail("fsync", "*.log")
    with pytest.raises(OSError, match="Input/output"):
        built.open(clean=False)
    assert built.killed().recovery_point == 1


def test_s_roll_4_the_last_time_entry_of_a_segment_rolled_after_its_sync_is_synced_later() -> None:
    built = LogBuilder()
    now = built.clock.wall_ms()
    built.append_dated(now)
    built.log.flush()
    built.log.roll()  # writes the only time index entry
    log = built.killed(recovery_point=1)  # finds it, in the page cache only
    built.append_dated(now + 1)
    log.flush()
    built.fs = built.fs.crash()
    log = built.open(clean=False, recovery_point=2)
    assert log.segments.first.time_index.last_entry == (now, 0)
    found = log.offset_for_timestamp(now)
    assert found is not None
    assert found.offset == 0


@pytest.mark.parametrize("clean", [False, True])
def test_s_rec_9_an_index_rebuilt_below_the_recovery_point_is_synced_at_once(clean: bool) -> None:
    built = filled()
    built.stopped()
    wanted = built.fs.read_bytes(path(0, "index"))
    built.fs.unlink(path(0, "index"))
    built.open(clean=clean, recovery_point=24)
    assert built.fs.crash().read_bytes(path(0, "index")) == wanted


def test_s_fl_2_what_a_start_claims_of_a_checkpoint() -> None:
    built = filled()
    assert built.killed(recovery_point=14).recovery_point == 14
    assert built.killed(recovery_point=8).recovery_point == 8
    assert built.killed(recovery_point=24).recovery_point == 24
    assert built.killed(recovery_point=25).recovery_point == 0
    # Inside a batch, no log was ever flushed to: the segment is read whole, and not claimed.
    assert built.killed(recovery_point=13).recovery_point == 8


def tail(**config: Any) -> tuple[LogBuilder, int]:
    """One segment of 40 batches, all indexed, and where the batch at offset 60 begins."""
    built = LogBuilder(index_interval_bytes=0, **config)
    for at in range(40):
        built.clock.advance(0.001)
        built.append(2, producer_id=7, producer_epoch=0, base_sequence=2 * at)
    built.log.flush()
    found = built.log.segments.first.find(60)
    assert found is not None
    return built, found.position


def test_s_rec_3_below_the_recovery_point_a_segment_is_not_read() -> None:
    built, position = tail()
    flip(built, 100)
    assert built.killed(recovery_point=60).log_end_offset == 80
    flip(built, position + 40)
    assert built.killed(recovery_point=60).log_end_offset == 60
    flip(built, position - 20)
    # What is wrong right below it gives it away: then all is read.
    log = built.killed(recovery_point=60)
    assert (log.log_end_offset, log.recovery_point) == (2, 0)


def test_s_fl_2_of_batches_of_one_record_as_much_is_claimed() -> None:
    built = LogBuilder(index_interval_bytes=0)
    for _ in range(20):
        built.clock.advance(0.001)
        built.append()
    built.log.flush()
    for point in range(1, 21):
        assert built.killed(recovery_point=point).recovery_point == point


@pytest.mark.parametrize("interval", [100, 200, 400, 10_000])
def test_s_rec_3_of_a_segment_read_in_part_nothing_is_counted_twice(interval: int) -> None:
    """Transactions and batches below the recovery point, in what is read again to find its end."""
    built = LogBuilder(index_interval_bytes=interval)
    built.append(2, producer_id=7, producer_epoch=0, base_sequence=0)
    for producer in (1, 2):
        built.append(2, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
    built.end_transaction(2, replicated=False)
    built.end_transaction(1, replicated=False)
    built.append(2, producer_id=7, producer_epoch=0, base_sequence=2)
    built.log.flush()
    point = built.log.log_end_offset
    built.append(2, producer_id=7, producer_epoch=0, base_sequence=4)
    built.end_transaction(7, replicated=False)
    whole = state_of(built.killed())
    assert built.killed(recovery_point=point).recovery_point == point
    assert state_of(built.log) == whole
    known = built.log.producers.entry(7)
    assert known is not None
    first_sequences = [batch.first_sequence for batch in known.batches]
    assert first_sequences == sorted(set(first_sequences))
    built.log._check()


def test_s_rec_3_half_of_the_last_time_entry_is_not_believed() -> None:
    """An orderly stop, or a roll, writes it last; the power may have taken its second half."""
    built = LogBuilder(index_interval_bytes=10_000)
    for _ in range(5):
        built.clock.advance(0.001)
        built.append(2)
    built.stopped()
    whole = built.fs.read_bytes(path(0, "timeindex"))
    assert len(whole) == 12
    built.fs.write_bytes(path(0, "timeindex"), whole[:8] + bytes(4))
    log = built.killed(recovery_point=10)
    log.close()
    assert built.fs.read_bytes(path(0, "timeindex")) == whole


def test_s_rec_3_a_marker_that_says_nothing_ends_the_log() -> None:
    built = LogBuilder()
    built.append(2, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    built.end_transaction(7, replicated=False)
    good, size = built.log.size, built.log.log_end_offset
    marker = build_batch(
        [(built.clock.wall_ms(), b"\0", b"", ())],
        base_offset=size,
        producer_id=7,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    after = built.batch(base_offset=size + 1, leader_epoch=0)
    built.fs.write_bytes(path(0), built.fs.read_bytes(path(0)) + bytes(marker) + after)
    log = built.killed()
    assert (log.log_end_offset, log.size, built.fs.size(path(0))) == (size, good, good)
    assert log.segments.first.max_timestamp == built.clock.wall_ms()
    log._check()


def test_s_rec_3_what_was_lost_between_the_recovery_point_and_the_next_segment_ends_the_log() -> (
    None
):
    built = LogBuilder()
    built.append()
    built.log.flush()
    synced = built.log.size
    built.append()
    built.log.roll()
    built.fs = built.fs.crash(keep_unsynced=True)
    # The power took the second batch, and its entry, but not the names of the next segment's files.
    for kind, size in (("log", synced), ("index", 0), ("timeindex", 12)):
        built.fs.write_bytes(path(0, kind), built.fs.read_bytes(path(0, kind))[:size])
    log = built.open(clean=False, recovery_point=1)
    assert (log.log_end_offset, log.segment_count) == (1, 1)


def flip(built: LogBuilder, position: int) -> None:
    file = built.fs.open(path(0))
    byte = file.pread(1, position)[0]
    file.pwrite(bytes([byte ^ 1]), position)


def state_of(log: Log) -> object:
    segment = log.segments.first
    entry = log.producers.entry(7)
    assert entry is not None
    return (
        [segment.offset_index.entry(at) for at in range(segment.offset_index.entries)],
        [segment.time_index.entry(at) for at in range(segment.time_index.entries)],
        [(txn.producer_id, txn.last_offset) for txn in segment.txn_index.all_aborted()],
        (segment.max_timestamp, segment.offset_of_max_timestamp),
        (entry.last_sequence, entry.batches[-1]),  # a snapshot holds the last one only
        log.leader_epochs.entries,
        (log.log_end_offset, log.size),
    )


@pytest.mark.parametrize("interval", [0, 150, 1000])
@pytest.mark.parametrize("point", [2, 4, 38, 58, 60, 80])
def test_s_rec_3_a_segment_read_in_part_is_as_one_read_whole(interval: int, point: int) -> None:
    built = LogBuilder(index_interval_bytes=interval)
    now = built.clock.wall_ms()
    for at in range(40):
        stamp = now + at + 5 * (at % 7)  # they go back, too
        built.append_dated(stamp, stamp, producer_id=7, producer_epoch=0, base_sequence=2 * at)
    whole = state_of(built.killed())
    assert state_of(built.killed(recovery_point=point)) == whole
    built.fs.unlink(f"{DIRECTORY}/{80:020d}.snapshot")
    assert state_of(built.killed(recovery_point=point)) == whole
    built.log._check()


@pytest.mark.parametrize(
    "damage",
    [
        lambda index, times: (index[:100], times),  # fewer entries: more is read
        lambda index, times: (b"", times),
        lambda index, times: (index, times[:120]),
        lambda index, times: (index, b""),
        lambda index, times: (index[:80] + b"\xff" * 8 + index[88:], times),
        lambda index, times: (index[:-8] + b"\0\0\0\x3a\0\0\0\x11", times),
        lambda index, times: (index, times[:-24] + bytes(12) + times[-12:]),
        lambda index, times: (index, times[:-12] + times[-24:-12]),
        # Half an entry: it seems to be one of an earlier batch.
        lambda index, times: (index, times[: 12 * 20] + times[12 * 20 : 12 * 20 + 8] + bytes(4)),
    ],
)
def test_s_rec_3_indexes_that_cannot_be_believed_are_made_anew(
    damage: Callable[[bytes, bytes], tuple[bytes, bytes]],
) -> None:
    built, _ = tail()
    whole = state_of(built.killed())
    index, times = (built.fs.read_bytes(path(0, kind)) for kind in ("index", "timeindex"))
    index, times = damage(index, times)
    built.fs.write_bytes(path(0, "index"), index)
    built.fs.write_bytes(path(0, "timeindex"), times)
    assert state_of(built.killed(recovery_point=60)) == whole


def test_s_rec_10_recovery_tells_how_far_it_has_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "_SYNC_EVERY_S", 0)
    built = filled()
    built.fs = built.fs.crash(keep_unsynced=True)
    told: list[int] = []

    def synced(offset: int, _: str) -> None:
        told.append(offset)
        # A power loss now takes nothing below.
        disk = built.fs.crash()
        options = LoadOptions(config=built.config, clean=False, recovery_point=offset)
        log = load_log(disk, built.clock, DIRECTORY, TP, options, Random(0))
        assert log.log_end_offset >= offset
        assert log.recovery_point == offset

    options = LoadOptions(config=built.config, clean=False, synced=synced)
    load_log(built.fs, built.clock, DIRECTORY, TP, options, Random(0))
    assert told == [8, 16, 24]


def test_s_rec_10_epochs_are_on_the_disk_before_a_recovery_point_above_them_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recovery, "_SYNC_EVERY_S", 0)
    built = LogBuilder()
    for epochs in ((0, 1), (3, 4), (4, 7)):
        for epoch in epochs:
            built.log.append_as_leader(built.batch(2), leader_epoch=epoch)
            if not epoch:
                built.log.flush()  # so the file names the first one, and that only
        built.log.roll()
    wanted = built.log.leader_epochs.entries
    built.fs = built.fs.crash(keep_unsynced=True)
    told: list[int] = []

    def synced(offset: int, _: str) -> None:
        told.append(offset)
        options = LoadOptions(config=built.config, clean=False, recovery_point=offset)
        log = load_log(built.fs.crash(), built.clock, DIRECTORY, TP, options, Random(0))
        found = [entry for entry in log.leader_epochs.entries if entry.start_offset < offset]
        assert found == [entry for entry in wanted if entry.start_offset < offset]

    options = LoadOptions(config=built.config, clean=False, synced=synced)
    load_log(built.fs, built.clock, DIRECTORY, TP, options, Random(0))
    assert told[:3] == [4, 8, 12]


def test_s_rec_10_what_took_long_to_recover_is_synced_to_its_end() -> None:
    built = filled()
    built.fs = built.fs.crash(keep_unsynced=True)
    told: list[int] = []

    class SlowClock(ManualClock):
        def monotonic(self) -> float:
            self.advance(2)
            return super().monotonic()

    options = LoadOptions(config=built.config, clean=False, synced=lambda at, _: told.append(at))
    log = load_log(built.fs, SlowClock(), DIRECTORY, TP, options, Random(0))
    assert told == [16]
    assert (log.recovery_point, log.is_synced) == (24, True)


@pytest.mark.parametrize(("above_s", "point"), [(2, 24), (3, 16)])
def test_s_rec_10_a_start_may_sync_what_took_long_to_recover(above_s: float, point: int) -> None:
    built = filled()
    built.fs = built.fs.crash(keep_unsynced=True)

    class Clock(ManualClock):
        """Each look takes a second: at the begin, at the one segment and at the end."""

        def monotonic(self) -> float:
            self.advance(1)
            return super().monotonic()

    options = LoadOptions(config=built.config, clean=False, recovery_point=16, sync_above_s=above_s)
    log = load_log(built.fs, Clock(), DIRECTORY, TP, options, Random(0))
    assert (log.recovery_point, log.is_synced) == (point, point == 24)


def test_s_txn_6_an_aborted_transaction_below_the_recovery_point_stays_aborted() -> None:
    built = LogBuilder()
    built.append(2, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    built.log.flush()
    built.end_transaction(1, replicated=False)
    built.log.flush()  # the transaction index is a new file, whose name has to be synced as well
    built.fs = built.fs.crash(forget_names=True)
    log = built.open(clean=False, recovery_point=3)
    assert log.recovery_point == 3
    assert [txn.producer_id for txn in log.segments.first.txn_index.all_aborted()] == [1]


@pytest.mark.parametrize("clean", [True, False])
def test_s_txn_6_a_transaction_that_is_open_since_the_first_offset_is_open_after_a_start(
    clean: bool,
) -> None:
    """Offset 0 is an offset; and an open transaction never expires (S-IDEM-2)."""
    built = LogBuilder()
    built.append(2, producer_id=0, producer_epoch=0, base_sequence=0, transactional=True)
    built.append(2)
    built.stopped()
    if not clean:
        built.killed(recovery_point=4)
    log = built.log
    log.update_high_watermark(4)
    assert (log.high_watermark, log.last_stable_offset) == (4, 0)
    assert sum(log.producers.expire(built.clock.wall_ms() + 2**40)) == 0
    built.end_transaction(0, replicated=False)
    log.update_high_watermark(5)
    assert log.last_stable_offset == 5
    assert sum(log.producers.expire(built.clock.wall_ms() + 2**40)) == 1


@pytest.mark.parametrize("point", [3, 6])
def test_s_txn_6_of_the_transaction_index_only_what_is_true_below_the_point_is_kept(
    point: int,
) -> None:
    built = LogBuilder(index_interval_bytes=0)
    for producer in (1, 2):
        built.append(2, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
        built.end_transaction(producer, replicated=False)
    built.log.flush()
    good = built.fs.read_bytes(path(0, "txnindex"))
    size = len(good) // 2
    torn = {
        "none of the second": good[:size] + bytes(size),
        "half of the second": good[: size + 12],
        "its marker is another batch": good[:size] + good[size : size + 25] + b"\4" + good[-8:],
        "its marker is within a batch": good[:size] + good[size : size + 25] + b"\3" + good[-8:],
        "its marker is another's": good[:size] + good[size : size + 9] + b"\1" + good[size + 10 :],
    }
    for form, content in torn.items():
        if point == 3 or form.startswith("its"):  # below the point all was synced
            built.fs.write_bytes(path(0, "txnindex"), content)
            log = built.killed(recovery_point=point)
            log.release()
            assert built.fs.read_bytes(path(0, "txnindex")) == good, form


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        ("index", lambda good: good[:-3]),
        ("index", lambda good: good + bytes(8 * 40)),
        ("timeindex", lambda good: good[:-3]),
        ("timeindex", lambda good: good + bytes(12 * 40)),
        ("txnindex", lambda good: bytes(20)),
    ],
)
def test_s_idx_8_below_the_recovery_point_sizes_tell_what_was_not_finished(
    kind: str, damage: Callable[[bytes], bytes]
) -> None:
    built = LogBuilder(index_interval_bytes=0)
    for at in range(12):
        if at in (4, 8):
            built.log.roll()
        built.clock.advance(0.01)
        built.append(2)
    built.stopped()
    good = {suffix: built.fs.read_bytes(path(0, suffix)) for suffix in ("index", "timeindex")}
    built.fs.write_bytes(path(0, kind), damage(good.get(kind, b"")))
    built.killed(recovery_point=24)
    assert {suffix: built.fs.read_bytes(path(0, suffix)) for suffix in good} == good
    if kind == "txnindex":
        assert built.fs.size(path(0, kind)) == 0


def test_a_start_opens_no_file_of_a_segment_below_the_recovery_point() -> None:
    built = filled()
    built.stopped()
    built.fs = built.fs.crash(keep_unsynced=True)
    built.open(clean=False, recovery_point=24)
    opened = {name for op, name in built.fs.operations if op == "open"}
    assert not [name for name in opened if f"{0:020d}" in name or f"{8:020d}" in name]


def test_a_torn_tail_after_a_clean_stop_takes_its_epochs_with_it() -> None:
    built = LogBuilder()
    for epoch in (0, 3):
        built.log.append_as_leader(built.batch(2), leader_epoch=epoch)
    built.log.update_high_watermark(4)
    built.log.flush()
    built.log.close()
    data = built.fs.read_bytes(path(0))
    built.fs.write_bytes(path(0), data[:-5])
    built.open(clean=True)
    assert built.log.log_end_offset == 2
    assert built.log.leader_epochs.latest_epoch == 0
    assert built.fs.read_bytes(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n1\n0 0\n"
    built.log._check()


@pytest.mark.parametrize("interval", [0, 10**6])
def test_what_is_not_read_of_a_segment_is_not_known_of_its_aborted_transactions(
    interval: int,
) -> None:
    built = LogBuilder(index_interval_bytes=interval)
    built.append(2, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    built.end_transaction(1, replicated=False)
    for _ in range(3):
        built.append()
    built.log.flush()
    built.fs.write_bytes(path(0, "txnindex"), b"")
    log = built.killed(recovery_point=5)
    assert log.recovery_point == 5
    log.update_high_watermark(log.log_end_offset)
    assert log.segments.first.aborted_sum is None
    found = log.read(0, 1 << 20, FetchIsolation.TXN_COMMITTED)
    assert [txn.producer_id for txn in found.aborted or ()] == [1]
