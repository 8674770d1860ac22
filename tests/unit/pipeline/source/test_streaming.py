"""What a streaming query asks of its source, in the order in which Spark 4.0 asks it."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pipeline.source.options import BadOption, parse_options
from pipeline.source.streaming import LogStreamReader, limited
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.reader.scan import ScanError

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def append(directory: Path, partition: int, first: int, count: int) -> None:
    place = directory / f"t-{partition}"
    place.mkdir(exist_ok=True)
    with (place / f"{0:020}.log").open("ab") as file:
        file.write(build_batch([(1, None, b"v", ())] * count, base_offset=first))


def reader(directory: Path, **options: str) -> LogStreamReader:
    given = {"log.dirs": str(directory), "subscribe": "t", "startingOffsets": "earliest"}
    return LogStreamReader(parse_options({**given, **options}, streaming=True), ["offset"])


def read(source: LogStreamReader, start: Any, end: Any) -> list[int]:
    parts = source.partitions(start, end)
    return [o for part in parts for b in source.read(part) for o in b["offset"].to_pylist()]


def test_batches_follow_each_other_also_over_new_partitions(tmp_path: Path) -> None:
    append(tmp_path, 0, 0, 5)
    source = reader(tmp_path)
    begin, first = source.initialOffset(), source.latestOffset()
    assert (begin, first) == ({"t": {"0": 0}}, {"t": {"0": 5}})
    assert read(source, begin, first) == [0, 1, 2, 3, 4]
    append(tmp_path, 0, 5, 2)
    append(tmp_path, 1, 0, 1)
    second = reader(tmp_path).latestOffset()
    assert second == {"t": {"0": 7, "1": 1}}
    assert read(source, first, second) == [5, 6, 0]
    assert source.partitions(second, second) == []


def test_a_limit_counts_from_where_the_query_stands(tmp_path: Path) -> None:
    append(tmp_path, 0, 0, 10)
    source = reader(tmp_path, maxOffsetsPerTrigger="4")
    ends, at = [], source.initialOffset()
    for _ in range(4):
        end = source.latestOffset()
        read(source, at, end)
        ends.append(end["t"]["0"])
        at = end
    assert ends == [4, 8, 10, 10]
    restarted = reader(tmp_path, maxOffsetsPerTrigger="4")
    restarted.partitions({"t": {"0": 4}}, {"t": {"0": 4}})  # as Spark says what it has seen
    assert restarted.latestOffset() == {"t": {"0": 8}}
    available_now = reader(tmp_path, maxOffsetsPerTrigger="4")
    available_now.latestOffset()  # before it has heard where the query stands
    with pytest.raises(BadOption, match="availableNow"):
        available_now.partitions({"t": {"0": 4}}, {"t": {"0": 4}})


def test_a_limit_is_shared_by_what_is_there() -> None:
    def first(_: TopicPartition) -> int:
        return 7

    assert limited({A: 0}, {A: 100, B: 307}, 40, first) == {A: 10, B: 37}
    assert limited({A: 0, B: 0}, {A: 1, B: 1000}, 10, first) == {A: 1, B: 9}
    assert limited({A: 5, B: 2}, {A: 5, B: 3}, 10, first) == {A: 5, B: 3}


def test_data_that_was_lost_is_an_error_or_passed_over(tmp_path: Path) -> None:
    append(tmp_path, 0, 0, 5)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 3\n")
    strict, lenient = reader(tmp_path), reader(tmp_path, failOnDataLoss="false")
    begin, end = {"t": {"0": 1}}, {"t": {"0": 5}}
    with pytest.raises(ScanError, match="t-0: offset 1 is not in the log, which has 3 to 5"):
        strict.partitions(begin, end)
    assert read(lenient, begin, end) == [3, 4]
    with pytest.raises(ScanError, match="t-0: offset 9 is not in the log"):
        strict.partitions({"t": {"0": 5}}, {"t": {"0": 9}})
    with pytest.raises(ScanError, match="t-1 is not there any more"):
        strict.partitions({"t": {"0": 5, "1": 3}}, end)
    with pytest.raises(ScanError, match="t-0 ends at offset 5, the query has read it up to 8"):
        strict.partitions({"t": {"0": 8}}, end)
    assert read(lenient, {"t": {"0": 8}}, end) == []
