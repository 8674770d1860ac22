"""`pykafkalog fsck` on directories that this broker's storage wrote and a test damaged."""

import json
from pathlib import Path

import pytest

from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.log_manager import LogManager
from storage.os_filesystem import OsFileSystem
from tests.support.manual_clock import ManualClock
from tools.__main__ import main

TP = TopicPartition("orders", 0)


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A log directory with ten batches in one partition, stopped cleanly."""
    directory = tmp_path / "logs"
    manager = open_manager(directory)
    log = manager.get_or_create_log(TP, bytes(range(16)), TopicConfig(), is_new=True)
    for number in range(10):
        log.append_as_leader(build_batch([(number, b"k", b"v" * 100, ())]), leader_epoch=0)
    manager.shutdown()
    return directory


def open_manager(directory: Path) -> LogManager:
    config = BrokerConfig.parse({"broker.id": "1", "log.dirs": str(directory)})
    manager = LogManager(config, ManualClock(), OsFileSystem(), on_offline=lambda gone: None)
    manager.lock_and_check_dirs()
    manager.load_logs(lambda topic: TopicConfig())
    return manager


def test_a_sound_directory_ends_with_0(log_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fsck", str(log_dir), "--records"]) == 0
    out = capsys.readouterr().out
    assert "sound" in out
    assert "change nothing" in out


def test_a_torn_tail_is_told_repaired_with_a_backup_and_then_gone(
    log_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = log_dir / "orders-0" / f"{0:020}.log"
    good = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(segment.read_bytes()[:100])
    (log_dir / ".kafka_cleanshutdown").unlink()
    assert main(["fsck", "--json", str(log_dir)]) == 1
    verdict = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [finding["problem"] for finding in verdict["findings"]][:1] == ["TORN_TAIL"]
    assert verdict["bytes_lost"] == 100
    assert segment.stat().st_size == good + 100
    assert main(["fsck", "--repair", "--backup", str(tmp_path / "kept"), str(log_dir)]) == 1
    assert segment.stat().st_size == good
    (copy,) = (tmp_path / "kept").rglob("*.log.from-*")
    assert copy.stat().st_size == 100
    capsys.readouterr()
    assert main(["fsck", str(log_dir)]) == 0
    manager = open_manager(log_dir)
    log = manager.get_log(TP)
    assert log is not None
    assert log.log_end_offset == 10
    manager.shutdown()


def test_a_repair_keeps_its_hands_off_a_running_broker(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manager = open_manager(log_dir)
    assert main(["fsck", "--repair", str(log_dir)]) == 1
    assert "Stop the broker" in capsys.readouterr().err
    assert main(["fsck", str(log_dir)]) == 0
    manager.shutdown()


def test_no_directory_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fsck", str(tmp_path / "nowhere")]) == 1
    assert "is no directory" in capsys.readouterr().err
