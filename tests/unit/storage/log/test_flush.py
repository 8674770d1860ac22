"""The recovery point follows the syncs and never leads them."""

import errno
from random import Random

import pytest

from storage.errors import StorageError
from storage.log import durability
from storage.waits import at_once
from tests.support.calls import Calls
from tests.support.log_builder import DIRECTORY, LogBuilder


def test_s_fl_2_the_recovery_point_moves_only_after_the_sync() -> None:
    built = LogBuilder(segment_bytes=300)
    for _ in range(10):
        built.append()
    log = built.log
    assert len(log.segments) > 2
    assert log.recovery_point == 0
    built.fs.fail("fsync", "*.log", nth=2, errno=errno.EIO)
    with pytest.raises(StorageError):
        at_once(log.flush())
    assert log.recovery_point == 0
    built.fs.heal()
    second = log.segments.base_offsets[1]
    log = built.killed()
    at_once(log.flush(second))
    assert log.recovery_point == second
    built.clock.advance(5)
    at_once(log.flush())
    assert log.recovery_point == 10
    assert log.durability.last_flush_ms == built.clock.wall_ms()
    after = built.fs.crash(forget_names=True)
    assert [n for n in after.list_dir(DIRECTORY) if n.endswith(".log")] == [
        f"{base:020d}.log" for base in log.segments.base_offsets
    ]
    assert sum(
        after.size(f"{DIRECTORY}/{base:020d}.log") for base in log.segments.base_offsets
    ) == (log.size)


def test_s_fl_2_a_flush_syncs_the_segments_below_its_end_only() -> None:
    built = LogBuilder()
    built.append(3)
    built.log.roll()
    built.append(3)
    at_once(built.log.flush(3))
    assert built.log.recovery_point == 3
    synced = {path for operation, path in built.fs.operations if operation == "fsync"}
    assert [path for path in synced if path.endswith(".log")] == [f"{DIRECTORY}/{0:020d}.log"]


def test_s_fl_2_a_truncation_takes_the_recovery_point_back() -> None:
    built = LogBuilder()
    for _ in range(6):
        built.append()
    at_once(built.log.flush())
    built.log.truncate_to(4)
    assert built.log.recovery_point == 4


def test_a_flush_syncs_what_an_earlier_process_wrote() -> None:
    built = LogBuilder()
    for _ in range(3):
        built.append()
    log = built.killed()  # the page cache has it, the disk has not
    at_once(log.flush())
    built.fs = built.fs.crash()
    assert built.open(clean=False, recovery_point=3).log_end_offset == 3


def test_s_fl_2_what_a_failed_flush_has_not_synced_is_left_for_the_next() -> None:
    built = LogBuilder(segment_bytes=300)
    for _ in range(10):
        built.append()
    log = built.log
    built.fs.fail("fsync_dir")
    with pytest.raises(StorageError):
        at_once(log.flush())
    assert (log.recovery_point, log.durability.names_are_synced) == (0, False)
    at_once(log.flush())
    assert (log.recovery_point, log.durability.names_are_synced) == (10, True)
    after = built.fs.crash(forget_names=True)
    built.fs = after
    assert built.open(clean=False, recovery_point=10).log_end_offset == 10


@pytest.mark.parametrize("operation", ["open", "pwrite", "fsync", "rename", "fsync_dir"])
def test_s_fl_2_the_epochs_come_before_the_recovery_point(operation: str) -> None:
    built = LogBuilder()
    built.append()
    log = built.log
    at_once(log.flush())
    log.append_as_leader(built.batch(), leader_epoch=7)
    pattern = "*/leader-epoch-checkpoint*" if operation != "fsync_dir" else "*"
    built.fs.fail(operation, pattern)
    with pytest.raises(StorageError):
        at_once(log.flush())
    assert log.recovery_point == 1
    built.fs.heal()
    at_once(log.flush())
    assert log.recovery_point == 2
    after = built.fs.crash(forget_names=True)
    assert after.read_bytes(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n2\n0 0\n7 1\n"
    assert [name for name in built.names() if name.endswith(".tmp")] == []


def test_a_log_out_of_service_has_nothing_to_flush() -> None:
    built = LogBuilder()
    built.append()
    flush = Calls(built.log.flush())
    built.log.take_out_of_service()
    assert Calls(built.log.flush()).done
    assert Calls(built.log.close()).done
    # The disk may fail as it likes: nobody asks for these files any more.
    flush.fail(OSError(errno.EIO, "gone"))
    assert flush.done


def test_a_flush_that_was_overtaken_is_begun_anew() -> None:
    built = LogBuilder()
    for _ in range(6):
        built.append()
    flush = Calls(built.log.flush())
    flush.run()
    generation = built.log.store.generation
    built.log.truncate_to(3)
    assert built.log.store.generation > generation
    for _ in range(6):
        built.append()
    flush.complete()
    assert not flush.done
    assert built.log.recovery_point == 0
    flush.finish()
    assert built.log.recovery_point == 9


def test_a_mark_stays_until_the_flush_that_took_it_is_complete() -> None:
    built = LogBuilder()
    log = built.log
    built.append()
    at_once(log.flush())
    log.roll()
    first = Calls(log.flush())
    assert not log.durability.names_are_synced
    second = Calls(log.flush())
    assert "fsync_dir" in {operation for operation, _ in operations_of(built, second)}
    first.finish()
    assert not log.durability.names_are_synced
    second.complete()
    assert log.durability.names_are_synced
    assert Calls(log.flush()).done


def test_a_flush_syncs_what_is_marked_wherever_it_ends() -> None:
    """The last time index entry of a segment is written when it ends, maybe after it was synced."""
    built = LogBuilder()
    log = built.log
    built.append()
    log.roll()
    built.append()
    full = Calls(log.flush())
    full.run()
    log.roll()
    lower = Calls(log.flush(1))
    synced = {path for operation, path in operations_of(built, lower) if operation == "fsync"}
    assert f"{DIRECTORY}/{1:020d}.timeindex" in synced
    full.complete()
    full.finish()
    assert not log.durability.names_are_synced
    lower.complete()
    lower.finish()
    assert (log.recovery_point, log.durability.names_are_synced) == (2, True)


def operations_of(built: LogBuilder, flush: Calls[None]) -> list[tuple[str, str]]:
    built.fs.operations.clear()
    flush.run()
    return built.fs.operations


def test_epochs_that_are_written_beside_each_other_end_with_the_newest() -> None:
    built = LogBuilder()
    log = built.log
    log.append_as_leader(built.batch(), leader_epoch=1)
    first = Calls(log.flush())
    log.append_as_leader(built.batch(), leader_epoch=2)
    second = Calls(log.flush())
    first.run()
    second.run()
    second.complete()
    first.complete()
    first.finish()
    second.finish()
    path = f"{DIRECTORY}/leader-epoch-checkpoint"
    assert built.fs.read_bytes(path) == b"0\n2\n1 0\n2 1\n"
    assert log.leader_epochs.begin_flush() is None
    # Between an old table's installation and its sync nobody knows which one a crash would leave.
    log.append_as_leader(built.batch(), leader_epoch=3)
    third = Calls(log.flush())
    third.run()
    third.complete()
    assert not third.done
    log.truncate_to(2)
    assert log.leader_epochs.begin_flush() is not None
    at_once(log.flush())
    assert built.fs.read_bytes(path) == b"0\n2\n1 0\n2 1\n"


SMALL = {"segment_bytes": 300, "index_interval_bytes": 0, "segment_index_bytes": 480}


@pytest.mark.parametrize("seed", range(25))
def test_s_fl_2_any_number_of_flushes_side_by_side(seed: int) -> None:
    """At each moment a power loss leaves what lies below the recovery point."""
    random = Random(seed)
    built = LogBuilder(**SMALL)
    running: list[Calls[None]] = []
    begun: list[Calls[None]] = []
    for number in range(40):
        act = random.choice(("append", "append", "roll", "begin", "run", "complete", "truncate"))
        if act == "append":
            built.log.append_as_leader(built.batch(), leader_epoch=number // 8)
        elif act == "roll":
            built.log.roll()
        elif act == "begin":
            flush = Calls(built.log.flush(random.choice((None, built.log.log_end_offset // 2))))
            begun += [] if flush.done else [flush]
        elif act == "run" and begun:
            flush = begun.pop(random.randrange(len(begun)))
            flush.run()
            running.append(flush)
        elif act == "complete" and running:
            flush = running.pop(random.randrange(len(running)))
            flush.complete()
            begun += [] if flush.done else [flush]
        elif act == "truncate" and random.random() < 0.3:
            built.log.truncate_to(random.randint(0, built.log.log_end_offset))
        if act in ("complete", "truncate"):
            assert survives_power_loss(built)
    for flush in begun:
        flush.finish()
    for flush in running:
        flush.complete()
        flush.finish()
    at_once(built.log.flush())
    assert built.log.recovery_point == built.log.log_end_offset
    assert built.log.durability.names_are_synced
    assert survives_power_loss(built)


def survives_power_loss(built: LogBuilder) -> bool:
    """Whatever lies below the recovery point is there."""
    log = built.log
    wanted = [r.offset for r in built.records() if r.offset < log.recovery_point]
    other = LogBuilder(**SMALL)
    other.fs = built.fs.crash(forget_names=True)
    other.fs.make_dirs(DIRECTORY)
    other.open(clean=False, recovery_point=log.recovery_point)
    found = [record.offset for record in other.records(other.log.log_start_offset)]
    return found[: len(wanted)] == wanted


def test_s_fl_2_a_flush_of_many_segments_goes_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durability, "SEGMENTS_A_STEP", 3)
    built = LogBuilder()
    for _ in range(8):
        built.append()
        built.log.roll()
    log = built.killed()
    points, flush = [], Calls(log.flush())
    while not flush.done:
        built.fs.operations.clear()
        flush.run()
        assert 0 < [op for op, _ in built.fs.operations].count("fsync") <= 4 * 3 + 4
        flush.complete()
        points.append(log.recovery_point)
        # A power loss now costs what was not synced, and no more.
        disk = built.fs.crash(forget_names=True)
        assert {f"{at:020d}.log" for at in range(points[-1])} <= set(disk.list_dir(DIRECTORY))
    assert points == [3, 6, 8]
    assert log.durability.is_synced


def test_names_that_are_synced_are_not_synced_again() -> None:
    built = LogBuilder()
    built.append()
    at_once(built.log.flush())
    built.fs.operations.clear()
    built.append()
    at_once(built.log.flush())
    assert not [path for op, path in built.fs.operations if op == "fsync_dir"]
    built.log.roll()
    at_once(built.log.flush())
    assert [path for op, path in built.fs.operations if op == "fsync_dir"] == [DIRECTORY]


@pytest.mark.parametrize(("steps", "epochs"), [(1, 6), (2, 6), (1, 1)])
def test_s_fl_2_no_step_of_a_flush_moves_the_recovery_point_beyond_a_truncation(
    steps: int, epochs: int
) -> None:
    """Records appended after the truncation have the offsets that were synced, not the bytes."""
    built = LogBuilder()
    log = built.log
    log.append_as_leader(built.batch(), leader_epoch=0)
    at_once(log.flush())
    for number in range(1, 6):
        log.append_as_leader(built.batch(), leader_epoch=number % epochs)
    flush = Calls(log.flush())
    for _ in range(steps - 1):
        flush.run()
        flush.complete()
    flush.run()
    log.truncate_to(3)
    for _ in range(3):
        log.append_as_leader(built.batch(value=b"other"), leader_epoch=9)
    flush.complete()
    assert log.recovery_point <= 3
    assert not flush.done
    after = built.fs.crash()
    assert after.size(f"{DIRECTORY}/{0:020d}.log") < log.size, "they are not on the disk yet"
    flush.finish()
    assert log.recovery_point == 6
    assert built.fs.crash().size(f"{DIRECTORY}/{0:020d}.log") == log.size
