"""After a kill it is known what the transaction indexes have to hold, and nothing untrue is."""

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from random import Random
from types import MappingProxyType

import pytest

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.errors import KafkaError
from protocol.records.builder import build_batch
from protocol.records.control import ControlType
from protocol.types import TopicPartition
from storage import log_tasks, recovery
from storage.aborted_checkpoint import encode_aborted, read_aborted
from storage.checkpoint import OffsetCheckpoint
from storage.errors import BeingRepaired, OutOfResources
from storage.log.log import Log
from storage.log.results import FetchIsolation, StartOffsetReason
from storage.log_loading import LoadJob
from storage.manager.background_sync import IDLE_S
from storage.waits import at_once
from tests.support.cleaning import replace as replace_segments
from tests.support.committed_reads import aborted_told, told_in_the_end
from tests.support.crash_lab import check_aborted_sums
from tests.support.faulty_filesystem import FaultyFileSystem
from tests.support.log_builder import end_transaction
from tests.support.log_managers import log_manager
from tests.support.log_tasks import run_task
from tests.support.manual_clock import ManualClock

TP = TopicPartition("t", 0)
TOPIC_ID, OTHER_ID = bytes(range(16)), bytes(range(1, 17))
CONFIG = TopicConfig(file_delete_delay_ms=0, index_interval_bytes=100, segment_index_bytes=4096)
POINTS = "/a/recovery-point-offset-checkpoint"
NOTES = "/a/aborted-transactions-checkpoint"
INDEX = f"/a/t-0/{0:020d}.txnindex"
COMMITTED = FetchIsolation.TXN_COMMITTED


class Broker:
    """Producer 7 in transactions of one record, each followed by its marker."""

    def __init__(
        self,
        fs: FaultyFileSystem | None = None,
        *,
        log_dirs: str = "/a",
        config: TopicConfig = CONFIG,
        start: bool = True,
        life: int = 1,
    ) -> None:
        self.life = life
        self.fs = fs or FaultyFileSystem()
        self.clock = ManualClock()
        self.log_dirs = log_dirs
        self.config = config
        self.failed: list[object] = []
        self.manager = log_manager(
            BrokerConfig.parse({"log.dirs": log_dirs}),
            self.clock,
            self.fs,
            random=Random(life),
            on_offline=self.failed.append,
        )
        if start:
            self.manager.startup(lambda topic: config)
        self.topic_id = TOPIC_ID

    @property
    def log(self) -> Log:
        return self.manager.get_or_create_log(TP, self.topic_id, self.config, is_new=True)

    def append(self, count: int = 1) -> None:
        for _ in range(count):
            batch = build_batch([(self.clock.wall_ms(), b"k", b"v", ())])
            self.log.append_as_leader(batch, leader_epoch=0)
        self.log.update_high_watermark(self.log.log_end_offset)

    def begin(self, producer_id: int = 7) -> None:
        known = self.log.producers.entry(producer_id)
        batch = build_batch(
            [(self.clock.wall_ms(), b"k", b"v", ())],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0 if known is None else known.last_sequence + 1,
            transactional=True,
        )
        self.log.append_as_leader(batch, leader_epoch=0)

    def end(self, kind: ControlType = ControlType.ABORT, producer_id: int = 7) -> None:
        end_transaction(self.log, self.clock, producer_id, kind)

    def abort(self, count: int = 1) -> None:
        for _ in range(count):
            self.begin()
            self.end()

    def settle(self) -> None:
        """Sync all that was appended, and checkpoint the recovery point."""
        for _ in range(3):
            self.clock.advance(IDLE_S)
            run_task(self.manager, log_tasks.FLUSH_ROLLED)
        assert self.log.recovery_point == self.log.log_end_offset

    def write_down(self) -> None:
        run_task(self.manager, log_tasks.RECOVERY_POINT_CHECKPOINT)

    def killed(self, *, start: bool = True) -> "Broker":
        """Start again after a kill, and check that the notes that the start believes are true."""
        fs = self.fs.crash(keep_unsynced=True)
        assert not self.failed or not start
        again = Broker(
            fs, log_dirs=self.log_dirs, config=self.config, start=start, life=self.life + 1
        )
        again.topic_id = self.topic_id
        if start:
            again.check()
        return again

    def killed_without_index(self) -> "Broker":
        """Start again after a kill, and after the first transaction index was emptied."""
        again = self.killed(start=False)
        again.fs.write_bytes(INDEX, b"")
        return again.killed()

    def loading(self) -> LoadJob:
        """Return the job of a start that loads the log."""
        self.manager.directories.lock_and_check()
        (job,) = self.manager.load_jobs(lambda topic: self.config)
        return job

    def stopped(self) -> "Broker":
        at_once(self.manager.shutdown())
        return self.killed()

    def check(self) -> None:
        for log in self.manager.all_logs():
            check_aborted_sums(log)

    def reads(self) -> list[int]:
        """First offsets of all aborted transactions, as a committed reader gets them at once.

        Raises BeingRepaired.
        """
        return aborted_told(self.log)

    def reads_in_the_end(self) -> list[int]:
        """The same, after the repairs for which the reader has to wait."""
        return told_in_the_end(self.manager, self.reads, repairs=10)

    def known(self) -> list[bool]:
        return [segment.aborted.sum is not None for segment in self.log.segments]


def busy() -> Broker:
    """Aborted transactions in a segment that has ended, and on both sides of a recovery point."""
    broker = Broker()
    broker.abort(2)
    broker.log.roll()
    broker.abort()
    broker.append(10)
    broker.begin()
    broker.settle()
    broker.end()
    broker.abort()
    return broker


ABORTED = [0, 2, 4, 16, 18]
"""First offsets in `busy`, whose recovery point is 17."""


@pytest.mark.parametrize("stop", [Broker.killed, Broker.stopped])
def test_after_any_end_committed_readers_are_answered_at_once(
    stop: Callable[[Broker], Broker],
) -> None:
    again = stop(busy())
    assert again.log.recovery_point == (17 if stop is Broker.killed else 20)
    assert again.known() == [True, True]
    assert again.reads() == ABORTED
    again.abort()
    assert again.reads() == [*ABORTED, 20]
    assert again.manager.statistics().damaged_indexes == {}


def test_after_a_power_loss_as_well() -> None:
    broker = busy()
    broker.fs.open("/a/t-0/partition.metadata").fsync()  # the system does so within seconds
    again = Broker(broker.fs.crash(forget_names=True))
    again.check()
    assert again.log.log_end_offset == 17
    assert again.known() == [True, True]
    assert again.reads() == ABORTED[:3]


@pytest.mark.parametrize("interval", [0, 10**6])
@pytest.mark.parametrize("appended", [0, 3])
def test_notes_are_believed_with_nothing_or_little_above_the_recovery_point(
    interval: int, appended: int
) -> None:
    broker = Broker(config=replace(CONFIG, index_interval_bytes=interval))
    broker.abort(2)
    broker.append(20)
    broker.settle()
    broker.append(appended)
    again = broker.killed()
    assert again.known() == [True]
    assert again.reads() == [0, 2]


def test_a_segment_that_ended_at_the_recovery_point_is_known() -> None:
    broker = Broker()
    broker.abort(2)
    broker.settle()
    broker.log.roll()
    broker.abort()
    again = broker.killed()
    assert again.known() == [True, True]
    assert again.reads() == [0, 2, 4]


def test_life_after_life_it_stays_known() -> None:
    broker, first = busy(), list(ABORTED)
    for life in range(4):
        broker = broker.stopped() if life == 2 else broker.killed()
        assert broker.reads() == first
        first.append(broker.log.log_end_offset)
        broker.abort()
        broker = broker.killed()
        broker.log.roll()
        broker.settle()
    assert broker.stopped().killed().reads() == first


SEEN_BY_THE_START = (
    (0, "half an entry", False),
    (4, "half an entry", True),
    (4, "zeros", True),
)
"""Base offset, damage, whether the broker was stopped: the index itself shows it."""


@pytest.mark.parametrize("stopped", [False, True], ids=["killed", "stopped"])
@pytest.mark.parametrize("base", [0, 4])
@pytest.mark.parametrize("damage", ["gone", "empty", "an entry less", "half an entry", "zeros"])
def test_an_index_that_was_damaged_meanwhile_is_not_believed(
    base: int, damage: str, stopped: bool
) -> None:
    broker = busy()
    if stopped:
        at_once(broker.manager.shutdown())
    broker.fs = broker.fs.crash(keep_unsynced=True)
    path = f"/a/t-0/{base:020d}.txnindex"
    data = broker.fs.read_bytes(path)
    if damage == "gone":
        broker.fs.unlink(path)
    else:
        content = {
            "empty": b"",
            "an entry less": data[34:],
            "half an entry": data[:20],
            "zeros": bytes(len(data)),
        }[damage]
        broker.fs.write_bytes(path, content)
    again = broker.killed()
    if (base, damage, stopped) in SEEN_BY_THE_START:
        assert again.reads() == ABORTED
        return
    assert again.manager.statistics().damaged_indexes == {}
    assert again.reads_in_the_end() == ABORTED
    assert again.manager.statistics().damaged_indexes == {"transaction": 1}


@pytest.mark.parametrize("fails", [False, True])
def test_a_wait_for_a_repair_ends_whatever_comes_of_it(fails: bool) -> None:
    again = busy().killed_without_index()
    woken: list[TopicPartition] = []
    again.manager.repairs.repaired = woken.append
    with pytest.raises(BeingRepaired):
        again.reads()
    assert woken == []
    if fails:
        again.fs.fail("pread", "*.log", times=None)
    run_task(again.manager, log_tasks.REPAIR_INDEXES)
    assert woken == [TP]


def test_entries_that_nobody_has_noted_are_not_believed_either() -> None:
    broker = Broker()
    broker.append(3)
    broker.begin()
    broker.end(ControlType.COMMIT)
    broker.append()
    broker.settle()
    broker.append()
    entry = b"\0\0" + b"".join(n.to_bytes(8, "big") for n in (7, 3, 4, 5))
    broker.fs.write_bytes(INDEX, entry)
    again = broker.killed()
    assert again.known() == [False]
    assert again.reads_in_the_end() == []


# --- what is not true any more


def test_the_notes_are_on_the_disk_before_recovery_points_and_before_anything_is_cut() -> None:
    broker = busy()
    for offset in (7, 2):
        broker.fs.operations.clear()
        broker.log.truncate_to(offset)
        done = [f"{op} {path}" for op, path in broker.fs.operations]
        at = [
            next(at for at, line in enumerate(done) if line.startswith(f"rename {path}"))
            for path in (NOTES, POINTS)
        ]
        synced = done.index("fsync_dir /a", at[0])
        cut_off = next(at for at, line in enumerate(done) if line.startswith("truncate /a/t-0/"))
        assert at[0] < synced < at[1] < done.index("fsync_dir /a", at[1]) < cut_off
        assert read_aborted(broker.fs, "/a")[TP].point == offset


@pytest.mark.parametrize("path", [NOTES, POINTS])
def test_a_truncation_that_found_no_descriptor_writes_them_when_it_is_tried_again(
    path: str,
) -> None:
    broker = busy()
    broker.fs.fail("open", f"{path}*", errno=errno.EMFILE)
    with pytest.raises(OutOfResources):
        broker.log.truncate_to(2)
    assert broker.log.log_end_offset == 20
    broker.log.truncate_to(2)
    assert read_aborted(broker.fs, "/a")[TP].point == 2
    assert OffsetCheckpoint(broker.fs, POINTS).read() == {TP: 2}


def test_nothing_old_is_believed_of_records_in_the_place_of_others_that_were_cut_off() -> None:
    broker = Broker()
    broker.append(6)
    broker.settle()
    broker.log.truncate_to(2)
    broker.abort()
    broker.log.roll()
    broker.append(4)
    for _ in range(2):
        again = broker.killed_without_index()
        assert again.reads() == [2], "all above the cut was read"
        at_once(broker.log.flush())
    broker.write_down()
    assert broker.killed_without_index().reads_in_the_end() == [2]


def test_recovery_points_are_not_written_without_the_notes() -> None:
    broker = busy()
    before = broker.fs.read_bytes(POINTS)
    at_once(broker.log.flush())
    broker.fs.fail("open", f"{NOTES}*", errno=errno.EMFILE)
    with pytest.raises(OutOfResources):
        broker.write_down()
    assert broker.fs.read_bytes(POINTS) == before
    broker.fs.fail("rename", f"{NOTES}*")
    # The directory goes offline when nobody is in the middle of anything.
    later: list[Callable[[], None]] = []
    broker.manager.directories.defer = later.append
    broker.write_down()
    assert broker.fs.read_bytes(POINTS) == before
    assert broker.failed == []
    assert len(later) == 1


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("same_id", [False, True])
def test_a_topic_of_the_same_name_is_another_log(written: bool, same_id: bool) -> None:
    broker = Broker()
    broker.append(4)
    broker.settle()
    broker.manager.async_delete(TP)
    broker.topic_id = TOPIC_ID if same_id else OTHER_ID
    broker.abort(2)
    broker.log.roll()
    broker.append()
    assert TP not in read_aborted(broker.fs, "/a")
    if written:
        at_once(broker.log.flush())
        broker.write_down()
    else:
        # Somebody else writes its recovery point down.
        OffsetCheckpoint(broker.fs, POINTS).write({TP: 4})
    assert broker.killed_without_index().reads_in_the_end() == [0, 2]


def test_the_notes_of_another_topic_are_not_believed() -> None:
    """A broker of Kafka has deleted the topic and made it again, with as many records."""
    broker = Broker()
    broker.append(4)
    broker.settle()
    notes = broker.fs.read_bytes(NOTES)
    other = Broker()
    other.topic_id = OTHER_ID
    other.abort(2)
    other.settle()
    other.append()
    other.fs = other.fs.crash(keep_unsynced=True)
    other.fs.write_bytes(NOTES, notes)
    other.fs.write_bytes(INDEX, b"")
    again = other.killed()
    assert again.known() == [False]
    assert again.reads_in_the_end() == [0, 2]


def test_notes_of_partitions_that_are_not_there_are_taken_for_gone_by_a_start() -> None:
    broker = busy()
    line = broker.log.aborted_sums.line(broker.log.topic_id)
    broker.fs.write_bytes(NOTES, encode_aborted([line, line.replace("t 0", "other 3")]))
    again = broker.killed()
    other = TopicPartition("other", 3)
    assert other in read_aborted(again.fs, "/a")
    again.manager.get_or_create_log(other, TOPIC_ID, CONFIG, is_new=True)
    assert other not in read_aborted(again.fs, "/a")


def test_what_kafka_has_appended_to_makes_the_notes_old() -> None:
    """It writes recovery points, and no notes."""
    broker = busy()
    notes = broker.fs.read_bytes(NOTES)
    broker.settle()
    broker.fs.write_bytes(NOTES, notes)
    again = broker.killed()
    assert again.known() == [False, False]
    assert again.reads_in_the_end() == ABORTED


@pytest.mark.parametrize("appended", [True, False])
def test_what_kafka_has_stopped_in_order_makes_them_old_as_well(appended: bool) -> None:
    """It has cut the log, whose recovery point is lower then; or it has appended to it."""
    broker = busy()
    if appended:
        at_once(broker.manager.shutdown())
        notes = broker.fs.read_bytes(NOTES)
        broker = Broker(broker.fs.crash(keep_unsynced=True))
        broker.abort()
    else:
        broker.settle()
        notes = broker.fs.read_bytes(NOTES)
        broker.log.truncate_to(4)
    at_once(broker.manager.shutdown())
    broker.fs.write_bytes(NOTES, notes)
    broker.fs = broker.fs.crash(keep_unsynced=True)
    again = broker.killed()
    assert not again.known()[0]


def test_a_log_that_does_not_end_where_it_was_stopped_is_not_what_was_noted() -> None:
    """Somebody has put a longer record file in its place, and no transaction index."""
    broker = Broker()
    broker.append(2)
    longer = Broker()
    longer.append(2)
    longer.abort()
    at_once(broker.manager.shutdown())
    at_once(longer.manager.shutdown())
    for suffix in ("log", "index", "timeindex"):
        path = f"/a/t-0/{0:020d}.{suffix}"
        broker.fs.write_bytes(path, longer.fs.read_bytes(path))
    again = broker.killed()
    assert again.known() == [False]
    assert again.reads_in_the_end() == [2]


@pytest.mark.parametrize("stopped", [False, True], ids=["killed", "stopped"])
@pytest.mark.parametrize("content", [None, b"", b"0\n1\nt 0 20 0 4\n", b"\xff"])
def test_without_a_usable_file_the_log_is_read_once(content: bytes | None, stopped: bool) -> None:
    broker = busy()
    if stopped:
        at_once(broker.manager.shutdown())
    if content is None:
        broker.fs.unlink(NOTES)
    else:
        broker.fs.write_bytes(NOTES, content)
    again = broker.killed()
    assert again.reads_in_the_end() == ABORTED
    assert again.manager.statistics().damaged_indexes == {}, "it was only not known"
    # And noted within seconds, though no recovery point moves.
    before = again.log.recovery_point
    again.settle()
    third = again.killed()
    assert third.log.recovery_point >= before
    assert third.reads() == ABORTED


@pytest.mark.parametrize("rolled", [False, True])
def test_a_note_from_the_moment_between_two_files_is_believed_below_the_recovery_point(
    rolled: bool,
) -> None:
    broker = Broker()
    broker.abort()
    broker.settle()
    points = broker.fs.read_bytes(POINTS)
    broker.append(2)
    if rolled:
        broker.log.roll()
    broker.abort()
    broker.settle()
    broker.fs.write_bytes(POINTS, points)
    again = broker.killed()
    assert again.log.recovery_point == 2
    assert again.known() == [True] * (1 + rolled)
    assert again.reads() == [0, 4]


def test_segments_that_retention_has_taken_are_not_missed() -> None:
    broker = busy()
    broker.log.maybe_increment_log_start_offset(4, StartOffsetReason.CLIENT_RECORD_DELETION)
    run_task(broker.manager, log_tasks.RETENTION)
    assert broker.log.segments.first.base_offset == 4
    again = broker.killed()
    assert again.known() == [True]
    assert again.reads() == ABORTED[2:]


@pytest.mark.parametrize("merged", [True, False])
def test_nothing_old_is_believed_of_segments_that_were_replaced(merged: bool) -> None:
    broker = Broker(config=replace(CONFIG, cleanup_policy=frozenset({"compact"})))
    broker.append(2)
    broker.log.roll()
    broker.abort()
    broker.log.roll()
    broker.append()
    broker.settle()
    old = list(broker.log.segments)[: 2 if merged else 1]
    replace_segments(broker.log, old)
    again = broker.killed_without_index()
    # With the same beginning and end it can only have less than was noted.
    assert again.reads_in_the_end() == [2] if merged else again.reads() == [2]
    broker.settle()
    broker.write_down()
    again = broker.killed()
    assert not again.known()[0]
    assert again.reads_in_the_end() == [2]


def test_a_copy_in_another_directory_is_another_log() -> None:
    """It was given up, and another one begun: with other segments, under the same topic id."""
    broker = Broker(log_dirs="/a,/b")
    broker.append(4)
    source, target = ("/a", "/b") if broker.manager.dir_of(TP) == "/a" else ("/b", "/a")
    copy = broker.manager.moves.create_future_log(TP, target)
    batches = [build_batch([(1, b"k", b"v", ())], base_offset=at) for at in range(4)]
    for batch in batches:
        copy.appender.append_as_follower(batch)
    at_once(copy.flush())
    broker.write_down()
    assert read_aborted(broker.fs, target)[TP].segments.keys() == {0}
    broker.manager.moves.cancel(TP)
    broker.manager.moves.create_future_log(TP, target)
    assert TP not in read_aborted(broker.fs, target)
    assert TP in read_aborted(broker.fs, source)


# --- starts that take long


def test_a_start_that_is_killed_leaves_notes_of_what_it_has_recovered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recovery, "_SYNC_EVERY_S", 0.0)
    broker = Broker()
    for _ in range(4):
        broker.abort()
        broker.log.roll()
    broker.append()
    again = broker.killed(start=False)
    job = again.loading()
    synced: list[int] = []
    told = job._synced

    def tell(offset: int, line: str) -> None:
        told(offset, line)
        synced.append(offset)
        at_once(again.manager.checkpoint_loading())
        assert list(read_aborted(again.fs, "/a")[TP].segments) == list(range(0, offset, 2))
        if offset == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(type(job), "_synced", lambda _, offset, line: tell(offset, line))
    with suppress(KeyboardInterrupt):
        job.run()
    monkeypatch.undo()
    assert synced == [2, 4, 6]
    third = again.killed()
    assert third.log.recovery_point == 6
    assert third.known() == [True] * 5
    assert third.reads() == [0, 2, 4, 6]


def test_what_was_not_come_to_yet_keeps_its_notes() -> None:
    broker = busy()
    again = broker.killed(start=False)
    job = again.loading()
    before = again.fs.read_bytes(NOTES)
    at_once(again.manager.checkpoint_loading())
    assert again.fs.read_bytes(NOTES) == before
    job.complete(job.run())
    at_once(again.manager.checkpoint_loading())
    assert again.fs.read_bytes(NOTES) == before
    assert again.killed().reads() == ABORTED


def test_what_is_loaded_is_noted_as_it_is_then() -> None:
    again = busy().killed(start=False)
    job = again.loading()
    job.sync_above_s = 0.0
    job.complete(job.run())
    at_once(again.manager.checkpoint_loading())
    third = again.killed()
    assert third.log.recovery_point == 20
    assert third.known() == [True, True]
    assert third.reads() == ABORTED


# --- many logs


def test_the_lines_of_logs_at_rest_are_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    made: list[str] = []
    for partition in range(20):
        tp = TopicPartition("u", partition)
        broker.manager.get_or_create_log(tp, TOPIC_ID, CONFIG, is_new=True)
    broker.write_down()
    from storage.log import aborted_sums

    line_of = aborted_sums.line_of

    def counted(tp: TopicPartition, *rest: object) -> str:
        made.append(str(tp))
        return line_of(tp, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(aborted_sums, "line_of", counted)
    broker.abort()
    broker.settle()
    assert set(made) == {"t-0"}
    assert len(read_aborted(broker.fs, "/a")) == 21


STORIES: MappingProxyType[str, Callable[[Broker], object]] = MappingProxyType(
    {
        "abort": Broker.abort,
        "begin": lambda broker: broker.begin(Random(broker.log.log_end_offset).randint(7, 9)),
        "end": lambda broker: broker.end(producer_id=Random(broker.fs.now_ms).randint(7, 9)),
        "commit": lambda broker: broker.end(ControlType.COMMIT),
        "append": Broker.append,
        "roll": lambda broker: broker.log.roll(),
        "flush": lambda broker: at_once(broker.log.flush()),
        "settle": Broker.settle,
        "write down": Broker.write_down,
        "cut": lambda broker: broker.log.truncate_to(
            max(broker.log.log_start_offset, broker.log.log_end_offset - 5)
        ),
        "cut below the start": lambda broker: broker.log.truncate_to(
            max(0, broker.log.log_end_offset - 9)
        ),
        "start over": lambda broker: broker.log.truncate_fully_and_start_at(
            max(0, broker.log.log_end_offset - 2)
        ),
        "delete": lambda broker: broker.manager.async_delete(TP),
        "retention": lambda broker: run_task(broker.manager, log_tasks.RETENTION),
        "delete records": lambda broker: broker.log.maybe_increment_log_start_offset(
            broker.log.high_watermark, StartOffsetReason.CLIENT_RECORD_DELETION
        ),
    }
)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happened_before_a_kill_nothing_untrue_is_believed(seed: int) -> None:
    random = Random(seed)
    broker = Broker()
    broker.append()
    weights = [4, 3, 3, 2, 3, 2, 2, 4, 2, 2, 1, 1, 1, 1, 1]
    for _ in range(60):
        name = random.choices(list(STORIES), weights)[0]
        with suppress(ValueError, KafkaError):
            STORIES[name](broker)
        kind = random.random()
        if kind < 0.15:
            broker = broker.killed()
        elif kind < 0.18:
            broker = broker.stopped()
    broker.settle()
    assert broker.killed().log.log_end_offset == broker.log.log_end_offset
