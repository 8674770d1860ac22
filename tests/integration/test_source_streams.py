"""A stream of `format("pykafkalog")` gives what one of Spark's kafka source gives, row for row.

Each case is a topic, and two queries over it that do the same: one of the kafka source, one of the
files. Both queries see each change of the topic between two runs.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.source.streaming import SupportsTriggerAvailableNow
from protocol.types import TopicPartition
from storage.reader.scan import ScanRequest, plan
from tests.support.broker_process import BrokerProcess
from tests.support.spark_source import SETTINGS, checkpointed
from tests.support.topics import make_topic
from tests.support.waiting import wait_until

TIME = 1_700_000_000_000
KEEPS_LIMITS = SupportsTriggerAvailableNow is not None
NOW, ONCE, ALWAYS = {"availableNow": True}, {"once": True}, {"processingTime": "0 seconds"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("streams"), SETTINGS) as running:
        yield running


@dataclass
class Case:
    """A topic and two queries over it."""

    spark: SparkSession
    broker: BrokerProcess
    directory: Path
    topic: str
    options: dict[str, str]
    ends: dict[int, int] = field(default_factory=dict)

    def produce(self, partition: int, count: int) -> None:
        """Append to a partition; the record at offset n is dated n seconds after TIME."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "linger.ms": 0})
        first = self.ends.get(partition, 0)
        for offset in range(first, first + count):
            producer.produce(
                self.topic, f"{offset}", partition=partition, timestamp=TIME + offset * 1000
            )
            if offset % 10 == 0:
                producer.flush()
        assert producer.flush(30) == 0
        self.ends[partition] = first + count
        ends = {TopicPartition(self.topic, number): end for number, end in self.ends.items()}
        wait_until(lambda: checkpointed(self.broker, ends))

    def grow(self, partitions: int) -> None:
        """Add partitions."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        new = NewPartitions(self.topic, partitions)
        admin.create_partitions([new])[self.topic].result(15)

    def delete(self, partition: int, before: int) -> None:
        """Delete the records below an offset."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        where = ClientPartition(self.topic, partition, before)
        admin.delete_records([where])[where].result(15)
        request = ScanRequest(
            directories=(str(self.broker.log_dir),),
            assign=(TopicPartition(self.topic, partition),),
        )
        wait_until(lambda: plan(request).partitions[0].log_start_offset == before)

    def start(self, source: str, trigger: dict[str, Any], **options: str) -> Any:
        """Start, or start again, one of the two queries."""
        own = {"kafka.bootstrap.servers": self.broker.bootstrap}
        if source == "pykafkalog":
            own = {"log.dirs": str(self.broker.log_dir)}
        frame = (
            self.spark.readStream.format(source)
            .options(**{"subscribe": self.topic, **self.options, **options, **own})
            .load()
        )
        return (
            frame.select("partition", "offset", F.col("value").cast("string").alias("value"))
            .writeStream.format("parquet")
            .option("path", str(self.directory / source / "out"))
            .option("checkpointLocation", str(self.directory / source / "checkpoint"))
            .trigger(**trigger)
            .start()
        )

    def run(self, trigger: dict[str, Any], *, until: int | None = None, **options: str) -> None:
        """Run both queries until they end, or until there are so many rows."""
        queries = [self.start(source, trigger, **options) for source in ("kafka", "pykafkalog")]
        for query, source in zip(queries, ("kafka", "pykafkalog"), strict=True):
            if until is None:
                assert query.awaitTermination(120)
                continue
            try:
                wait_until(
                    lambda query=query, source=source: (
                        query.exception() is not None or len(self.rows(source)) >= until
                    ),
                    30,
                )
            finally:
                query.stop()
            assert query.exception() is None

    def rows(self, source: str) -> list[tuple[int, int, str]]:
        """Return the rows that a query has written."""
        out = self.directory / source / "out"
        if not (out / "_spark_metadata").exists():
            return []
        found = self.spark.read.schema("partition int, offset long, value string").parquet(str(out))
        return sorted((row.partition, row.offset, row.value) for row in found.collect())


@pytest.fixture
def case(spark: SparkSession, broker: BrokerProcess, tmp_path: Path) -> Any:
    def made(partitions: int, counts: Sequence[int], **options: str) -> Case:
        topic = f"t-{time.monotonic_ns()}"
        make_topic(broker.bootstrap, topic, partitions=partitions, retention_ms="-1")
        found = Case(spark, broker, tmp_path, topic, options)
        for partition, count in enumerate(counts):
            if count:
                found.produce(partition, count)
        return found

    return made


START = {"startingOffsets": "earliest"}
CASES = {
    "all": (NOW, START),
    "once": (ONCE, START),
    "most": (NOW, {**START, "maxOffsetsPerTrigger": "16"}),
    "most-once": (ONCE, {**START, "maxOffsetsPerTrigger": "1"}),
    "most-always": (ALWAYS, {**START, "maxOffsetsPerTrigger": "16"}),
    "least": (NOW, {**START, "minOffsetsPerTrigger": "5"}),
    "least-always": (
        ALWAYS,
        {**START, "minOffsetsPerTrigger": "1000", "maxTriggerDelay": "2s", "minPartitions": "5"},
    ),
    "offsets": (
        NOW,
        {"startingOffsets": '{"T":{"0":5,"1":-2,"2":-1}}', "maxOffsetsPerTrigger": "20"},
    ),
    "time": (
        NOW,
        {"startingTimestamp": f"{TIME + 2500}", "startingOffsetsByTimestampStrategy": "latest"},
    ),
    "latest": (NOW, {"maxRecordsPerPartition": "2"}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_stream_that_goes_on_from_its_checkpoint_over_a_topic_that_grows(
    case: Any, name: str
) -> None:
    trigger, options = CASES[name]
    topic = case(3, [20, 3, 0], **options)
    for option, value in topic.options.items():
        topic.options[option] = value.replace('"T"', f'"{topic.topic}"')
    is_limited = {"maxOffsetsPerTrigger", "minOffsetsPerTrigger"} & options.keys()
    if is_limited and not KEEPS_LIMITS:
        with pytest.raises(Exception, match=r"need Spark 4\.2") as failed:
            topic.start("pykafkalog", trigger).awaitTermination()
        assert "Traceback" not in str(failed.value)
        return
    always = trigger == ALWAYS
    topic.run(trigger, until=23 if always else None)
    assert topic.rows("pykafkalog") == topic.rows("kafka")
    topic.produce(0, 5)
    topic.produce(1, 30)
    topic.grow(4)
    topic.produce(3, 6)
    topic.run(trigger, until=64 if always else None)
    rows = topic.rows("pykafkalog")
    assert rows == topic.rows("kafka")
    assert len(rows) == {"offsets": 59, "time": 58, "latest": 41}.get(name, 64)


@pytest.mark.skipif(not KEEPS_LIMITS, reason="Spark 4.2 is the first to tell a source its limit")
def test_records_below_the_least_are_read_when_no_more_come(case: Any) -> None:
    """Spark's kafka source waits for more, and `availableNow` ends: it leaves the rest unread."""
    limits = {"maxOffsetsPerTrigger": "16", "minOffsetsPerTrigger": "10"}
    topic = case(1, [23], **START, **limits)
    topic.run(NOW)
    rows = topic.rows("pykafkalog")
    assert rows == [(0, offset, f"{offset}") for offset in range(23)]
    assert topic.rows("kafka") == rows[:16]


def test_a_query_that_was_killed_in_its_first_batch_begins_where_it_began(case: Any) -> None:
    topic = case(2, [20, 3])
    topic.run(NOW)
    for source in ("kafka", "pykafkalog"):
        commits = topic.directory / source / "checkpoint" / "commits"
        for file in (*commits.glob("0"), *commits.glob(".0.crc")):
            file.unlink()
    topic.produce(0, 4)
    topic.run(NOW)
    rows = topic.rows("pykafkalog")
    assert rows == topic.rows("kafka")
    assert rows == [(0, offset, f"{offset}") for offset in range(20, 24)]


def test_records_that_were_deleted_before_they_were_read(case: Any) -> None:
    topic = case(1, [20], **START)
    topic.run(NOW)
    topic.produce(0, 10)
    topic.delete(0, 25)
    for source in ("kafka", "pykafkalog"):
        with pytest.raises(Exception, match="may have been lost") as failed:
            topic.start(source, NOW).awaitTermination()
        if source == "pykafkalog":
            assert "offset 20 is not in the log, which has 25 to 30" in str(failed.value)
            assert "Traceback" not in str(failed.value)
    topic.run(NOW, failOnDataLoss="false")
    rows = topic.rows("pykafkalog")
    assert rows == topic.rows("kafka")
    assert [offset for _, offset, _ in rows] == [*range(20), *range(25, 30)]
