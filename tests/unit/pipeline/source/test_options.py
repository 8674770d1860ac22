"""Options of `format("pykafkalog")`, read as Spark's kafka source reads them."""

from typing import Any

import pytest

pytest.importorskip("pyspark")

from pipeline.source.columns import TYPES, columns_of, full_schema
from pipeline.source.options import BadOption, parse_options
from protocol.types import TopicPartition
from storage.reader.arrow import SCHEMA
from storage.reader.scan import EARLIEST, LATEST, IsolationLevel, Position

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def parsed(streaming: bool = False, **options: str) -> Any:
    named = {name.replace("_", "."): value for name, value in options.items()}
    return parse_options({"log.dirs": "/a,/b", "subscribe": "t", **named}, streaming=streaming)


def test_what_is_read_by_default() -> None:
    batch, stream = parsed(), parsed(streaming=True)
    assert batch.request.directories == ("/a", "/b")
    assert batch.request.topics == ("t",)
    assert batch.request.isolation is IsolationLevel.READ_UNCOMMITTED
    assert (batch.start.default, batch.end.default) == (EARLIEST, LATEST)
    assert stream.start.default == LATEST
    assert batch.fail_on_data_loss and not batch.include_headers


def test_names_of_options_know_no_case_and_kafka_s_are_passed_over() -> None:
    found = parse_options(
        {
            "LOG.dirs": "/a",
            "subscribepattern": "a.*",
            "kafka.bootstrap.servers": "x",
            "kafka.isolation.level": "read_committed",
            "FAILONDATALOSS": "false",
        }
    )
    assert found.request.pattern == "a.*"
    assert found.request.isolation is IsolationLevel.READ_COMMITTED
    assert not found.fail_on_data_loss


def test_offsets_and_times_of_partitions() -> None:
    start = parsed(startingOffsets='{"t":{"0":23,"1":-2}}').start.positions([T0, T1])
    assert (start.of(T0), start.of(T1)) == (Position.offset(23), EARLIEST)
    end = parsed(endingOffsets='{"t":{"0":-1}}').end.positions([T0])
    assert end.of(T0) == LATEST
    timed = parsed(startingOffsetsByTimestamp='{"t":{"0":5}}', startingOffsets="latest").start
    assert timed.positions([T0]).of(T0) == Position.timestamp(5)
    assert parsed(
        startingTimestamp="7", startingOffsetsByTimestamp='{"t":{"0":5}}'
    ).start.default == (Position.timestamp(7))
    with pytest.raises(BadOption, match=r"lacks t-1; it names u-0"):
        parsed(startingOffsets='{"t":{"0":23},"u":{"0":1}}').start.positions([T0, T1])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"subscribePattern": "x"}, "one of subscribe"),
        ({"startingOffset": "latest"}, "unknown option startingOffset"),
        ({"startingOffsets": "newest"}, "no JSON"),
        ({"startingOffsets": '{"t":[1]}'}, "is not like"),
        ({"startingOffsets": '{"t":{"0":-3}}'}, "no such offset"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "no such offset"),
        ({"endingOffsets": "earliest"}, "no JSON"),
        ({"isolation_level": "x"}, "x is no isolation level"),
        ({"includeHeaders": "yes"}, "neither true nor false"),
        ({"splitBytes": "1k"}, "no number"),
    ],
)
def test_what_makes_no_sense_is_an_error(options: dict[str, str], why: str) -> None:
    with pytest.raises(BadOption, match=why):
        parsed(**options)


def test_log_dirs_are_needed_and_streams_do_not_end() -> None:
    with pytest.raises(BadOption, match=r"log\.dirs is missing"):
        parse_options({"subscribe": "t"})
    with pytest.raises(BadOption, match="endingOffsets has no meaning"):
        parsed(streaming=True, endingOffsets="latest")
    assert parse_options({"log.dirs": "/a", "assign": '{"t":[0,1]}'}).request.assign == (T0, T1)


def test_columns_are_arrow_s_and_a_schema_chooses_among_them() -> None:
    assert list(TYPES) == SCHEMA.names
    assert full_schema(headers=False).fieldNames() == SCHEMA.names[:-1]
    from pyspark.sql.types import StructType

    assert columns_of(StructType().add("offset", "long").add("key", "binary")) == ["offset", "key"]
    with pytest.raises(BadOption, match="no column ofset"):
        columns_of(StructType().add("ofset", "long"))
    with pytest.raises(BadOption, match="the column value is binary, not string"):
        columns_of(StructType().add("value", "string"))
