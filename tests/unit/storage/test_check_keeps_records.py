"""Records that no repair may take: behind holes of compaction, and in partitions that come here."""

from random import Random

import pytest

from storage.check.findings import PartitionVerdict, Verdict
from storage.check.log_dir import LogDirCheck
from storage.waits import at_once
from tests.support.compacted_log import CompactedLog

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


def repaired(log: CompactedLog, *, from_start: bool = False) -> PartitionVerdict:
    """Check and repair the directory of the log; return the verdict of before."""
    check = LogDirCheck(log.fs, log.clock, Random(1), ["/logs"], from_start=from_start)
    (verdict,) = check.partitions()
    check.lock()
    check.repair([verdict], lambda _: "/backup")
    check.unlock()
    return verdict
