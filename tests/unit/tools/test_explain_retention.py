"""`pykafkalog explain-retention`: what it says of a segment, and of what it is given."""

import json
from pathlib import Path

import pytest

from broker.world.metadata_medium import NodeRow
from broker.world.sqlite_medium import SqliteMedia
from storage.explain.retention import Kept, RetentionVerdict
from storage.log.results import DeletionReason
from storage.log_dir import LogDir
from storage.os_filesystem import OsFileSystem
from storage.waits import at_once
from tests.support.command_line import Command
from tests.support.log_builder import LogBuilder
from tests.support.readable_directory import write_files, write_log_dir
from tools.explain_retention import sentence
from tools.magnitudes import duration, size_of


def verdict(**fields: object) -> RetentionVerdict:
    base = {"base_offset": 5, "end_offset": 9, "size": 100, "largest_timestamp": 0}
    return RetentionVerdict(**{**base, "is_active": False, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (verdict(taken_by=DeletionReason.RETENTION_SIZE), "goes: retention.bytes"),
        (verdict(kept=Kept.YOUNG, due_ms=61_000), "goes in 1 min (retention.ms)"),
        (
            verdict(kept=Kept.YOUNG, due_ms=3_601_000, bytes_to_come=2_500),
            "goes in 1 h (retention.ms); or goes after 2.5 KB more (retention.bytes)",
        ),
        (verdict(held_back_by=1, due_ms=2_500), "goes in 1 s (segment 1 before it stays so long)"),
        (verdict(held_back_by=1), "stays as long as segment 1 before it"),
        (verdict(kept=Kept.POLICY), "stays: cleanup.policy has no delete"),
    ],
)
def test_a_sentence_for_each_reason(given: RetentionVerdict, said: str) -> None:
    assert sentence(given, 1_000) == said


def test_magnitudes() -> None:
    assert [size_of(n) for n in (0, 999, 1_000, 1_234_567)] == ["0 B", "999 B", "1.0 KB", "1.2 MB"]
    times = (0, 12, 1_500, 61_000, 3_600_000, 93_784_000)
    assert [duration(ms) for ms in times] == ["0 ms", "12 ms", "1 s", "1 min 1 s", "1 h", "1 d 2 h"]


def test_names_that_are_nothing_are_told(tmp_path: Path, command: Command) -> None:
    (tmp_path / "no-1").mkdir()
    assert "No such file" in command("explain-retention", tmp_path / "missing", code=1).err
    assert "holds no partitions" in command("explain-retention", tmp_path, code=1).err


def test_a_directory_with_its_configs(tmp_path: Path, command: Command) -> None:
    write_log_dir(tmp_path)
    medium = SqliteMedia().open(str(tmp_path / SqliteMedia.file_name))
    topic = b'{"version":1,"config":{"retention.ms":"1000"}}'
    medium.write([NodeRow("/config/topics/orders", topic, 0)], [])
    medium.close()
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "orders-0").iterdir()}

    def told(*words: str) -> list[dict[str, object]]:
        printed = command("explain-retention", "--json", *words)
        return [json.loads(line) for line in printed.out.splitlines()]

    (only,) = told(str(tmp_path))
    assert (only["partition"], only["end_offset"]) == ("orders-0", 3)
    assert only["taken_by"] == "retention.ms"
    (only,) = told(str(tmp_path / "orders-0"), "--config", "cleanup.policy=compact")
    assert (only["taken_by"], only["kept"]) == (None, Kept.POLICY.value)
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={tmp_path}\nlog.retention.bytes=0\n")
    (only,) = told(str(tmp_path), "--properties", str(file))
    assert only["taken_by"] == "retention.bytes"
    shown = command("explain-retention", tmp_path).out
    assert "metadata.sqlite" in shown
    assert "The next run takes 1 segment," in shown
    assert before == {
        path.name: path.stat().st_mtime_ns for path in (tmp_path / "orders-0").iterdir()
    }


@pytest.fixture
def two_segments(tmp_path: Path) -> Path:
    """A log directory with the partition `t-0`, whose first segment has ended."""
    built = LogBuilder(index_interval_bytes=100)
    for _ in range(10):
        built.append(2)
        built.clock.advance(1)
    built.log.roll()
    built.append()
    at_once(built.stopped().close())
    write_files(built, tmp_path / "t-0")
    (tmp_path / ".kafka_cleanshutdown").touch()
    return tmp_path


CLEANER = (
    "explain-cleaner",
    *("--config", "cleanup.policy=compact", "--config", "min.compaction.lag.ms=1"),
)


@pytest.mark.parametrize("words", [("explain-retention",), CLEANER])
def test_a_damaged_time_index_is_repaired_in_memory(
    words: tuple[str, ...], two_segments: Path, command: Command
) -> None:
    right = command(*words, "--json", two_segments).out
    index = two_segments / "t-0" / f"{0:020}.timeindex"
    data = bytearray(index.read_bytes())
    data[-5] ^= 0x40  # the offset of the last entry
    index.write_bytes(data)
    said = command(*words, "--json", two_segments)
    assert said.out == right
    assert "A broker would find: Damaged index" in said.err
    assert index.read_bytes() == data


@pytest.mark.parametrize("words", [("explain-retention",), CLEANER])
def test_damaged_records_under_a_damaged_index_are_told(
    words: tuple[str, ...], two_segments: Path, command: Command
) -> None:
    for suffix, at in (("timeindex", -5), ("log", 8)):
        file = two_segments / "t-0" / f"{0:020}.{suffix}"
        data = bytearray(file.read_bytes())
        data[at] ^= 0x40
        file.write_bytes(data)
    said = command(*words, two_segments, code=1)
    assert said.err.count("/t-0/") == 1
    assert "no batch at position" in said.err
    assert "pykafkalog fsck" in said.err


@pytest.mark.parametrize("name", ["explain-retention", "explain-cleaner"])
def test_the_allocated_end_of_a_running_brokers_log_is_named(
    name: str, tmp_path: Path, command: Command
) -> None:
    write_log_dir(tmp_path)
    with (tmp_path / "orders-0" / f"{0:020}.log").open("ab") as file:
        file.truncate(file.tell() + 500_000)
    broker = LogDir(OsFileSystem(), str(tmp_path))
    broker.lock()
    said = command(name, tmp_path / "orders-0")
    assert "offsets 0 to 3" in said.out
    assert "500.0 KB more allocated" in said.out
    assert not said.err
    broker.unlock()
    said = command(name, tmp_path / "orders-0")
    assert "500.0 KB more allocated" in said.out
    assert "A restart would find: " in said.err
    assert "the 500000 bytes behind them are zeros" in said.err
