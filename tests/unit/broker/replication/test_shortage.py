"""No descriptor is left: nothing acknowledged is lost, no directory fails, it goes on afterwards.

The workload of `test_disk_faults`, which opens files in every way, is run once for each opening
that may find no descriptor, and for a while after it. Clients and tasks try again, as they do.
"""

import errno

import pytest

from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage.append_origin import AppendOrigin
from storage.errors import OutOfResources
from storage.open_files import OpenFiles
from storage.waits import at_once
from tests.support.broker_bench import batch
from tests.support.faulty_filesystem import FailureRule, FaultyFileSystem
from tests.support.log_tasks import run_task
from tests.support.real_bench import RealBench
from tests.unit.broker.replication.test_disk_faults import STORAGE, Work, after_a_restart

NEEDS_A_DESCRIPTOR = {"open", "map", "fsync_dir", "list_dir", "read_bytes"}


class CrowdedFileSystem(FaultyFileSystem):
    """From the `nth` opening on `times` of them find no descriptor."""

    def __init__(self) -> None:
        super().__init__()
        self.openings = 0
        self.nth = 1 << 60
        self.times = 0
        self.struck: list[tuple[str, str]] = []

    @property
    def dead(self) -> bool:
        return False

    def _act(self, operation: str, path: str) -> FailureRule | None:
        if operation in NEEDS_A_DESCRIPTOR:
            self.openings += 1
            if self.nth <= self.openings < self.nth + self.times:
                self.struck.append((operation, path))
                return FailureRule(operation, path, 1, None, errno.EMFILE, None)
        return super()._act(operation, path)


class Persistent(Work):
    """Everybody tries again until it works."""

    def __init__(self) -> None:
        super().__init__(CrowdedFileSystem(), open_files=OpenFiles(9))

    def produce(self, value: bytes) -> None:
        for topic in ("t", "u"):
            for _ in range(20):
                end = self.bench.replicas.find((topic, 0)).log.log_end_offset
                reply = self.bench.produce(batch([value]), topic=topic)
                if topic == "t":
                    self.attempted.append((end, value))
                if reply.error_code == 0:
                    break
                assert reply.error_code == STORAGE
            assert reply.error_code == 0
            if topic == "t":
                assert reply.base_offset == end
                self.acknowledged.append((end, value))

    def abort(self, number: int) -> None:
        log = self.partition.log
        data, marker = self.aborted_transaction(number)
        for records, origin in ((data, AppendOrigin.CLIENT), (marker, AppendOrigin.COORDINATOR)):
            self._append_until_done(records, origin)
        log.update_high_watermark(log.log_end_offset)
        assert log.last_stable_offset == log.log_end_offset

    def _append_until_done(self, records: bytes, origin: AppendOrigin) -> None:
        for _ in range(20):
            try:
                self.append(bytearray(records), origin)  # patched in place
            except OutOfResources as error:
                self.bench.replicas.storage_failed(self.partition, error)
            else:
                return
        raise AssertionError("never appended")

    def task(self, run) -> None:
        for _ in range(20):
            try:
                run()
            except OutOfResources:
                continue
            return
        raise AssertionError("never ran through")


def openings_of_the_workload() -> int:
    work = Persistent()
    begin = work.fs.openings
    work.run()
    return work.fs.openings - begin


def lose_nothing(*, first: int, step: int, times: int) -> None:
    strikes = 0
    for nth in range(first, openings_of_the_workload() + 1, step):
        work = Persistent()
        work.fs.nth = work.fs.openings + nth
        work.fs.times = times
        work.run()
        work.fs.times = 0
        where = work.fs.struck
        strikes += len(where)
        assert work.bench.logs.offline_dirs == (), where
        log = work.partition.log
        log._check()
        at_once(log.flush())
        aborted = [
            txn.first_offset
            for segment in log.segments
            for txn in segment.aborted.index.all_aborted()
        ]
        _check_restart(work, aborted, where)
    assert strikes


def _check_restart(work: Persistent, aborted: list[int], where: object) -> None:
    _, log, kept = after_a_restart(work)
    wanted = {pair for pair in work.acknowledged if pair[0] >= log.log_start_offset}
    assert wanted <= set(kept), where
    # A flush that flush.messages asks for may fail after the append.
    assert set(kept) <= set(work.attempted), where
    found = [
        txn.first_offset for segment in log.segments for txn in segment.aborted.index.all_aborted()
    ]
    assert found == aborted, where


@pytest.mark.parametrize("times", [1, 4])
def test_a_shortage_loses_nothing_and_fails_no_directory(times: int) -> None:
    lose_nothing(first=times, step=11, times=times)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2, 6])
def test_a_shortage_at_every_single_opening(times: int) -> None:
    lose_nothing(first=1, step=1, times=times)


def test_a_log_that_cannot_be_made_leaves_nothing_and_is_made_later() -> None:
    bench = RealBench(fs=FaultyFileSystem())
    rule = bench.fs.fail("open", "*.timeindex", errno=errno.EMFILE)
    tp = TopicPartition("t", 0)
    with pytest.raises(OutOfResources):
        bench.logs.get_or_create_log(tp, b"i" * 16, TopicConfig(), is_new=True)
    assert rule.hits
    assert "t-0" not in bench.fs.list_dir("/a")
    assert bench.logs.live_dirs == ("/a",)
    assert bench.logs.get_or_create_log(tp, b"i" * 16, TopicConfig(), is_new=True).size == 0


def test_a_checkpoint_that_finds_no_descriptor_is_written_by_the_next_run() -> None:
    bench = RealBench(fs=FaultyFileSystem())
    bench.topic("t")
    assert bench.produce(batch()).error_code == 0
    at_once(bench.replicas.find(("t", 0)).log.flush())
    bench.fs.fail("open", "*recovery-point*", errno=errno.ENFILE)
    with pytest.raises(OutOfResources):
        run_task(bench.logs, "kafka-recovery-point-checkpoint")
    run_task(bench.logs, "kafka-recovery-point-checkpoint")
    assert b"t 0 1" in bench.fs.read_bytes("/a/recovery-point-offset-checkpoint")
    assert bench.logs.live_dirs == ("/a",)
