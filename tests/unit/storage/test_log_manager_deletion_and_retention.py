"""Topics that are deleted, and retention by the cleanup policy (S-RET-1 to S-RET-8)."""

import pytest

from config.topic_config import TopicConfig
from protocol.types import TopicPartition
from storage import log_tasks
from storage.log.log import Log
from storage.log.results import StartOffsetReason
from storage.waits import at_once
from tests.support.log_tasks import run_task
from tests.support.managed_logs import Managed


def test_s_ret_8_deleting_a_topic_renames_now_and_removes_later() -> None:
    managed = Managed("/a")
    manager = managed.manager
    managed.fill(managed.log())
    tp = TopicPartition("t", 0)
    manager.async_delete(tp)
    assert manager.get_log(tp) is None
    (renamed,) = [name for name in managed.fs.list_dir("/a") if name.startswith("t-0")]
    assert renamed.endswith("-delete")
    again = managed.log()
    assert again.log_end_offset == 0
    assert run_task(manager, log_tasks.DELETE_LOGS) == 60_000
    managed.clock.advance(ms=59_999)
    assert run_task(manager, log_tasks.DELETE_LOGS) == 1
    assert managed.fs.exists(f"/a/{renamed}"), "file.delete.delay.ms is not over"
    managed.clock.advance(ms=1)
    assert run_task(manager, log_tasks.DELETE_LOGS) > 0
    assert not managed.fs.exists(f"/a/{renamed}")
    assert managed.fs.exists("/a/t-0")


def test_s_ret_8_left_over_directories_go_after_a_restart() -> None:
    managed = Managed("/a")
    managed.fill(managed.log())
    managed.manager.async_delete(TopicPartition("t", 0))
    managed.kill()
    assert managed.manager.all_logs() == []
    run_task(managed.manager, log_tasks.DELETE_LOGS)
    assert [name for name in managed.fs.list_dir("/a") if name.startswith("t-")] == []


@pytest.mark.parametrize("written_by", ["task", "successor"])
def test_s_ret_8_offsets_of_a_deleted_topic_do_not_haunt_its_successor(written_by: str) -> None:
    managed = Managed("/a")
    log = managed.log()
    managed.fill(log)
    at_once(log.flush())
    run_task(managed.manager, log_tasks.RECOVERY_POINT_CHECKPOINT)
    managed.fs.operations.clear()
    managed.manager.async_delete(TopicPartition("t", 0))
    assert not [op for op, _ in managed.fs.operations if op.startswith("fsync")]
    if written_by == "task":
        run_task(managed.manager, log_tasks.FLUSH_ROLLED)
        managed.fs.operations.clear()
    written = {op for op, path in managed.fs.operations if "recovery-point" in path}
    managed.log()
    written = {op for op, path in managed.fs.operations if "recovery-point" in path} - written
    # Before anything is in the log that an old recovery point would be believed of.
    assert ("fsync" in written) == (written_by == "successor")
    managed.fill(managed.log(), 1)
    managed.kill()
    assert managed.log().recovery_point == 0
    assert managed.log().log_end_offset == 2


def test_s_ret_1_retention_follows_the_cleanup_policy() -> None:
    managed = Managed()

    def filled(*policy: str) -> Log:
        config = TopicConfig(cleanup_policy=frozenset(policy), segment_bytes=300)
        log = managed.log("-".join(policy), config=config)
        managed.fill(log)
        return log

    plain, both, compacted = filled("delete"), filled("compact", "delete"), filled("compact")
    kept = len(compacted.segments)
    managed.clock.advance(30 * 86_400)
    run_task(managed.manager, log_tasks.RETENTION)
    assert (len(plain.segments), plain.log_start_offset) == (1, 16)
    assert (len(both.segments), both.log_start_offset) == (kept, 0)
    at_once(managed.manager.apply_retention_to_compacted())
    assert (len(both.segments), both.log_start_offset) == (1, 16)
    assert (len(compacted.segments), compacted.log_start_offset) == (kept, 0)


@pytest.mark.parametrize("policy", [{"compact", "delete"}, {"compact"}])
def test_s_ret_4_what_lies_below_the_log_start_goes_from_compacted_logs_too(
    policy: set[str],
) -> None:
    managed = Managed()
    config = TopicConfig(cleanup_policy=frozenset(policy), segment_bytes=300)
    log = managed.log(config=config)
    managed.fill(log)
    log.maybe_increment_log_start_offset(9, StartOffsetReason.CLIENT_RECORD_DELETION)
    run_task(managed.manager, log_tasks.RETENTION)
    assert log.segments.first.base_offset == 0
    at_once(managed.manager.apply_retention_to_compacted())
    assert 0 < log.segments.first.base_offset <= 9


def test_s_ret_7_segment_files_are_unlinked_when_due() -> None:
    managed = Managed("/a")
    managed.fill(managed.log())
    managed.clock.advance(2 * 3600)
    run_task(managed.manager, log_tasks.RETENTION)
    deleted = [name for name in managed.fs.list_dir("/a/t-0") if name.endswith(".deleted")]
    assert deleted
    managed.clock.advance(59)
    assert run_task(managed.manager, log_tasks.DELETE_LOGS) == 1000
    assert all(managed.fs.exists(f"/a/t-0/{name}") for name in deleted)
    managed.clock.advance(1)
    run_task(managed.manager, log_tasks.DELETE_LOGS)
    assert not [name for name in managed.fs.list_dir("/a/t-0") if name.endswith(".deleted")]
