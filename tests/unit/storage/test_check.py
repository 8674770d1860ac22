"""Finding damage, foretelling what a restart does about it, and doing it (`storage.check`)."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.records.batch import iter_batches
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.check import inspect
from storage.check.findings import ActionKind, PartitionVerdict, Problem, Severity, Verdict
from storage.check.log_dir import LogDirCheck
from storage.check.rehearsal import Change, ChangeKind, RehearsalFileSystem
from storage.check.repair import Repaired
from storage.checkpoint import OffsetCheckpoint
from storage.errors import DirectoryLocked
from storage.filesystem import File
from storage.log_dir import LogDir
from storage.log_manager import LogManager
from storage.os_filesystem import OsFileSystem
from storage.reader import PartitionView
from storage.waits import at_once
from tests.support.log_managers import log_manager
from tests.support.manual_clock import ManualClock

TP = TopicPartition("t", 0)
FS = OsFileSystem()
CONFIG = TopicConfig(segment_bytes=4000, index_interval_bytes=300)
BATCHES = 60


class Bench:
    """A log directory with one partition of several segments, written by a LogManager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = ManualClock()
        self.directory = path / "t-0"
        manager = self.manager()
        log = manager.get_or_create_log(TP, bytes(range(16)), CONFIG)
        for at in range(BATCHES):
            self.clock.advance(1)
            now = self.clock.wall_ms()
            batch = build_batch(
                [(now, b"k", b"v" * 100, ())] * 2,
                producer_id=9,
                producer_epoch=0,
                base_sequence=2 * at,
            )
            log.append_as_leader(batch, leader_epoch=at // 25)
            log.update_high_watermark(log.log_end_offset)
        assert len(log.segments) >= 4
        self.bases = log.segments.base_offsets
        at_once(manager.checkpoint_high_watermarks())
        at_once(manager.shutdown())

    def manager(self) -> LogManager:
        config = BrokerConfig.parse({"log.dirs": str(self.path)})
        manager = log_manager(
            config, self.clock, FS, on_offline=lambda gone: pytest.fail(str(gone))
        )
        manager.startup(lambda _: CONFIG)
        return manager

    def file(self, segment: int, suffix: str = ".log") -> Path:
        return self.directory / f"{self.bases[segment]:020d}{suffix}"

    def unclean(self, recovery_point: int = 0) -> None:
        (self.path / ".kafka_cleanshutdown").unlink()
        points = OffsetCheckpoint(FS, str(self.path / "recovery-point-offset-checkpoint"))
        points.write({TP: recovery_point})

    def check(self, **options: bool) -> tuple[LogDirCheck, PartitionVerdict]:
        check = LogDirCheck(FS, self.clock, Random(1), [str(self.path)], **options)
        (verdict,) = check.partitions()
        return check, verdict

    def repair(self, **options: bool) -> Repaired:
        check = LogDirCheck(FS, self.clock, Random(1), [str(self.path)], **options)
        check.lock()
        try:
            return check.repair(list(check.partitions()), lambda d: f"{d}.fsck-backup-1")
        finally:
            check.unlock()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "logs")


def problems(verdict: PartitionVerdict) -> set[Problem]:
    return {f.problem for f in verdict.findings if f.severity is Severity.PROBLEM}


def snapshot_of(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def test_a_clean_directory_has_no_findings_and_nothing_is_touched(bench: Bench) -> None:
    before = snapshot_of(bench.path)
    check, verdict = bench.check(records=True)
    assert check.findings == []
    assert verdict.findings == ()
    assert verdict.actions == ()
    assert (verdict.log_start_offset, verdict.log_end_offset) == (0, 2 * BATCHES)
    assert verdict.batches == BATCHES
    assert snapshot_of(bench.path) == before


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def append(path: Path, data: bytes) -> None:
    path.write_bytes(path.read_bytes() + data)


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def half_header(b: Bench) -> None:
    append(b.file(-1), b.file(0).read_bytes()[:30])


def beyond_the_end(b: Bench) -> None:
    append(b.file(-1), b.file(0).read_bytes()[:150])


def zeroed_pages(b: Bench) -> None:
    append(b.file(-1), bytes(4096))


def bad_crc(b: Bench) -> None:
    flip(b.file(-1), b.file(-1).stat().st_size - 5)


def batch_after_garbage(b: Bench) -> None:
    append(b.file(-1), b"\xffgarbage" * 10 + b.file(-1).read_bytes()[:300])


def bad_crc_in_the_middle(b: Bench) -> None:
    flip(b.file(1), 100)


def no_index(b: Bench) -> None:
    b.file(1, ".index").unlink()


def no_time_index(b: Bench) -> None:
    b.file(-1, ".timeindex").unlink()


def index_longer_than_log(b: Bench) -> None:
    data = (10_000).to_bytes(4, "big") + (1_000_000).to_bytes(4, "big")
    append(b.file(-1, ".index"), data)


def future_time_index(b: Bench) -> None:
    append(b.file(-1, ".timeindex"), (2**50).to_bytes(8, "big") + (9000).to_bytes(4, "big"))


def half_txn_entry(b: Bench) -> None:
    b.file(-1, ".txnindex").write_bytes(bytes(17))


def wrong_index_entry(b: Bench) -> None:
    flip(b.file(1, ".index"), 7)


def corrupt_snapshot(b: Bench) -> None:
    flip(sorted(b.directory.glob("*.snapshot"))[-1], 20)


def snapshot_beyond(b: Bench) -> None:
    newest = sorted(b.directory.glob("*.snapshot"))[-1]
    newest.with_name(f"{5000:020d}.snapshot").write_bytes(newest.read_bytes())


def bad_epochs(b: Bench) -> None:
    (b.directory / "leader-epoch-checkpoint").write_text("0\n2\n0 0\nrubbish\n")


def lost_epochs(b: Bench) -> None:
    (b.directory / "leader-epoch-checkpoint").write_text("0\n0\n")


def deleted_leftover(b: Bench) -> None:
    (b.directory / f"{7:020d}.log.deleted").write_bytes(b"x" * 10)


def cleaned_leftover(b: Bench) -> None:
    (b.directory / f"{0:020d}.log.cleaned").write_bytes(b.file(0).read_bytes())


def swap_leftover(b: Bench) -> None:
    b.file(0).rename(b.file(0, ".log.swap"))


def orphan_index(b: Bench) -> None:
    (b.directory / f"{7777:020d}.index").write_bytes(bytes(8))


def offsets_too_far(bench: Bench) -> None:
    """In the second half of the last segment (KAFKA-6264)."""
    data = bytearray(bench.file(-1).read_bytes())
    batches = list(iter_batches(data))
    for at, header in batches[len(batches) // 2 :]:
        data[at : at + 8] = (header.base_offset + 2**31).to_bytes(8, "big")
    bench.file(-1).write_bytes(data)


DAMAGE: list[tuple[Callable[[Bench], None], Problem, ActionKind | None]] = [
    (half_header, Problem.TORN_TAIL, ActionKind.CUT_LOG),
    (beyond_the_end, Problem.TORN_TAIL, ActionKind.CUT_LOG),
    (zeroed_pages, Problem.ZEROS, ActionKind.CUT_LOG),
    (bad_crc, Problem.BAD_BATCH, ActionKind.CUT_LOG),
    (batch_after_garbage, Problem.GARBAGE, ActionKind.CUT_LOG),
    (bad_crc_in_the_middle, Problem.BAD_BATCH, ActionKind.DROP_SEGMENT),
    (no_index, Problem.INDEX_MISSING, ActionKind.REBUILD_INDEX),
    (no_time_index, Problem.INDEX_MISSING, ActionKind.REBUILD_INDEX),
    (index_longer_than_log, Problem.INDEX_CORRUPT, ActionKind.TRIM_INDEX),
    (future_time_index, Problem.INDEX_MISMATCH, ActionKind.TRIM_INDEX),
    (half_txn_entry, Problem.INDEX_CORRUPT, ActionKind.REBUILD_INDEX),
    (wrong_index_entry, Problem.INDEX_MISMATCH, ActionKind.REBUILD_INDEX),
    (offsets_too_far, Problem.INDEX_MISMATCH, ActionKind.SPLIT_SEGMENT),
    (corrupt_snapshot, Problem.SNAPSHOT_CORRUPT, ActionKind.WRITE_SNAPSHOT),
    (snapshot_beyond, Problem.SNAPSHOT_BEYOND, ActionKind.REMOVE_SNAPSHOT),
    (bad_epochs, Problem.EPOCHS_CORRUPT, ActionKind.REWRITE_EPOCHS),
    (lost_epochs, Problem.EPOCHS_WRONG, ActionKind.REWRITE_EPOCHS),
    (deleted_leftover, Problem.LEFTOVER, ActionKind.REMOVE_LEFTOVER),
    (cleaned_leftover, Problem.LEFTOVER, ActionKind.REMOVE_LEFTOVER),
    (swap_leftover, Problem.LEFTOVER, ActionKind.FINISH_SWAP),
    (orphan_index, Problem.ORPHAN, ActionKind.REMOVE_INDEX),
]


@pytest.mark.parametrize(
    ("damage", "problem", "action"), DAMAGE, ids=[damage.__name__ for damage, _, _ in DAMAGE]
)
def test_s_rec_9_damage_is_found_foretold_and_repaired(
    bench: Bench,
    damage: Callable[[Bench], None],
    problem: Problem,
    action: ActionKind | None,
) -> None:
    damage(bench)
    bench.unclean()
    before = snapshot_of(bench.path)
    check, verdict = bench.check()
    assert problem in problems(verdict)
    assert Problem.NOT_CLEAN in {f.problem for f in check.findings}
    if action is not None:
        assert action in {a.kind for a in verdict.actions}
    assert snapshot_of(bench.path) == before, "a check changes nothing"

    repaired = bench.repair()
    assert {a.kind for a in verdict.actions} <= {a.kind for a in repaired.actions}
    check, after = bench.check(records=True)
    assert after.findings == ()
    assert [f for f in check.findings if f.severity is Severity.PROBLEM] == []
    assert after.actions == ()
    assert after.log_end_offset == verdict.log_end_offset

    # A start finds nothing to do: the files are the same after it.
    fixed = snapshot_of(bench.directory)
    manager = bench.manager()
    log = manager.get_log(TP)
    assert log is not None
    log._check()
    assert log.log_end_offset == verdict.log_end_offset
    at_once(manager.shutdown())
    assert snapshot_of(bench.directory) == fixed


def test_only_zeros_behind_the_last_batch_are_no_loss(bench: Bench) -> None:
    zeroed_pages(bench)
    bench.unclean()
    _, verdict = bench.check()
    assert (verdict.verdict, verdict.loses) == (Verdict.HEALS, 0)
    append(bench.file(-1), b"\x01")
    _, verdict = bench.check()
    assert Problem.GARBAGE in problems(verdict)
    assert (verdict.verdict, verdict.loses) == (Verdict.LOSES_RECORDS, 4097)


def test_what_is_cut_is_in_the_backup_byte_for_byte(bench: Bench) -> None:
    flip(bench.file(1), 100)
    bench.unclean()
    first = bench.file(1).read_bytes()
    later = {bench.file(at).name: bench.file(at).read_bytes() for at in range(2, len(bench.bases))}
    _, verdict = bench.check()
    assert verdict.loses == len(first) + sum(map(len, later.values()))
    bench.repair()
    backup = bench.path.with_name("logs.fsck-backup-1") / "t-0"
    assert bench.file(1).read_bytes() == b""
    assert (backup / bench.file(1).name).read_bytes() == first
    for name, data in later.items():
        assert (backup / name).read_bytes() == data


def test_a_torn_tail_is_kept_as_a_tail(bench: Bench) -> None:
    whole = bench.file(-1).read_bytes()
    append(bench.file(-1), b"torn" * 20)
    bench.unclean()
    bench.repair()
    assert bench.file(-1).read_bytes() == whole
    backup = bench.path.with_name("logs.fsck-backup-1") / "t-0"
    assert (backup / f"{bench.file(-1).name}.from-{len(whole)}").read_bytes() == b"torn" * 20


def test_damage_below_the_recovery_point_is_told_but_left_by_a_restart(bench: Bench) -> None:
    flip(bench.file(0), 100)
    _, verdict = bench.check()
    assert problems(verdict) == {Problem.BAD_BATCH}
    assert verdict.actions == ()
    bench.repair()
    _, verdict = bench.check()
    assert problems(verdict) == {Problem.BAD_BATCH}
    _, verdict = bench.check(from_start=True)
    assert ActionKind.DROP_SEGMENT in {action.kind for action in verdict.actions}
    bench.repair(from_start=True)
    _, verdict = bench.check()
    assert verdict.findings == ()
    assert verdict.log_end_offset == 0


def test_a_wrong_index_of_an_old_segment_is_rebuilt_though_a_restart_would_not_see_it(
    bench: Bench,
) -> None:
    good = bench.file(1, ".index").read_bytes()
    flip(bench.file(1, ".index"), 7)
    _, verdict = bench.check()
    assert problems(verdict) == {Problem.INDEX_MISMATCH}
    assert verdict.actions == ()
    bench.repair()
    _, verdict = bench.check()
    assert verdict.findings == ()
    view = PartitionView(bench.directory).segments()[1]
    assert view.check_indexes() == []
    assert good[:4] != b""


def test_checkpoints_beyond_the_log_are_found_and_put_right(bench: Bench) -> None:
    bench.file(-1).write_bytes(b"")
    check, verdict = bench.check()
    assert Problem.CHECKPOINT_BEYOND in problems(verdict)
    bench.unclean(recovery_point=2 * BATCHES)
    bench.repair()
    check, verdict = bench.check()
    assert verdict.findings == ()
    assert check.findings == []


def test_damaged_checkpoints_and_owner_are_found(bench: Bench) -> None:
    (bench.path / "replication-offset-checkpoint").write_text("0\n7\nt 0 1\n")
    (bench.path / "meta.properties").write_text("version=9\n")
    check, _ = bench.check()
    assert {f.problem for f in check.findings} == {
        Problem.CHECKPOINT_CORRUPT,
        Problem.META_CORRUPT,
    }


def test_s_rec_7_a_partition_in_two_directories_is_found_and_not_repaired(
    bench: Bench, tmp_path: Path
) -> None:
    other = Bench(tmp_path / "other")
    check = LogDirCheck(FS, bench.clock, Random(1), [str(bench.path), str(other.path)])
    first, second = check.partitions()
    assert problems(first) == problems(second) == {Problem.DUPLICATE}
    assert first.verdict is second.verdict is Verdict.BLOCKED


def test_a_log_start_beyond_the_end_is_found(bench: Bench) -> None:
    starts = OffsetCheckpoint(FS, str(bench.path / "log-start-offset-checkpoint"))
    starts.write({TP: 1000})
    _, verdict = bench.check()
    assert Problem.START_BEYOND in problems(verdict)
    assert ActionKind.DROP_SEGMENT in {action.kind for action in verdict.actions}
    bench.repair()
    _, verdict = bench.check()
    assert verdict.findings == ()
    assert (verdict.log_start_offset, verdict.log_end_offset) == (1000, 1000)


def test_directories_of_deleted_and_moving_topics_are_notes(bench: Bench) -> None:
    for state in ("delete", "future", "stray"):
        (bench.path / f"gone-0.{'ab' * 16}-{state}").mkdir()
    check, verdict = bench.check()
    states = {Problem.TO_DELETE, Problem.MOVING, Problem.STRAY}
    assert {f.problem for f in check.findings} == states
    assert all(f.severity is Severity.NOTE for f in check.findings)
    assert verdict.is_sound


def test_files_that_are_no_logs_are_notes(bench: Bench) -> None:
    stranger = bench.directory / "notes.txt"
    unfinished = bench.directory / "leader-epoch-checkpoint.tmp"
    for file in (stranger, unfinished):
        file.write_bytes(b"x")
    _, verdict = bench.check()
    assert strangers(verdict) == {str(stranger), str(unfinished)}
    manager = bench.manager()
    unfinished.write_bytes(b"x")  # it is about to rename it
    _, verdict = bench.check()
    assert strangers(verdict) == {str(stranger)}
    at_once(manager.shutdown())


def strangers(verdict: PartitionVerdict) -> set[str]:
    return {f.path for f in verdict.findings if f.problem is Problem.UNKNOWN_FILE}


def test_a_broker_in_the_directory_may_be_looked_at_and_keeps_repair_out(bench: Bench) -> None:
    manager = bench.manager()
    log = manager.get_log(TP)
    assert log is not None
    log.append_as_leader(build_batch([(1, b"k", b"v" * 400, ())] * 9), leader_epoch=3)
    log.append_as_leader(build_batch([(1, b"k", b"v" * 400, ())] * 1), leader_epoch=3)
    check, verdict = bench.check()
    assert check.in_use
    assert (verdict.verdict, verdict.findings, verdict.actions) == (Verdict.SOUND, (), ())
    with pytest.raises(DirectoryLocked):
        bench.repair()
    at_once(manager.shutdown())


def test_damage_is_told_while_a_broker_runs(bench: Bench) -> None:
    manager = bench.manager()
    bench.file(0, ".timeindex").write_bytes(bytes(12))
    bench.file(1, ".index").unlink()
    bench.file(-1, ".index").write_bytes(b"\0\0\0\5\0\0\0\7\0")
    damaged = bytearray(bench.file(2).read_bytes())
    damaged[100] ^= 1
    bench.file(2).write_bytes(damaged)
    _, verdict = bench.check()
    assert {(found.problem, found.path) for found in verdict.findings} == {
        (Problem.INDEX_MISMATCH, str(bench.file(0, ".timeindex"))),
        (Problem.INDEX_MISSING, str(bench.file(1, ".index"))),
        (Problem.BAD_BATCH, str(bench.file(2))),
        (Problem.INDEX_CORRUPT, str(bench.file(-1, ".index"))),
    }
    assert verdict.verdict is Verdict.STAYS_DAMAGED
    at_once(manager.shutdown())


class Meanwhile(OsFileSystem):
    """Something happens whenever a file with this suffix is about to be opened for reading."""

    def __init__(self, suffix: str, happens: Callable[[], None]) -> None:
        super().__init__()
        self.suffix, self.happens = suffix, happens

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        if path.endswith(self.suffix) and not writable:
            self.happens()
        return super().open(path, create=create, writable=writable)


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_log_that_grows_while_it_is_read_is_sound(bench: Bench, suffix: str) -> None:
    manager = bench.manager()
    log = manager.get_log(TP)
    assert log is not None

    def grow() -> None:
        for _ in range(20):
            bench.clock.advance(1)
            batch = build_batch([(bench.clock.wall_ms(), b"k", b"v" * 150, ())])
            log.append_as_leader(batch, leader_epoch=3)
        log.segments.active.indexes.offset.write_entries()
        log.segments.active.indexes.time.write_entries()

    grow()
    check = LogDirCheck(Meanwhile(suffix, grow), bench.clock, Random(1), [str(bench.path)])
    (verdict,) = check.partitions()
    assert (verdict.verdict, verdict.findings) == (Verdict.SOUND, ())
    at_once(manager.shutdown())


def test_a_segment_that_is_deleted_while_it_is_looked_at_is_no_problem(bench: Bench) -> None:
    manager = bench.manager()

    def delete() -> None:
        for suffix in (".log", ".index", ".timeindex"):
            file = bench.file(0, suffix)
            if file.exists():
                file.rename(f"{file}.deleted")

    fs = Meanwhile(".log", delete)
    check = LogDirCheck(fs, bench.clock, Random(1), [str(bench.path)])
    (verdict,) = check.partitions()
    assert (verdict.verdict, verdict.findings) == (Verdict.SOUND, ())
    assert verdict.log_start_offset == bench.bases[1]
    at_once(manager.shutdown())


def test_a_partition_that_is_deleted_while_it_is_looked_at_is_left_out(bench: Bench) -> None:
    manager = bench.manager()
    gone = bench.directory.with_name("gone")

    def delete() -> None:
        if bench.directory.exists():
            bench.directory.rename(gone)

    fs = Meanwhile(".log", delete)
    check = LogDirCheck(fs, bench.clock, Random(1), [str(bench.path)])
    assert list(check.partitions()) == []
    gone.rename(bench.directory)
    at_once(manager.shutdown())


def test_one_partition_directory_can_be_checked_and_repaired_alone(bench: Bench) -> None:
    append(bench.file(-1), b"torn" * 20)
    check = LogDirCheck(FS, bench.clock, Random(1), [str(bench.directory)])
    (verdict,) = check.partitions()
    assert problems(verdict) == {Problem.TORN_TAIL}
    check.lock()
    check.repair([verdict], lambda d: f"{d}.fsck-backup-2")
    check.unlock()
    _, verdict = bench.check()
    assert verdict.findings == ()
    assert LogDir(FS, str(bench.path)).was_cleanly_shut_down()


def test_progress_within_a_segment_adds_up_to_its_size(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "_TICK", 100)
    told: list[int] = []
    check = LogDirCheck(FS, bench.clock, Random(1), [str(bench.path)], progress=told.append)
    list(check.partitions())
    assert sum(told) == check.total_bytes()
    assert len(told) > 2 * len(list((bench.path / str(TP)).glob("*.log")))


def test_a_rehearsed_file_ends_where_it_was_cut(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    FS.write_atomic(path, (b"abcdef",))
    rehearsed = RehearsalFileSystem(FS)
    file = rehearsed.open(path)
    file.truncate(3)
    assert [file.pread(2, at) for at in (0, 1, 2, 3, 4)] == [b"ab", b"bc", b"c", b"", b""]
    assert FS.read_bytes(path) == b"abcdef"


def test_a_rehearsed_file_that_was_written_to_is_cut_and_grows_by_zeros(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    FS.write_atomic(path, (b"abcdef",))
    file = RehearsalFileSystem(FS).open(path)
    file.pwrite(b"X", 0)
    file.truncate(3)
    assert (file.size(), file.pread(9, 0)) == (3, b"Xbc")
    file.allocate(5)
    assert file.pread(9, 0) == b"Xbc\0\0"


def test_a_rehearsed_file_that_was_cut_and_renamed_is_still_the_file_of_the_disk(
    tmp_path: Path,
) -> None:
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    FS.write_atomic(old, (b"abcdef",))
    rehearsed = RehearsalFileSystem(FS)
    rehearsed.open(old).truncate(3)
    rehearsed.rename(old, new)
    assert rehearsed.changes() == [
        Change(kind=ChangeKind.RENAMED, path=old, before=6, after=3, renamed_to=new)
    ]
