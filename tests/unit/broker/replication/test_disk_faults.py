"""S-REC-11 everywhere: whichever disk operation fails, and however, only its directory is lost.

One workload touches all that a log does to its disk: appends with index growth and aborted
transactions, rolls, flushes, checkpoints, retention, deleted files. It is run once for each of its
operations, which fails then and for ever, as a full or broken disk does.
"""

import errno
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from config.topic_config import TopicConfig
from protocol.errors import ErrorCode
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.types import TopicPartition
from storage import log_tasks
from storage.append_origin import AppendOrigin
from storage.errors import StorageError
from storage.log.log import Log
from storage.waits import at_once
from tests.support.broker_bench import batch
from tests.support.faulty_filesystem import FailureRule, FaultyFileSystem
from tests.support.log_tasks import run_task
from tests.support.real_bench import RealBench

CONFIG = TopicConfig(
    segment_bytes=400,
    index_interval_bytes=0,
    segment_index_bytes=10_000,
    file_delete_delay_ms=0,
    retention_bytes=900,
    flush_messages=9,
)
CHANGES = {
    "pwrite": "a write",
    "pwritev": "a checkpoint's write",
    "truncate": "pre-sizing and trimming",
    "allocate": "preallocation",
    "open": "opening or making a file",
    "rename": "a rename",
    "unlink": "removing a file",
    "fsync": "a sync",
    "fsync_dir": "a directory's sync",
    "make_dirs": "making a directory",
}
PRODUCER = 77
STORAGE = ErrorCode.KAFKA_STORAGE_ERROR


class DyingDisk(FaultyFileSystem):
    """From the `nth` change below `root` on, nothing works there; `dead` says what failed first."""

    def __init__(self, root: str = "/a/") -> None:
        super().__init__()
        self.root = root
        self.changes: list[tuple[str, str]] = []
        self.nth = 1 << 60
        self.code = errno.EIO
        self.partial: int | None = None

    @property
    def dead(self) -> bool:
        return len(self.changes) >= self.nth

    def _act(self, operation: str, path: str) -> FailureRule | None:
        if operation in CHANGES and path.startswith(self.root):
            self.changes.append((operation, path))
            if self.dead:
                return FailureRule(operation, path, 1, None, self.code, self.partial)
        return super()._act(operation, path)


class Work:
    """The workload; `acknowledged` are the values of topic t that an answer has acknowledged."""

    def __init__(self, fs: Any = None, **logs: Any) -> None:
        """`logs` are attributes of the log manager."""
        self.fs = fs or DyingDisk()
        self.bench = RealBench(log_dirs="/a,/b", fs=self.fs)
        for name, value in logs.items():
            setattr(self.bench.logs, name, value)
        self.bench.topic("t", config=CONFIG)
        self.bench.topic("u", config=CONFIG)
        self.partition = self.bench.replicas.find(("t", 0))
        assert self.bench.logs.dir_of(TopicPartition("t", 0)) == "/a"
        self.acknowledged: list[tuple[int, bytes]] = []
        self.attempted: list[tuple[int, bytes]] = []

    def run(self) -> None:
        logs = self.bench.logs
        tasks: list[Callable[[], object]] = [
            partial(run_task, logs, log_tasks.FLUSH_ROLLED),
            partial(run_task, logs, log_tasks.RECOVERY_POINT_CHECKPOINT),
            lambda: at_once(logs.checkpoint_high_watermarks()),
            partial(run_task, logs, log_tasks.RETENTION),
            partial(run_task, logs, log_tasks.LOG_START_CHECKPOINT),
            partial(run_task, logs, log_tasks.DELETE_LOGS),
            partial(run_task, logs, log_tasks.FLUSHER),
        ]
        for number in range(14):
            self.produce(b"value %d" % number)
            if number % 4 == 1:
                self.abort(number)
            self.task(tasks[number % len(tasks)])
            if self.fs.dead:
                # The client or the task has found out: everybody knows now.
                assert logs.offline_dirs == ("/a",), self.fs.changes[self.fs.nth - 1]

    def produce(self, value: bytes) -> None:
        end = self.partition.log.log_end_offset
        was_dead = self.fs.dead
        reply = self.bench.produce(batch([value]))
        self.attempted.append((end, value))
        if self.fs.dead:
            assert reply.error_code in ((STORAGE,) if was_dead else (0, STORAGE))
        else:
            assert reply.error_code == 0
        if reply.error_code == 0:
            assert reply.base_offset == end
            self.acknowledged.append((end, value))
        assert self.bench.produce(batch([value]), topic="u").error_code == 0

    def abort(self, number: int) -> None:
        """A transaction that is aborted: the transaction index is written."""
        log = self.partition.log
        data, marker = self.aborted_transaction(number)
        try:
            self.append(data)
            self.append(marker, AppendOrigin.COORDINATOR)
            log.update_high_watermark(log.log_end_offset)
        except StorageError as error:
            assert self.fs.dead
            self.bench.replicas.storage_failed(self.partition, error)

    def aborted_transaction(self, number: int) -> tuple[bytes, bytes]:
        """Its data and its marker."""
        data = batch(
            [b"never seen"],
            producer_id=PRODUCER + number,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        marker = build_end_transaction_marker(
            ControlType.ABORT,
            producer_id=PRODUCER + number,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp=self.bench.clock.wall_ms(),
        )
        return data, marker

    def append(self, records: bytes, origin: AppendOrigin = AppendOrigin.CLIENT) -> None:
        self.partition.log.append_as_leader(records, leader_epoch=0, origin=origin)

    def task(self, run: Callable[[], object]) -> None:
        run()


def count() -> list[tuple[str, str]]:
    work = Work()
    begin = len(work.fs.changes)
    work.run()
    assert work.bench.logs.offline_dirs == ()
    return work.fs.changes[begin:]


def test_the_workload_changes_the_disk_in_every_way():
    changes = count()
    kinds = {operation for operation, _ in changes}
    assert kinds >= {"pwrite", "truncate", "open", "rename", "unlink", "fsync", "fsync_dir"}
    suffixes = {path.rsplit(".", 1)[-1] for _, path in changes}
    assert suffixes >= {"log", "index", "timeindex", "txnindex", "snapshot", "deleted", "tmp"}


HOW = [(errno.ENOSPC, 7), (errno.EIO, None), (errno.EROFS, 60)]


@pytest.mark.parametrize("how", range(3))
def test_s_rec_11_whatever_fails_only_that_directory_is_lost(how):
    fail_at_every(how, first=how + 1, step=9)


@pytest.mark.slow
@pytest.mark.parametrize("how", range(3))
def test_s_rec_11_every_single_operation(how):
    fail_at_every(how, first=1, step=1)


def fail_at_every(how: int, *, first: int, step: int) -> None:
    changes = len(count())
    for nth in range(first, changes + 1, step):
        work = Work()
        fs = work.fs
        fs.code, fs.partial = HOW[how]
        fs.nth = len(fs.changes) + nth
        work.run()
        assert work.bench.logs.offline_dirs == ("/a",)
        # Nobody is served from there, everybody from the other one.
        assert work.bench.fetch(work.partition.log.log_start_offset).error_code == STORAGE
        assert work.bench.offset_for(-1)[0] == STORAGE
        assert work.bench.produce(batch()).error_code == STORAGE
        assert work.bench.produce(batch(), topic="u").error_code == 0
        assert work.bench.offset_for(-1, topic="u")[0] == 0
        _check_restart(work, fs.changes[fs.nth - 1])


def after_a_restart(work: Work) -> tuple[RealBench, Log, list[tuple[int, bytes]]]:
    """A start on what the work left, its log, and (offset, value) of the records in it."""
    again = RealBench(log_dirs="/a,/b", fs=work.fs.crash(keep_unsynced=True))
    (partition,) = again.topic("t", config=CONFIG, is_new=False)
    log = partition.log
    log._check()
    kept = [
        (offset, value)
        for segment in log.segments  # a fetch answers from one
        if segment.size
        for offset, value in again.values(max(segment.base_offset, log.log_start_offset))
        if value.startswith(b"value")
    ]
    return again, log, kept


def _check_restart(work: Work, struck: tuple[str, str]) -> None:
    """The disk is repaired: all that was acknowledged is there, and no half of anything."""
    again, log, kept = after_a_restart(work)
    wanted = [pair for pair in work.acknowledged if pair[0] >= log.log_start_offset]
    assert kept[: len(wanted)] == wanted, struck
    # The write that failed may have reached the disk as a whole, though no answer says so.
    assert len(kept) - len(wanted) <= 1, struck
    assert set(kept) <= set(work.attempted), struck
    assert again.produce(batch()).error_code == 0
