"""Directories, topics that come and go, tasks, start, stop (S-RET-1, S-RET-8, S-FL-1, S-REC-7)."""

from pathlib import Path

import pytest

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.records.builder import build_batch
from protocol.types import ZERO_UUID, TopicPartition
from storage import log_tasks
from storage.errors import StorageError
from storage.log.log import Log
from storage.log.results import StartOffsetReason
from storage.log_manager import LogManager
from storage.manager.log_table import LogTable
from storage.os_filesystem import OsFileSystem
from storage.paths import parent_dir
from storage.waits import at_once
from tests.support.log_managers import log_manager
from tests.support.log_tasks import run_task
from tests.support.managed_logs import CONFIG, ID, Managed
from tests.support.manual_clock import ManualClock


def test_new_logs_go_to_the_directory_with_the_fewest() -> None:
    managed = Managed("/a,/b,/c")
    for partition in range(7):
        managed.log(partition=partition)
    used = [parent_dir(log.dir) for log in managed.manager.all_logs()]
    counts = [used.count(path) for path in ("/a", "/b", "/c")]
    assert sorted(counts) == [2, 2, 3]
    assert managed.manager.dir_of(TopicPartition("t", 0)) == "/a"
    assert managed.manager.dir_of(TopicPartition("t", 1)) == "/b"
    assert managed.manager.dir_of(TopicPartition("no", 1)) is None


def test_logs_that_went_are_not_counted_and_many_are_not_counted_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    managed = Managed("/a,/b")
    for partition in range(4):
        managed.log(partition=partition)
    for partition in (0, 2):
        assert managed.manager.dir_of(TopicPartition("t", partition)) == "/a"
        managed.manager.async_delete(TopicPartition("t", partition))
    for partition in (4, 5):
        managed.log(partition=partition)
        assert managed.manager.dir_of(TopicPartition("t", partition)) == "/a"
    counted = 0

    def everything(table: LogTable) -> list[Log]:
        nonlocal counted
        counted += 1
        return [*table.logs.values(), *table.future.values()]

    monkeypatch.setattr(LogTable, "everything", everything)
    for partition in range(10, 20):
        managed.log(partition=partition)
    assert counted == 0


def test_a_log_is_made_once_and_keeps_its_topic_id() -> None:
    managed = Managed()
    log = managed.log()
    assert managed.log() is log
    managed.kill()
    again = managed.manager.get_log(TopicPartition("t", 0))
    assert again is not None
    assert again.topic_id == ID
    with pytest.raises(KafkaError) as caught:
        managed.manager.get_or_create_log(TopicPartition("t", 0), b"\x01" * 16, CONFIG)
    assert caught.value.code is ErrorCode.INCONSISTENT_TOPIC_ID


def test_a_log_of_before_topic_ids_is_given_one() -> None:
    managed = Managed()
    tp = TopicPartition("t", 0)
    assert managed.manager.get_or_create_log(tp, ZERO_UUID, CONFIG).topic_id == ZERO_UUID
    assert managed.log().topic_id == ID
    managed.restart()
    assert managed.log().topic_id == ID


def test_s_rec_1_a_clean_stop_leaves_markers_and_checkpoints() -> None:
    managed = Managed()
    managed.fill(managed.log())
    at_once(managed.manager.shutdown())
    assert managed.fs.exists("/a/.kafka_cleanshutdown")
    assert managed.fs.read_bytes("/a/recovery-point-offset-checkpoint") == b"0\n1\nt 0 16\n"
    managed.start()
    assert not managed.fs.exists("/a/.kafka_cleanshutdown")
    assert managed.log().recovery_point == 16


def test_s_rec_1_a_crash_while_loading_is_followed_by_recovery() -> None:
    managed = Managed()
    managed.fill(managed.log())
    at_once(managed.manager.shutdown())
    assert [job.clean for job in managed.loading()[1]] == [True]
    managed.fs = managed.fs.crash(keep_unsynced=True)
    assert [job.clean for job in managed.loading()[1]] == [False]


@pytest.mark.parametrize("stopped", ["before", "while loading", "by a partition found twice"])
@pytest.mark.parametrize("after", ["a clean stop", "a crash"])
def test_s_rec_1_a_start_that_ends_before_the_logs_are_loaded_leaves_the_checkpoints(
    stopped: str, after: str
) -> None:
    managed = Managed(config=TopicConfig())
    log = managed.log()
    managed.fill(log)
    log.maybe_increment_log_start_offset(10, StartOffsetReason.CLIENT_RECORD_DELETION)
    at_once(log.flush())
    for task in (log_tasks.RECOVERY_POINT_CHECKPOINT, log_tasks.LOG_START_CHECKPOINT):
        run_task(managed.manager, task)
    if after == "a clean stop":
        at_once(managed.manager.shutdown())
    else:
        managed.fs = managed.fs.crash(keep_unsynced=True)
    names = ("log-start-offset-checkpoint", "recovery-point-offset-checkpoint")
    before = [managed.fs.read_bytes(f"/a/{name}") for name in names]
    if stopped == "before":
        failed = managed.unloaded()
        failed.directories.lock_and_check()
    elif stopped == "while loading":
        failed, _ = managed.loading()
    else:
        managed.fs.make_dirs("/b/t-0")
        failed = managed.unloaded()
        failed.directories.lock_and_check()
        with pytest.raises(StorageError, match="Duplicate"):
            failed.load_logs(lambda topic: managed.config)
    at_once(failed.shutdown())
    assert [managed.fs.read_bytes(f"/a/{name}") for name in names] == before
    if stopped == "by a partition found twice":
        managed.fs.remove_tree("/b/t-0")
    managed.start()
    assert (managed.log().log_start_offset, managed.log().recovery_point) == (10, 16)


def test_loading_tells_its_progress() -> None:
    managed = Managed()
    for partition in range(3):
        managed.log(partition=partition)
    at_once(managed.manager.shutdown())
    manager = managed.unloaded()
    manager.directories.lock_and_check()
    seen: list[tuple[int, int]] = []
    manager.load_logs(lambda topic: CONFIG, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert len(manager.all_logs()) == 3


def test_s_rec_10_how_far_a_start_has_come_is_written_down_for_the_next_one() -> None:
    managed = Managed("/a")
    logs = [managed.log(partition=partition) for partition in range(3)]
    for log in logs:
        managed.fill(log)
    at_once(logs[1].flush())
    run_task(managed.manager, log_tasks.RECOVERY_POINT_CHECKPOINT)
    managed.fs = managed.fs.crash(keep_unsynced=True)
    manager = managed.unloaded()
    manager.directories.lock_and_check()
    at_once(manager.checkpoint_loading())  # nothing is known yet, and nothing is forgotten
    for job in manager.load_jobs(lambda topic: CONFIG):
        if job.topic_partition.partition == 0:
            job.sync_above_s = 0
            job.complete(job.run())
    at_once(manager.checkpoint_loading())
    points = managed.fs.read_bytes("/a/recovery-point-offset-checkpoint")
    assert points == b"0\n3\nt 0 16\nt 1 16\nt 2 0\n"
    managed.kill()
    assert [managed.log(partition=n).recovery_point for n in range(3)] == [16, 16, 0]


def test_s_fl_1_flusher_goes_by_flush_ms() -> None:
    managed = Managed()
    lazy, eager = managed.log("lazy"), managed.log("eager")
    eager.update_config(TopicConfig(flush_ms=1000))
    managed.fill(lazy, 1)
    managed.fill(eager, 1)
    run_task(managed.manager, log_tasks.FLUSHER)
    assert eager.recovery_point == 0
    managed.clock.advance(1)
    run_task(managed.manager, log_tasks.FLUSHER)
    assert (eager.recovery_point, lazy.recovery_point) == (2, 0)


def test_s_fl_3_checkpoints() -> None:
    managed = Managed("/a")
    moved, other = managed.log("moved"), managed.log("other")
    managed.fill(moved)
    managed.fill(other)
    moved.maybe_increment_log_start_offset(3, StartOffsetReason.CLIENT_RECORD_DELETION)
    at_once(other.flush())
    run_task(managed.manager, log_tasks.RECOVERY_POINT_CHECKPOINT)
    run_task(managed.manager, log_tasks.LOG_START_CHECKPOINT)
    at_once(managed.manager.checkpoint_high_watermarks())
    read = managed.fs.read_bytes
    assert read("/a/recovery-point-offset-checkpoint") == b"0\n2\nmoved 0 0\nother 0 16\n"
    assert read("/a/log-start-offset-checkpoint") == b"0\n1\nmoved 0 3\n"
    assert managed.manager.read_high_watermarks() == {
        TopicPartition("moved", 0): 16,
        TopicPartition("other", 0): 16,
    }
    managed.kill()
    assert managed.log("moved").log_start_offset == 3


def test_s_fl_3_a_garbled_checkpoint_costs_a_longer_recovery_only() -> None:
    managed = Managed("/a")
    managed.fill(managed.log())
    run_task(managed.manager, log_tasks.RECOVERY_POINT_CHECKPOINT)
    managed.fs.write_bytes("/a/recovery-point-offset-checkpoint", b"0\n7\nt 0")
    managed.fs.write_bytes("/a/log-start-offset-checkpoint", b"\xff\xfe")
    managed.kill()
    assert managed.log().log_end_offset == 16


def test_s_cfg_5_a_configuration_that_changes_while_a_log_is_opened_wins() -> None:
    managed = Managed()
    managed.fill(managed.log())
    at_once(managed.manager.shutdown())
    manager, (job,) = managed.loading()
    outcome = job.run()
    changed = TopicConfig(retention_ms=5)
    manager.update_topic_config("t", changed)
    job.complete(outcome)
    manager.finish_loading()
    (log,) = manager.all_logs()
    assert log.config is changed


def test_a_configuration_change_reaches_every_partition() -> None:
    managed = Managed()
    logs = [managed.log(partition=partition) for partition in range(3)]
    changed = TopicConfig(max_message_bytes=70)
    managed.manager.update_topic_config("t", changed)
    assert {log.config.max_message_bytes for log in logs} == {70}
    with pytest.raises(KafkaError) as caught:
        managed.fill(logs[0])
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_s_time_1_tasks_by_name_delay_and_period() -> None:
    tasks = {task.name: task for task in Managed().manager.tasks()}
    first = {name: (task.initial_delay_ms, task.period_ms) for name, task in tasks.items()}
    assert first == {
        "kafka-log-retention": (30_000, 300_000),
        "kafka-log-flusher": (30_000, 2**63 - 1),
        "kafka-recovery-point-checkpoint": (30_000, 60_000),
        "kafka-log-start-offset-checkpoint": (30_000, 60_000),
        "kafka-delete-logs": (30_000, 60_000),
        "PeriodicProducerExpirationCheck": (30_000, 600_000),
        "flush-log": (1000, 1000),
        "repair-indexes": (1000, 1000),
    }
    for task in tasks.values():
        at_once(task.run())


def test_s_idem_2_silent_producers_are_forgotten() -> None:
    managed = Managed(**{"producer.id.expiration.ms": "1000"})
    log = managed.log()
    managed.append(log, producer_id=1, producer_epoch=0, base_sequence=0)
    run_task(managed.manager, log_tasks.PRODUCER_EXPIRATION)
    assert log.producers.entry(1) is not None
    managed.clock.advance(1)
    run_task(managed.manager, log_tasks.PRODUCER_EXPIRATION)
    assert log.producers.entry(1) is None


def test_foreign_directories_are_left_alone_and_those_named_as_partitions_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    managed = Managed("/a")
    at_once(managed.manager.shutdown())
    unique = "0" * 32
    foreign = ["t-2147483648", f"t-99999999999.{unique}-delete", f"t-99999999999.{unique}-future"]
    foreign.append(f"t-1.{unique}-stray")
    others = ["lost+found", "__cluster_metadata-0"]
    for name in (*foreign, *others, "t-0"):
        managed.fs.make_dirs(f"/a/{name}")
    managed.start()
    assert [log.topic_partition for log in managed.manager.all_logs()] == [TopicPartition("t", 0)]
    managed.clock.advance(1000)
    run_task(managed.manager, log_tasks.DELETE_LOGS)
    for name in (*foreign, *others):
        assert managed.fs.exists(f"/a/{name}")
        assert (f"Leaving /a/{name} alone" in caplog.text) is (name in foreign)


def test_statistics() -> None:
    managed = Managed()
    managed.log()
    numbers = managed.manager.statistics()
    assert (numbers.live_dirs, numbers.logs, numbers.logs_to_load) == (("/a", "/b"), 1, 0)


def test_s_rec_8_many_logs_are_closed_in_threads_and_all_are_clean(tmp_path: Path) -> None:
    def started() -> LogManager:
        config = BrokerConfig.parse(
            {"log.dirs": str(tmp_path / "logs"), "num.recovery.threads.per.data.dir": "3"}
        )
        manager = log_manager(config, ManualClock(), OsFileSystem())
        manager.startup(lambda topic: CONFIG)
        return manager

    manager = started()
    for partition in range(80):
        log = manager.get_or_create_log(TopicPartition("t", partition), ID, CONFIG, is_new=True)
        log.append_as_leader(build_batch([(1, b"k", b"v", ())]), leader_epoch=0)
    at_once(manager.shutdown())
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists()
    manager = started()
    ends = [(log.log_end_offset, log.recovery_point) for log in manager.all_logs()]
    assert ends == [(1, 1)] * 80
    at_once(manager.shutdown())


def test_syncs_are_timed() -> None:
    managed = Managed()
    log = managed.log()
    managed.fill(log)
    assert managed.manager.statistics().flushes.count == 0
    at_once(log.flush())
    assert managed.manager.statistics().flushes.count == 1
