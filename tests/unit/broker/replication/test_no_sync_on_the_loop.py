"""The event loop never waits for a disk's sync: tasks that run in threads sync."""

import pytest

from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage import log_tasks
from tests.support.broker_bench import batch
from tests.support.log_tasks import run_task
from tests.support.real_bench import RealBench

CONFIG = TopicConfig(
    segment_bytes=300, index_interval_bytes=0, retention_bytes=200, file_delete_delay_ms=0
)
TP = TopicPartition("t", 0)


def syncs(bench: RealBench) -> list[tuple[str, str]]:
    return [op for op in bench.fs.operations if op[0] in ("fsync", "fsync_dir")]


@pytest.fixture
def bench() -> RealBench:
    """With a topic that has been in use and was checkpointed."""
    bench = RealBench()
    bench.topic("t", config=CONFIG)
    for _ in range(10):
        assert bench.produce(batch()).error_code == 0
    run_task(bench.logs, log_tasks.FLUSH_ROLLED)
    run_task(bench.logs, log_tasks.RECOVERY_POINT_CHECKPOINT)
    bench.fs.operations.clear()
    return bench


def test_s_roll_4_appends_and_rolls_and_new_epochs_do_not_sync(bench: RealBench) -> None:
    segments = len(bench.logs.get_log(TP).segments)
    for epoch in range(1, 4):
        bench.topic("t", config=CONFIG, is_new=False, leader_epoch=epoch)
        for number in range(6):
            idempotent = {"producer_id": 5, "producer_epoch": epoch, "base_sequence": number}
            assert bench.produce(batch(**idempotent)).error_code == 0
            assert bench.fetch(0).error_code == 0
    assert len(bench.logs.get_log(TP).segments) > segments
    assert syncs(bench) == []
    run_task(bench.logs, log_tasks.FLUSH_ROLLED)
    synced = {path.rsplit("/", 1)[-1].split(".")[-1] for _, path in syncs(bench)}
    assert synced >= {"log", "index", "timeindex", "snapshot", "t-0", "tmp"}
    log = bench.logs.get_log(TP)
    assert log.recovery_point == log.segments.active.base_offset


def test_a_topic_is_made_without_a_sync(bench: RealBench) -> None:
    bench.topic("u", 3, config=CONFIG)
    for index in range(3):
        assert bench.produce(batch(), topic="u", index=index).error_code == 0
    assert syncs(bench) == []


def test_retention_does_not_sync(bench: RealBench) -> None:
    run_task(bench.logs, log_tasks.RETENTION)
    assert bench.logs.get_log(TP).log_start_offset > 0
    assert syncs(bench) == []
