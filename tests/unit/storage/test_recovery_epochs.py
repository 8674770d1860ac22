"""The leader epochs that a start restores (S-REC-6)."""

from typing import Any

import pytest

from storage.log.results import StartOffsetReason
from storage.waits import at_once
from tests.support.log_builder import DIRECTORY, LogBuilder
from tests.support.recovering import path


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
    at_once(built.log.flush())
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
    at_once(log.flush())
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


def test_a_torn_tail_after_a_clean_stop_takes_its_epochs_with_it() -> None:
    built = LogBuilder()
    for epoch in (0, 3):
        built.log.append_as_leader(built.batch(2), leader_epoch=epoch)
    built.log.update_high_watermark(4)
    at_once(built.log.flush())
    at_once(built.log.close())
    data = built.fs.read_bytes(path(0))
    built.fs.write_bytes(path(0), data[:-5])
    built.open(clean=True)
    assert built.log.log_end_offset == 2
    assert built.log.leader_epochs.latest_epoch == 0
    assert built.fs.read_bytes(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n1\n0 0\n"
    built.log._check()
