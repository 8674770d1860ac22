"""Records that no repair may take: behind holes of compaction, and in partitions that come here."""

from random import Random

import pytest

from config.topic_config import TopicConfig
from protocol.records.batch import iter_batches, verify_crc
from storage.check.findings import PartitionVerdict, Verdict
from storage.check.log_dir import LogDirCheck
from storage.checkpoint import OffsetCheckpoint
from storage.paths import parent_dir
from storage.waits import at_once
from tests.support.compacted_log import CompactedLog
from tests.support.managed_logs import Managed

MARKER = "/logs/.kafka_cleanshutdown"


def compacted() -> CompactedLog:
    """Return a log, closed in order, whose cleaning has left holes between its segments."""
    log = CompactedLog(segment_bytes=160)  # two batches
    for keys in ((1, 2), (2, 3), (4, 5), (6,)):
        for key in keys:
            log.keys(key)
    log.clean(roll=False)
    assert log.offsets() == [0, 2, 3, 4, 5, 6]
    assert log.log.segments.base_offsets == [0, 2, 4, 6]
    at_once(log.log.flush())
    at_once(log.log.close())
    log.fs.open(MARKER, create=True).close()
    return log


@pytest.mark.parametrize("from_start", [True, False])
def test_decision_15_holes_that_compaction_left_are_no_damage(from_start: bool) -> None:
    log = compacted()
    if not from_start:
        log.fs.unlink(MARKER)
    before = log.offsets()
    verdict = repaired(log, from_start=from_start)
    assert verdict.verdict in (Verdict.SOUND, Verdict.HEALS)
    assert verdict.log_end_offset == 7
    log.open(recovery_point=7)
    assert log.offsets() == before


@pytest.mark.parametrize("was_clean", [True, False])
def test_a_partition_on_its_way_is_recovered_by_the_start_after_a_repair(was_clean: bool) -> None:
    logs = Managed(config=TopicConfig())
    logs.fill(logs.log("u"))
    logs.log("other")
    assert parent_dir(logs.log("u").dir) == "/a"
    at_once(logs.manager.shutdown())
    future = f"/a/u-0.{'0' * 32}-future"
    logs.fs.rename("/a/u-0", future)
    if not was_clean:
        logs.fs.unlink("/a/.kafka_cleanshutdown")
        OffsetCheckpoint(logs.fs, "/a/recovery-point-offset-checkpoint").write({})
        file = logs.fs.open(f"{future}/{0:020d}.log")
        file.pwrite(bytes([file.pread(1, 200)[0] ^ 1]), 200)
        file.close()
    check = LogDirCheck(logs.fs, logs.clock, Random(1), ["/a"])
    check.lock()
    check.repair(list(check.partitions()), lambda _: "/backup")
    check.unlock()
    assert logs.fs.exists("/a/.kafka_cleanshutdown") is was_clean
    logs.start()
    (log,) = [log for log in logs.manager.all_logs() if log.topic_partition.topic == "u"]
    data = log.segments.active.file.pread(log.size, 0)
    assert all(verify_crc(data, at, header) for at, header in iter_batches(data))
    assert log.log_end_offset == (16 if was_clean else 2)


def repaired(log: CompactedLog, *, from_start: bool = False) -> PartitionVerdict:
    """Check and repair the directory of the log; return the verdict of before."""
    check = LogDirCheck(log.fs, log.clock, Random(1), ["/logs"], from_start=from_start)
    (verdict,) = check.partitions()
    check.lock()
    check.repair([verdict], lambda _: "/backup")
    check.unlock()
    return verdict
