"""Snapshots of very many producers: a roll takes their image, the next flush writes the file."""

import errno
from typing import Any

import pytest

from storage.errors import StorageError
from storage.producers import image
from storage.producers.snapshot import decode_snapshot
from storage.producers.snapshots import MOST_PENDING
from storage.waits import at_once
from tests.support.calls import Calls
from tests.support.log_builder import DIRECTORY, LogBuilder


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "LARGE", 2)


def filled(producers: int = 3, **config: Any) -> LogBuilder:
    built = LogBuilder(**config)
    for producer_id in range(producers):
        built.append(producer_id=producer_id, producer_epoch=0, base_sequence=0)
    return built


def snapshots(built: LogBuilder) -> list[str]:
    return [name for name in built.names() if ".snapshot" in name]


def test_a_roll_writes_no_large_snapshot() -> None:
    built = filled()
    before = snapshots(built)
    built.log.roll()
    assert snapshots(built) == before
    assert built.log.producers.snapshots.latest == 3
    built.log._check()


def test_a_flush_writes_what_was_true_at_the_roll() -> None:
    built = filled()
    built.log.roll()
    built.append(producer_id=9, producer_epoch=0, base_sequence=0)
    built.append(producer_id=1, producer_epoch=0, base_sequence=1)
    at_once(built.log.flush(3))
    assert built.log.recovery_point == 3
    path = f"{DIRECTORY}/00000000000000000003.snapshot"
    entries = decode_snapshot(built.fs.crash().read_bytes(path))
    assert {entry.producer_id: entry.last_sequence for entry in entries} == {0: 0, 1: 0, 2: 0}
    built.log._check()


def test_the_recovery_point_waits_for_the_file() -> None:
    built = filled()
    built.log.roll()
    flush = Calls(built.log.flush())
    flush.run()
    flush.complete()
    assert built.log.recovery_point == 0
    flush.finish()
    assert built.log.recovery_point == 3
    assert Calls(built.log.flush()).done


def test_nothing_is_forgotten_when_the_process_dies_before_the_flush() -> None:
    built = filled()
    built.log.roll()
    built.append(producer_id=9, producer_epoch=0, base_sequence=0)
    log = built.killed()
    assert list(log.producers.producers) == [0, 1, 2, 9]
    log._check()


def test_a_stop_writes_it() -> None:
    built = filled()
    log = built.stopped()
    assert log.producers.snapshots.latest == 3
    assert list(log.producers.producers) == [0, 1, 2]


def test_a_truncation_goes_back_to_one_that_is_pending() -> None:
    built = filled()
    built.log.roll()
    built.append(producer_id=9, producer_epoch=0, base_sequence=0)
    built.append(producer_id=1, producer_epoch=0, base_sequence=1)
    flush = Calls(built.log.flush())
    flush.run()
    built.log.truncate_to(4)
    known = built.log.producers
    assert {one: entry.last_sequence for one, entry in known.producers.items()} == {
        **dict.fromkeys(range(3), 0),
        9: 0,
    }
    flush.complete()
    flush.finish()
    assert not [name for name in built.names() if name.endswith(".tmp")]
    built.log._check()


def test_one_that_was_cut_off_is_not_written_by_a_job_under_way() -> None:
    built = filled()
    built.log.roll()
    built.append(producer_id=9, producer_epoch=0, base_sequence=0)
    built.log.roll()
    flush = Calls(built.log.flush())
    flush.run()
    built.log.truncate_to(3)
    flush.complete()
    flush.finish()
    assert built.log.producers.snapshots.offsets == (3,)
    assert not [name for name in snapshots(built) if "00004" in name or name.endswith(".tmp")]
    built.log._check()


def test_only_the_newest_wait_in_memory() -> None:
    built = filled()
    for sequence in range(1, 6):
        built.log.roll()
        built.append(producer_id=0, producer_epoch=0, base_sequence=sequence)
    files = built.log.producers.snapshots
    waiting = [offset for offset in files.offsets if files.pending(offset)]
    assert waiting == [6, 7][-MOST_PENDING:]
    built.log._check()
    at_once(built.log.flush())
    assert not files.are_pending
    built.log._check()


def test_s_idem_3_segments_stay_until_a_snapshot_above_them_is_written() -> None:
    built = filled(retention_ms=1)
    built.log.roll()
    built.append(producer_id=0, producer_epoch=0, base_sequence=1)
    built.clock.advance(10)
    assert not built.log.delete_old_segments()
    at_once(built.log.flush())
    assert [one.base_offset for one in built.log.delete_old_segments()] == [0, 3]
    log = built.killed(recovery_point=4)
    assert list(log.producers.producers) == [0, 1, 2]


def test_a_disk_that_cannot_take_it_has_failed() -> None:
    built = filled()
    built.log.roll()
    built.fs.fail("pwrite", "*.snapshot.*", errno=errno.ENOSPC)
    with pytest.raises(StorageError):
        at_once(built.log.flush())
    assert built.log.recovery_point == 0
