"""`pykafkalog fsck` on directories that this broker's storage wrote and a test damaged."""

import errno
import json
import shutil
from pathlib import Path

import pytest

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.log_manager import LogManager
from storage.os_filesystem import OsFileSystem
from storage.waits import at_once
from tests.support.command_line import Command
from tests.support.log_managers import log_manager
from tests.support.manual_clock import ManualClock

TP = TopicPartition("orders", 0)


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A log directory with ten batches in one partition, stopped cleanly."""
    directory = tmp_path / "logs"
    manager = open_manager(directory)
    log = manager.get_or_create_log(TP, bytes(range(16)), TopicConfig(), is_new=True)
    for number in range(10):
        log.append_as_leader(build_batch([(number, b"k", b"v" * 100, ())]), leader_epoch=0)
    at_once(manager.shutdown())
    return directory


def open_manager(directory: Path) -> LogManager:
    config = BrokerConfig.parse({"broker.id": "1", "log.dirs": str(directory)})
    manager = log_manager(config, ManualClock(), OsFileSystem())
    manager.directories.lock_and_check()
    manager.load_logs(lambda topic: TopicConfig())
    return manager


def test_a_sound_directory_ends_with_0(log_dir: Path, command: Command) -> None:
    out = command("fsck", log_dir, "--records").out
    assert "sound" in out
    assert "change nothing" in out


def test_a_torn_tail_is_told_repaired_with_a_backup_and_then_gone(
    log_dir: Path, tmp_path: Path, command: Command
) -> None:
    segment = log_dir / "orders-0" / f"{0:020}.log"
    good = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(segment.read_bytes()[:100])
    (log_dir / ".kafka_cleanshutdown").unlink()
    said = command("fsck", "--json", log_dir, code=1)
    verdict = json.loads(said.out.splitlines()[-1])
    assert [finding["problem"] for finding in verdict["findings"]][:1] == ["TORN_TAIL"]
    assert verdict["bytes_lost"] == 100
    assert segment.stat().st_size == good + 100
    command("fsck", "--repair", "--backup", tmp_path / "kept", log_dir, code=1)
    assert segment.stat().st_size == good
    (copy,) = (tmp_path / "kept").rglob("*.log.from-*")
    assert copy.stat().st_size == 100
    command("fsck", log_dir)
    manager = open_manager(log_dir)
    log = manager.get_log(TP)
    assert log is not None
    assert log.log_end_offset == 10
    at_once(manager.shutdown())


def test_a_repair_keeps_its_hands_off_a_running_broker(log_dir: Path, command: Command) -> None:
    manager = open_manager(log_dir)
    assert "Stop the broker" in command("fsck", "--repair", log_dir, code=2).err
    command("fsck", log_dir)
    at_once(manager.shutdown())


def test_no_directory_is_one_clear_line(tmp_path: Path, command: Command) -> None:
    assert "does not exist" in command("fsck", tmp_path / "nowhere", code=2).err


def verdicts(command: Command, *args: object, code: int = 1) -> dict[str, str]:
    """Partition to verdict; findings of directories under their problem's name."""
    said = command("fsck", "--json", *args, code=code)
    rows = [json.loads(line) for line in said.out.splitlines()]
    return {row.get("partition", row.get("problem")): row.get("verdict", "") for row in rows}


def test_a_verdict_for_each_kind_of_damage(log_dir: Path, command: Command) -> None:
    assert verdicts(command, log_dir, code=0) == {"orders-0": "sound"}
    segment = log_dir / "orders-0" / f"{0:020}.log"
    segment.with_suffix(".index").unlink()
    assert verdicts(command, log_dir) == {"orders-0": "heals"}
    command("fsck", "--repair", log_dir, code=1)
    data = bytearray(segment.read_bytes())
    data[400] ^= 0xFF
    segment.write_bytes(data)
    # The clean-shutdown marker says that nobody has to look there.
    assert verdicts(command, log_dir)["orders-0"] == "stays damaged"
    assert verdicts(command, log_dir, "--from-start")["orders-0"] == "loses records"
    command("fsck", "--repair", "--from-start", log_dir, code=1)
    assert verdicts(command, log_dir, code=0) == {"orders-0": "sound"}


def test_directories_that_do_not_belong_together(
    log_dir: Path, tmp_path: Path, command: Command
) -> None:
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=ours\n")
    other = tmp_path / "other"
    shutil.copytree(log_dir, other)
    (other / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=theirs\n")
    found = verdicts(command, log_dir, other)
    assert found == {"META_FOREIGN": "", "orders-0": "blocks the start"}
    out = command("fsck", log_dir, other, code=1).out
    assert "keep the one with the larger end offset" in out
    assert "cluster.id theirs" in out


def test_what_is_no_log_directory_is_said(tmp_path: Path, command: Command) -> None:
    assert verdicts(command, tmp_path, code=0) == {"EMPTY_DIR": ""}
    (tmp_path / "letter.txt").write_text("hello")
    assert verdicts(command, tmp_path) == {"NOT_A_LOG_DIR": ""}
    command("fsck", tmp_path / "letter.txt", code=2)


def test_a_file_without_rights_does_not_hide_the_other_partitions(
    log_dir: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(log_dir / "orders-0", log_dir / "secret-0")
    real = OsFileSystem.list_dir

    def list_dir(self: OsFileSystem, path: str) -> list[str]:
        if path.endswith("secret-0"):  # as the system says it to anyone but root
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(self, path)

    monkeypatch.setattr(OsFileSystem, "list_dir", list_dir)
    assert verdicts(command, log_dir) == {"orders-0": "sound", "secret-0": "blocks the start"}


def test_many_sound_partitions_are_counted_not_listed_on_a_terminal(
    log_dir: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 60):
        shutil.copytree(log_dir / "orders-0", log_dir / f"orders-{number}")
    assert "orders-7" in command("fsck", log_dir).out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    out = command("fsck", log_dir).out
    assert "60 partitions: 60 sound." in out
    assert "orders-7" not in out
    assert "orders-7" in command("fsck", "--all", log_dir).out


@pytest.mark.parametrize("names", [(), ("notes.txt",), ("node-20/package.json",)])
def test_a_repair_leaves_a_directory_that_is_not_kafkas_alone(
    tmp_path: Path, names: tuple[str, ...], command: Command
) -> None:
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    for name in names:
        (wrong / name).parent.mkdir(exist_ok=True)
        (wrong / name).write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    told = command("fsck", "--repair", wrong, code=2).err
    assert sorted(tmp_path.rglob("*")) == before
    assert f"{wrong} is " in told
    assert "nothing was repaired" in told


def test_one_wrong_directory_keeps_the_others_from_being_repaired(
    log_dir: Path, tmp_path: Path, command: Command
) -> None:
    (tmp_path / "wrong-0").mkdir()
    (log_dir / ".kafka_cleanshutdown").unlink()
    before = sorted(tmp_path.rglob("*"))
    command("fsck", "--repair", log_dir, tmp_path / "wrong-0", code=2)
    assert sorted(tmp_path.rglob("*")) == before
