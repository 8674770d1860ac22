"""A streaming query calls its source in the orders in which versions of Spark call it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pipeline.source.streaming as streaming
from pipeline.source.options import BadOption, parse_options
from pipeline.source.streaming import LogStreamReader, check_limits, limited
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.reader.scan import ScanError

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class AllAvailable:
    """Spark's `ReadAllAvailable`, which Spark 4.2 has."""


class MaxRows:
    """Spark's `ReadMaxRows`."""

    def __init__(self, max_rows: int) -> None:
        self.max_rows = max_rows


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes of Spark 4.2's interface, whichever version there is."""
    monkeypatch.setattr(streaming, "ReadAllAvailable", AllAvailable, raising=False)
    monkeypatch.setattr(streaming, "ReadMaxRows", MaxRows, raising=False)


def append(directory: Path, partition: int, first: int, count: int) -> None:
    place = directory / f"t-{partition}"
    place.mkdir(exist_ok=True)
    with (place / f"{0:020}.log").open("ab") as file:
        file.write(build_batch([(1, None, b"v", ())] * count, base_offset=first))


def reader(
    directory: Path, monotonic: Callable[[], float] = lambda: 0.0, **options: str
) -> LogStreamReader:
    given = {"log.dirs": str(directory), "subscribe": "t", "startingOffsets": "earliest"}
    parsed = parse_options({**given, **options}, streaming=True)
    return LogStreamReader(parsed, ["offset"], monotonic)


def read(source: LogStreamReader, start: Any, end: Any) -> list[int]:
    parts = source.partitions(start, end)
    return [o for part in parts for b in source.read(part) for o in b["offset"].to_pylist()]


def kept(offsets: Any) -> Any:
    """Offsets as a checkpoint gives them back."""
    return json.loads(json.dumps(offsets))


def of_topic(offsets: Any) -> Any:
    return {name: found for name, found in offsets.items() if name == "t"}


def test_batches_follow_each_other_also_over_new_partitions(tmp_path: Path) -> None:
    append(tmp_path, 0, 0, 5)
    source = reader(tmp_path)
    first, begin = source.latestOffset(), source.initialOffset()
    assert (begin, of_topic(first)) == ({"t": {"0": 0}}, {"t": {"0": 5}})
    assert read(source, begin, kept(first)) == [0, 1, 2, 3, 4]
    assert json.dumps(source.latestOffset()) == json.dumps(first)  # Spark compares the text
    append(tmp_path, 0, 5, 2)
    append(tmp_path, 1, 0, 1)
    second = source.latestOffset()
    assert second == {"t": {"0": 7, "1": 1}}
    assert read(source, first, second) == [5, 6, 0]
    assert json.dumps(source.latestOffset()) == json.dumps(second)
    assert source.partitions(second, second) == []


def test_what_a_query_begins_at_does_not_move_while_the_log_grows(tmp_path: Path) -> None:
    """Spark asks for it more than once, and before 4.2 only after it has asked for the latest."""
    append(tmp_path, 0, 0, 5)
    source = reader(tmp_path, startingOffsets="latest")
    first = source.latestOffset()
    append(tmp_path, 0, 5, 4)
    assert read(source, source.initialOffset(), kept(first)) == []
    assert read(source, first, source.latestOffset()) == [5, 6, 7, 8]
    assert source.initialOffset() == {"t": {"0": 5}}


def test_a_query_that_ended_before_its_first_batch_was_done_begins_where_it_began(
    tmp_path: Path, limits: None
) -> None:
    append(tmp_path, 0, 0, 5)
    source = reader(tmp_path, startingOffsets="latest")
    begin = source.initialOffset()
    append(tmp_path, 0, 5, 2)
    planned = kept(source.latestOffset(begin, AllAvailable()))
    assert of_topic(planned) == {"t": {"0": 7}}
    append(tmp_path, 0, 7, 2)
    for seen in (False, True):  # before 4.2 Spark says first what it has seen
        again = reader(tmp_path, startingOffsets="latest")
        if seen:
            again.partitions(planned, planned)
        assert read(again, again.initialOffset(), planned) == [5, 6]
        after = again.latestOffset() if seen else again.latestOffset(planned, AllAvailable())
        assert read(again, planned, after) == [7, 8]
        assert (
            again.latestOffset() if seen else again.latestOffset(after, AllAvailable())
        ) == after


def test_a_query_that_goes_on_need_not_fit_the_options_of_its_start(tmp_path: Path) -> None:
    append(tmp_path, 0, 0, 5)
    append(tmp_path, 1, 0, 5)
    source = reader(tmp_path, startingOffsets='{"t":{"0":2}}')
    assert source.latestOffset() == {"t": {"0": 5, "1": 5}}  # as with availableNow before 4.2
    source.partitions({"t": {"0": 3}}, {"t": {"0": 3}})
    assert read(source, {"t": {"0": 3}}, {"t": {"0": 5, "1": 5}}) == [3, 4, 0, 1, 2, 3, 4]


def test_a_query_that_goes_on_does_not_begin_anew(tmp_path: Path) -> None:
    """Before 4.2 `availableNow` asks for the latest before it says where the query stands."""
    append(tmp_path, 0, 0, 5)
    source = reader(tmp_path, startingOffsets="latest")
    end = kept(source.latestOffset())
    stands = {"t": {"0": 3}}
    source.partitions(stands, stands)
    assert read(source, stands, end) == [3, 4]


@pytest.mark.parametrize("available_now", [False, True])
def test_a_limit_counts_from_where_the_query_stands(
    tmp_path: Path, limits: None, available_now: bool
) -> None:
    append(tmp_path, 0, 0, 10)
    source = reader(tmp_path, maxOffsetsPerTrigger="4")
    if available_now:
        source.prepareForTriggerAvailableNow()
    limit = source.getDefaultReadLimit()
    assert limit.max_rows == 4
    at = source.initialOffset()
    for first, end in ((0, 4), (4, 8), (8, 10)):
        told = kept(source.latestOffset(at, limit))
        assert read(source, at, told) == list(range(first, end))
        if available_now and first == 0:
            append(tmp_path, 0, 10, 3)  # too late for this run
        at = told
    assert source.latestOffset(at, limit) == at
    assert source.reportLatestOffset() == {"t": {"0": 10}}


def test_once_reads_all_whatever_the_limit(tmp_path: Path, limits: None) -> None:
    append(tmp_path, 0, 0, 10)
    source = reader(tmp_path, maxOffsetsPerTrigger="4", minOffsetsPerTrigger="4")
    source.initialOffset()
    assert source.latestOffset({"t": {"0": 1}}, AllAvailable()) == {"t": {"0": 10}}
    assert isinstance(reader(tmp_path).getDefaultReadLimit(), AllAvailable)
    assert reader(tmp_path, minOffsetsPerTrigger="4").getDefaultReadLimit().max_rows > 10


def test_a_batch_waits_for_the_least_but_not_for_ever(tmp_path: Path, limits: None) -> None:
    now = [0.0]
    append(tmp_path, 0, 0, 3)
    options = {"minOffsetsPerTrigger": "4", "maxTriggerDelay": "1m"}
    source = reader(tmp_path, lambda: now[0], **options)
    limit = source.getDefaultReadLimit()
    first = source.latestOffset({"t": {"0": 1}}, limit)
    assert first == {"t": {"0": 3}}  # the first one waits for nothing
    append(tmp_path, 0, 3, 3)
    now[0] = 59.0
    assert source.latestOffset(first, limit) == first
    append(tmp_path, 0, 6, 1)
    assert source.latestOffset(first, limit) == {"t": {"0": 7}}
    now[0] = 118.0
    assert source.latestOffset({"t": {"0": 6}}, limit) == {"t": {"0": 6}}
    now[0] = 119.0
    assert source.latestOffset({"t": {"0": 6}}, limit) == {"t": {"0": 7}}
    source.prepareForTriggerAvailableNow()
    assert source.latestOffset({"t": {"0": 6}}, limit) == {"t": {"0": 7}}


def test_before_spark_4_2_a_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"log.dirs": str(tmp_path), "subscribe": "t"}
    for older in (True, False):
        monkeypatch.setattr(streaming, "SupportsTriggerAvailableNow", None if older else object)
        check_limits(parse_options(given, streaming=True))
        for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger"):
            options = parse_options({**given, name: "4"}, streaming=True)
            if not older:
                check_limits(options)
                continue
            with pytest.raises(BadOption, match=r"need Spark 4\.2: Spark \d.* would be left out"):
                check_limits(options)


def test_a_limit_is_shared_by_what_is_there() -> None:
    assert limited({A: 0, B: 7}, {A: 100, B: 307}, 40) == {A: 10, B: 37}
    assert limited({A: 0, B: 0}, {A: 1, B: 1000}, 10) == {A: 1, B: 9}
    assert limited({A: 5, B: 2}, {A: 5, B: 3}, 10) == {A: 5, B: 3}
    assert limited({A: 0}, {A: 10}, 10) == {A: 10}
    assert limited({A: 0}, {A: 11}, 10) == {A: 10}
    assert limited({A: 8}, {A: 5}, 1) == {A: 5}, "a loss is not hidden"


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
    # A new partition whose start is gone already, and one that a planned batch names in vain.
    with pytest.raises(ScanError, match="t-0: offset 0 is not in the log, which has 3 to 5"):
        strict.partitions({}, end)
    assert read(lenient, {}, end) == [3, 4]
    with pytest.raises(ScanError, match="t-1 is not in"):
        strict.partitions(begin | {"t": {"0": 3}}, {"t": {"0": 5, "1": 3}})
    assert read(lenient, begin, {"t": {"0": 5, "1": 3}}) == [3, 4]


def test_a_start_that_is_not_in_the_log_is_an_error(tmp_path: Path) -> None:
    append(tmp_path, 0, 0, 5)
    for number, is_there in ((5, True), (6, False)):
        source = reader(tmp_path, startingOffsets=f'{{"t":{{"0":{number}}}}}')
        if is_there:
            assert source.initialOffset() == {"t": {"0": 5}}
            continue
        with pytest.raises(ScanError, match="t-0: offset 6 is not in the log, which has 0 to 5"):
            source.initialOffset()
    with pytest.raises(ScanError, match="t-0 has no record dated 2 ms or later"):
        reader(tmp_path, startingTimestamp="2").initialOffset()
    late = reader(
        tmp_path, startingTimestamp="2", startingOffsetsByTimestampStrategy="LATEST"
    ).initialOffset()
    assert late == {"t": {"0": 5}}
