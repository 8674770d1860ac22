"""A start syncs files before it relies on them and claims it (S-FL-1, S-FL-2, S-REC-10)."""

from random import Random

import pytest

from config.topic_config import TopicConfig
from storage import recovery
from storage.errors import StorageError
from storage.recovery import LoadOptions, load_log
from storage.waits import at_once
from tests.support.log_builder import DIRECTORY, TP, LogBuilder
from tests.support.manual_clock import ManualClock
from tests.support.recovering import filled, offsets, path
from tests.support.time_lookups import offset_for_timestamp


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
    at_once(built.log.flush())
    built.log.roll()  # writes the only time index entry
    log = built.killed(recovery_point=1)  # finds it, in the page cache only
    built.append_dated(now + 1)
    at_once(log.flush())
    built.fs = built.fs.crash()
    log = built.open(clean=False, recovery_point=2)
    assert log.segments.first.indexes.time.last_entry == (now, 0)
    found = offset_for_timestamp(log, now)
    assert found is not None
    assert found.offset == 0


def test_s_fl_2_what_a_start_claims_of_a_checkpoint() -> None:
    built = filled()
    assert built.killed(recovery_point=14).recovery_point == 14
    assert built.killed(recovery_point=8).recovery_point == 8
    assert built.killed(recovery_point=24).recovery_point == 24
    assert built.killed(recovery_point=25).recovery_point == 0
    # Inside a batch, no log was ever flushed to: the segment is read whole, and not claimed.
    assert built.killed(recovery_point=13).recovery_point == 8


def test_s_rec_10_batches_and_epochs_are_on_the_disk_before_a_recovery_point_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A power loss then takes nothing below."""
    monkeypatch.setattr(recovery, "_SYNC_EVERY_S", 0)
    built = LogBuilder()
    for epochs in ((0, 1), (3, 4), (4, 7)):
        for epoch in epochs:
            built.log.append_as_leader(built.batch(2), leader_epoch=epoch)
            if not epoch:
                at_once(built.log.flush())  # so the file names the first one, and that only
        built.log.roll()
    wanted = built.log.leader_epochs.entries
    built.fs = built.fs.crash(keep_unsynced=True)
    told: list[int] = []

    def synced(offset: int, _: str) -> None:
        told.append(offset)
        options = LoadOptions(config=built.config, clean=False, recovery_point=offset)
        log = load_log(built.fs.crash(), built.clock, DIRECTORY, TP, options, Random(0))
        assert log.log_end_offset >= offset
        assert log.recovery_point == offset
        found = [entry for entry in log.leader_epochs.entries if entry.start_offset < offset]
        assert found == [entry for entry in wanted if entry.start_offset < offset]

    options = LoadOptions(config=built.config, clean=False, synced=synced)
    load_log(built.fs, built.clock, DIRECTORY, TP, options, Random(0))
    assert told[:3] == [4, 8, 12]


class SlowClock(ManualClock):
    """Each look takes so many seconds: at the begin, at each segment that is read, at the end."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def monotonic(self) -> float:
        self.advance(self.seconds)
        return super().monotonic()


def test_s_rec_10_what_took_long_to_recover_is_synced_to_its_end() -> None:
    built = filled()
    built.fs = built.fs.crash(keep_unsynced=True)
    told: list[int] = []
    options = LoadOptions(config=built.config, clean=False, synced=lambda at, _: told.append(at))
    log = load_log(built.fs, SlowClock(2), DIRECTORY, TP, options, Random(0))
    assert told == [16]
    assert (log.recovery_point, log.durability.is_synced) == (24, True)


@pytest.mark.parametrize(("above_s", "point"), [(2, 24), (3, 16)])
def test_s_rec_10_a_start_may_sync_what_took_long_to_recover(above_s: float, point: int) -> None:
    built = filled()
    built.fs = built.fs.crash(keep_unsynced=True)
    options = LoadOptions(config=built.config, clean=False, recovery_point=16, sync_above_s=above_s)
    log = load_log(built.fs, SlowClock(1), DIRECTORY, TP, options, Random(0))
    assert (log.recovery_point, log.durability.is_synced) == (point, point == 24)
