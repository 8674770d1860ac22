"""Options of `format("pykafkalog")`, read as Spark's kafka source reads them."""

import re
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
    pattern = found.request.pattern
    assert pattern is not None and re.fullmatch(pattern, "ab") and not re.fullmatch(pattern, "b")
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
    for edge in (2**63 - 1, -(2**63)):
        assert parsed(startingTimestamp=str(edge)).start.default == Position.timestamp(edge)
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
        ({"startingOffsets": "latest"}, "is empty"),
        ({"startingOffsets": '{"t":{"0":3,"1":-1}}'}, "is empty"),
        (
            {"startingTimestamp": "5", "endingTimestamp": "4"},
            "start of all partitions, 5, is after",
        ),
        (
            {"startingOffsets": '{"t":{"0":3}}', "endingOffsets": '{"t":{"0":2}}'},
            "start of t-0, 3, is after its end, 2",
        ),
        ({"startingOffsetsByTimestampStrategy": "newest"}, "neither error nor latest"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger: 0 is not positive"),
        ({"minOffsetsPerTrigger": "-1"}, "-1 is not positive"),
        ({"minOffsetsPerTrigger": "3", "maxOffsetsPerTrigger": "2"}, r"\(3\) is above .*\(2\)"),
        ({"maxTriggerDelay": "1 fortnight"}, "no duration"),
        ({"minPartitions": "0"}, "minPartitions: 0 is not positive"),
        ({"maxRecordsPerPartition": "many"}, "no number"),
        ({"groupIdPrefixes": "x"}, "unknown option groupIdPrefixes; is groupIdPrefix meant"),
        ({"maxrecordsperpartitions": "7"}, "is maxRecordsPerPartition meant"),
        ({"whatever": "x"}, r"unknown option whatever; there are log\.dirs, subscribe,"),
        ({"kafka_auto_offset_reset": "earliest"}, "not supported: startingOffsets says"),
        ({"KAFKA_value_deserializer": "x"}, "not supported: values are bytes"),
        ({"kafka_isolation_levle": "read_committed"}, r"is kafka\.isolation\.level meant"),
        ({"startingTimestamp": str(2**63)}, "startingTimestamp: 9223372036854775808 is no"),
        ({"endingTimestamp": str(-(2**63) - 1)}, "endingTimestamp: -9223372036854775809 is no"),
        ({"startingOffsetsByTimestamp": '{"t":{"0":9223372036854775808}}'}, "which has 64 bits"),
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
    assert columns_of(StructType().add("timestampMs", "long")) == ["timestampMs"]
    with pytest.raises(BadOption, match="no column ofset"):
        columns_of(StructType().add("ofset", "long"))
    with pytest.raises(BadOption, match="the column value is binary, not string"):
        columns_of(StructType().add("value", "string"))


def test_what_only_a_client_needs_is_passed_over_and_equal_ends_are_empty_not_wrong() -> None:
    parsed(
        groupIdPrefix="a",
        fetchOffset_numRetries="3",
        fetchOffset_retryIntervalMs="1",
        kafkaConsumer_pollTimeoutMs="1",
        kafka_group_id="a",
        kafka_ssl_truststore_location="/a",
        path="x",
        startingOffsets='{"t":{"0":3}}',
        endingOffsets='{"t":{"0":3}}',
        minOffsetsPerTrigger="2",
        maxOffsetsPerTrigger="2",
    )
    assert parsed(isolation_level="READ_COMMITTED").request.isolation is (
        IsolationLevel.READ_COMMITTED
    )
    assert parsed(minPartitions="1", maxRecordsPerPartition="1").request.split_offsets == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, 900), ("15m", 900), ("90s", 90), ("1500", 1.5), ("2 min", 120), ("1H", 3600), ("0", 0)],
)
def test_a_duration_is_spark_s(text: str | None, seconds: float) -> None:
    options = {} if text is None else {"maxTriggerDelay": text}
    assert parsed(**options).max_trigger_delay_s == seconds


def test_before_a_query_is_known_to_be_a_batch_or_a_stream_either_may_have_its_options() -> None:
    given = {"log.dirs": "/a", "subscribe": "t", "startingOffsets": "latest"}
    for kind in (True, None):
        assert parse_options(given, streaming=kind).start.default == LATEST
    assert parse_options({**given, "endingOffsets": "latest"}, streaming=None).end.default == LATEST


@pytest.mark.parametrize("pattern", [".*", "__.*|a", "(?i)__.*"])
def test_a_pattern_does_not_mean_the_topics_of_coordinators(pattern: str) -> None:
    found = parse_options({"log.dirs": "/a", "subscribePattern": pattern}).request.pattern
    assert found is not None
    for name in ("__consumer_offsets", "__transaction_state", "__share_group_state"):
        assert re.fullmatch(found, name) is None
    assert re.fullmatch(found, "__consumer_offsets2") and re.fullmatch(found, "__mine")
    assert bool(re.fullmatch(found, "__MINE")) and bool(re.fullmatch(found, "a")) == (
        pattern != "(?i)__.*"
    )
