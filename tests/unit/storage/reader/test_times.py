"""Timestamps of 64 bits: exact in Arrow where the column holds them, else refused by name."""

import pickle
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from protocol.records.builder import build_batch
from protocol.records.message_set import build_message_set
from protocol.types import TopicPartition
from storage.reader.arrow import read_task, schema_of
from storage.reader.arrow.dataset import LogDataset, _guarantee, _needed
from storage.reader.arrow.schema import LEAST_MS, MOST_MS
from storage.reader.scan import ScanRequest, ScanTask, TimestampOutOfRange, plan

ENDS = (-(2**63), 2**63 - 1)
HELD = (LEAST_MS, LEAST_MS + 1, -1, 0, 1, 253_402_300_800_000, MOST_MS - 1, MOST_MS)
NOT_HELD = (LEAST_MS - 1, MOST_MS + 1, 1_795_803_382_261_000_000, *ENDS)


def written(directory: Path, times: list[int], magic: int = 2) -> ScanRequest:
    """`t-3` with a batch of one record for each time, from offset 5 on."""
    (directory / "t-3").mkdir()
    numbered = list(enumerate(times, 5))
    if magic == 2:
        log = b"".join(build_batch([(at, b"k", b"v", ())], base_offset=n) for n, at in numbered)
    else:
        log = build_message_set([(n, at, b"k", b"v") for n, at in numbered], magic=magic)
    (directory / "t-3" / f"{5:020}.log").write_bytes(log)
    return ScanRequest(directories=(str(directory),))


def read(request: ScanRequest, *columns: str) -> pa.Table:
    batches = [batch for task in plan(request).tasks for batch in read_task(task, columns)]
    return pa.Table.from_batches(batches, schema_of(columns))


def test_the_bounds_are_those_of_int64() -> None:
    assert MOST_MS * 1000 < 2**63 <= (MOST_MS + 1) * 1000
    assert LEAST_MS * 1000 >= -(2**63) > (LEAST_MS - 1) * 1000


@pytest.mark.parametrize("magic", [1, 2])
def test_times_that_the_column_holds_are_exact(tmp_path: Path, magic: int) -> None:
    table = read(written(tmp_path, list(HELD), magic), "timestamp", "timestampMs")
    assert table["timestamp"].cast("int64").to_pylist() == [time * 1000 for time in HELD]
    assert table["timestampMs"].to_pylist() == list(HELD)


@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("time", NOT_HELD)
def test_another_time_names_its_record_and_is_exact_in_milliseconds(
    tmp_path: Path, time: int, magic: int
) -> None:
    request = written(tmp_path, [1, 2, time, time], magic)
    with pytest.raises(TimestampOutOfRange) as caught:
        read(request, "offset", "timestamp")
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.topic_partition, error.offset) == (TopicPartition("t", 3), 7)
    assert error.timestamp_ms == time
    assert str(error).startswith(f"t-3, offset 7: its timestamp, {time} ms, is of a year")
    assert "timestampMs" in str(error)
    assert read(request, "timestampMs")["timestampMs"].to_pylist() == [1, 2, time, time]
    assert read(request, "offset", "timestampType").num_rows == 4


@pytest.mark.parametrize("magic", [1, 2])
def test_a_record_outside_of_the_range_is_not_looked_at(tmp_path: Path, magic: int) -> None:
    (task,) = plan(written(tmp_path, [1, MOST_MS + 1, 3], magic)).tasks
    for some in (replace(task, start_offset=7), replace(task, end_timestamp=MOST_MS + 1)):
        (batch,) = read_task(some, ["timestamp", "offset"])
        assert batch["offset"].to_pylist()[-1] == 7


def test_a_record_within_a_batch_is_named_by_its_own_offset(tmp_path: Path) -> None:
    (tmp_path / "t-3").mkdir()
    batch = build_batch([(at, b"k", b"v", ()) for at in (1, 2, 3, MOST_MS + 1)], base_offset=5)
    (tmp_path / "t-3" / f"{5:020}.log").write_bytes(batch)
    (task,) = plan(ScanRequest(directories=(str(tmp_path),))).tasks
    with pytest.raises(TimestampOutOfRange, match="t-3, offset 8: "):
        list(read_task(replace(task, start_offset=7), ["timestamp"]))


def test_ranges_of_times_are_exact_at_both_ends(tmp_path: Path) -> None:
    least, most = ENDS
    request = written(tmp_path, [least, least + 1, 0, most - 1, most])

    def offsets(start: int | None, end: int | None) -> list[int]:
        return list(read(replace(request, timestamps=(start, end)), "offset")["offset"].to_pylist())

    assert offsets(most, None) == [9]
    assert offsets(None, most) == [5, 6, 7, 8]
    assert offsets(None, least) == []
    assert offsets(least, least + 1) == [5]


def task(newest: int | None, oldest: int | None) -> ScanTask:
    return ScanTask(
        directory="",
        topic="t",
        partition=0,
        base_offset=0,
        start_position=0,
        end_position=0,
        start_offset=0,
        end_offset=1,
        newest=newest,
        oldest=oldest,
    )


@pytest.mark.parametrize(
    ("newest", "oldest", "bounds", "bounds_ms"),
    [
        (None, None, 0, 0),
        (MOST_MS, LEAST_MS, 2, 2),
        (MOST_MS + 1, LEAST_MS - 1, 0, 2),
        (ENDS[1], ENDS[0], 0, 2),
        (0, ENDS[0] - 1, 1, 1),  # a long lateness
    ],
)
def test_what_a_part_of_a_log_guarantees(
    newest: int | None, oldest: int | None, bounds: int, bounds_ms: int
) -> None:
    words = str(_guarantee(task(newest, oldest)))
    assert words.count("(timestamp ") == bounds
    assert words.count("(timestampMs ") == bounds_ms


def test_a_column_is_needed_by_its_whole_name() -> None:
    assert _needed(["offset"], pc.field("timestampMs") > 5) == ["offset", "timestampMs"]
    assert _needed({"x": pc.field("timestampType")}, None) == ["timestampType"]
    assert _needed([], None) == ["offset"]


def test_a_dataset_finds_any_time_by_its_milliseconds(tmp_path: Path) -> None:
    dataset = LogDataset(written(tmp_path, [*ENDS, 1_700_000_000_000]))

    def offsets(condition: Any) -> list[int]:
        return list(dataset.scanner(["offset"], condition).to_table()["offset"].to_pylist())

    assert offsets(pc.field("timestampMs") == ENDS[0]) == [5]
    assert offsets(pc.field("timestampMs") >= ENDS[1]) == [6]
    assert offsets(pc.field("timestampMs") > 1_700_000_000_000) == [6]
    with pytest.raises(TimestampOutOfRange):
        offsets(pc.field("timestamp") > pa.scalar(datetime(2023, 1, 1, tzinfo=UTC)))
