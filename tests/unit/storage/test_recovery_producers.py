"""The producers that a start restores (S-REC-5, S-IDEM-1, S-IDEM-3)."""

from collections.abc import Callable

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records.control import ControlType
from storage.log.results import StartOffsetReason
from storage.waits import at_once
from tests.support.log_builder import DIRECTORY, LogBuilder
from tests.support.recovering import filled, path


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


def damaged_length(built: LogBuilder, position: int) -> None:
    overwrite(built, position + 8, b"\xff")


def damaged_magic(built: LogBuilder, position: int) -> None:
    overwrite(built, position + 16, b"\x55")


def overwrite(built: LogBuilder, position: int, data: bytes) -> None:
    file = built.fs.open(path(8))
    file.pwrite(data, position)
    file.close()


@pytest.mark.parametrize("damage", [damaged_length, damaged_magic])
@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("left", ["all snapshots", "no snapshot of the end"])
def test_s_rec_9_a_damaged_batch_below_the_recovery_point_stops_no_start(
    damage: Callable[[LogBuilder, int], None], batch: int, left: str
) -> None:
    built = filled()
    at_once(built.log.flush())
    at_once(built.log.close())
    position = batch * built.fs.size(path(8)) // 4
    damage(built, position)
    built.fs.unlink(path(0, "index"))  # so that the producers are read from the log
    if left == "no snapshot of the end":
        built.fs.unlink(path(24, "snapshot"))
        built.fs.unlink(path(16, "snapshot"))
    log = built.open(clean=True, recovery_point=24)
    assert (log.log_end_offset, log.segments.base_offsets) == (24, [0, 8, 16])
    entry = log.producers.entry(7)
    assert entry is not None
    assert entry.last_sequence == 23
    log.update_high_watermark(24)
    with pytest.raises(KafkaError) as caught:
        log.read(8 + 2 * batch, 1000)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    log.truncate_to(20)
    assert built.append(2, producer_id=7, producer_epoch=0, base_sequence=20).first_offset == 20


def test_s_rec_9_a_damaged_marker_below_the_recovery_point_stops_no_start() -> None:
    built = LogBuilder()
    for sequence in range(3):
        built.write(7, sequence)
        built.end_transaction(7)
        built.log.roll()
    at_once(built.log.flush())
    at_once(built.log.close())
    file = built.fs.open(path(2))
    file.pwrite(b"\xff\xff", file.size() - 12)  # the version of the marker's value
    file.close()
    built.fs.unlink(path(0, "index"))
    for offset in (4, 6):
        built.fs.unlink(path(offset, "snapshot"), missing_ok=True)
    log = built.open(clean=True, recovery_point=6)
    assert log.log_end_offset == 6
    log.update_high_watermark(6)
    assert log.producers.first_unstable_offset is None


@pytest.mark.parametrize("clean", [False, True])
def test_s_idem_1_a_producer_that_was_forgotten_and_began_again_is_not_remembered_from_before(
    clean: bool,
) -> None:
    built = LogBuilder()
    for sequence in (0, 1, 2):
        built.append(producer_id=7, producer_epoch=0, base_sequence=sequence)
    built.log.truncate_to(2)
    assert at_once(built.log.producers.expire(built.clock.wall_ms() + 2**40)) == 1
    assert built.log.producers.is_empty
    assert built.append(producer_id=7, producer_epoch=0, base_sequence=0).first_offset == 2
    if clean:
        at_once(built.log.close())
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
    at_once(built.log.flush())
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
