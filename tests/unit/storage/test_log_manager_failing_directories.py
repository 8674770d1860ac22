"""Log directories that cannot be used, or fail: theirs goes offline, others serve (S-REC-7, 11)."""

import errno

import pytest

from config.broker_config import BrokerConfig
from protocol.types import TopicPartition
from storage.errors import DirectoryLocked, OutOfResources, StorageError
from storage.waits import at_once
from tests.support.log_managers import log_manager
from tests.support.managed_logs import CONFIG, ID, Managed


def test_s_rec_7_two_brokers_on_one_directory() -> None:
    managed = Managed()
    first = managed.manager
    with pytest.raises(DirectoryLocked, match=r"Failed to acquire lock on file \.lock in /a"):
        managed.start()
    at_once(first.shutdown())
    managed.start()


def test_s_rec_7_one_partition_in_two_directories() -> None:
    managed = Managed("/a")
    managed.fill(managed.log())
    at_once(managed.manager.shutdown())
    managed.properties["log.dirs"] = "/b"
    managed.start()
    managed.log()
    at_once(managed.manager.shutdown())
    managed.properties["log.dirs"] = "/a,/b"
    with pytest.raises(StorageError, match="Duplicate log directories for t-0"):
        managed.start()


def test_s_rec_7_an_unreadable_directory_is_offline_and_others_go_on() -> None:
    managed = Managed()
    managed.fill(managed.log(partition=0))
    managed.fill(managed.log(partition=1))
    at_once(managed.manager.shutdown())
    managed.fs.fail("list_dir", "/b", times=None)
    managed.start()
    manager = managed.manager
    assert (manager.live_dirs, manager.offline_dirs) == (("/a",), ("/b",))
    assert [str(log.topic_partition) for log in manager.all_logs()] == ["t-0"]
    with pytest.raises(StorageError, match="offline"):
        manager.get_or_create_log(TopicPartition("t", 1), ID, CONFIG)
    assert manager.get_or_create_log(TopicPartition("n", 0), ID, CONFIG, is_new=True)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOMEM])
def test_a_start_without_descriptors_or_memory_calls_no_directory_failed(code: int) -> None:
    managed = Managed()
    managed.fill(managed.log(partition=0))
    at_once(managed.manager.shutdown())
    managed.fs.fail("list_dir", "/b", errno=code)
    with pytest.raises(OutOfResources, match="/b"):
        managed.start()
    managed.start()  # the locks were given back
    assert managed.manager.offline_dirs == ()


def test_s_rec_7_none_left_is_an_error() -> None:
    managed = Managed()
    at_once(managed.manager.shutdown())
    managed.fs.fail("list_dir", "/*", times=None)
    with pytest.raises(StorageError, match="none of the specified log dirs"):
        managed.start()


def test_s_rec_7_a_directory_that_fails_while_loading() -> None:
    managed = Managed()
    for partition in range(4):
        managed.fill(managed.log(partition=partition))
    managed.fs = managed.fs.crash(keep_unsynced=True)
    managed.fs.fail("open", "/b/*.log", times=None)
    managed.start()
    assert managed.offline == ["/b"]
    assert managed.manager.live_dirs == ("/a",)
    assert len(managed.manager.all_logs()) == 2


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_s_rec_11_a_failing_disk_takes_its_directory_only(code: int) -> None:
    managed = Managed()
    bad, good = managed.log(partition=0), managed.log(partition=1)
    managed.fill(bad, 2)
    managed.fs.fail("pwrite", "/a/*.log", errno=code)
    with pytest.raises(StorageError):
        managed.fill(bad)
    assert managed.offline == ["/a"]
    assert managed.manager.all_logs() == [good]
    assert managed.manager.live_dirs == ("/b",)
    managed.fill(good)
    with pytest.raises(StorageError):
        bad.read(0, 100)
    assert managed.manager.get_log(bad.topic_partition) is None
    at_once(managed.manager.shutdown())
    assert managed.fs.exists("/b/.kafka_cleanshutdown")
    assert not managed.fs.exists("/a/.kafka_cleanshutdown")


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_shortage_makes_room_and_takes_no_directory(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    managed = Managed()
    made: list[str] = []
    monkeypatch.setattr(managed.manager.directories, "make_room", lambda: made.append("room"))
    managed.manager.report_failure("/a", OSError(code, "short"))
    assert (made, managed.offline) == (["room"], [])
    managed.manager.report_failure("/a", OSError(errno.EIO, "broken"))
    assert made == ["room"]


def test_s_rec_11_the_last_directory() -> None:
    managed = Managed("/a")
    managed.fs.fail("pwrite", "/a/*.log")
    with pytest.raises(StorageError):
        managed.fill(managed.log())
    assert managed.offline == ["/a"]
    assert managed.manager.live_dirs == ()


def test_s_rec_11_a_partition_that_has_no_place_in_one_directory_goes_to_the_next() -> None:
    managed = Managed()
    managed.fs.fail("make_dirs", "/a/*")
    assert managed.log().dir == "/b/t-0"
    assert managed.offline == ["/a"]
    managed.restart()
    assert managed.manager.dir_of(TopicPartition("t", 0)) == "/b"


@pytest.mark.parametrize("name", ["partition.metadata*", "*.log"])
def test_s_rec_11_a_partition_is_never_in_two_directories(name: str) -> None:
    managed = Managed()
    managed.fs.fail("open", f"/a/t-0/{name}", errno=errno.ENOSPC)
    with pytest.raises(StorageError):
        managed.log()
    assert managed.offline == ["/a"]
    assert managed.fs.list_dir("/b") == [".lock"]
    managed.restart()
    assert managed.manager.dir_of(TopicPartition("t", 0)) == "/a"


def test_failures_reported_from_elsewhere_are_deferred() -> None:
    managed = Managed()
    at_once(managed.manager.shutdown())
    waiting: list[object] = []
    manager = log_manager(
        BrokerConfig.parse(managed.properties),
        managed.clock,
        managed.fs,
        on_offline=managed.offline.append,
        defer=waiting.append,
    )
    manager.startup(lambda topic: CONFIG)
    manager.report_failure("/a", OSError(errno.EIO, "x"))
    manager.report_failure("/a", OSError(errno.EIO, "again"))
    assert manager.live_dirs == ("/a", "/b")
    (action,) = waiting
    action()  # type: ignore[operator]
    assert manager.live_dirs == ("/b",)
