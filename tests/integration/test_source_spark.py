"""`format("pykafkalog")` gives what Spark's kafka source gives, row for row, from the files."""

import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.source.streaming import SupportsTriggerAvailableNow
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from tests.support.broker_process import BrokerProcess
from tests.support.spark_source import SETTINGS, checkpointed
from tests.support.topics import make_topic
from tests.support.waiting import wait_until

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
PUSHES = find_spec("pyspark.sql.worker.data_source_pushdown_filters") is not None
KEEPS_LIMITS = SupportsTriggerAvailableNow is not None
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SMALL = {"segment_bytes": "50000", "retention_ms": "-1"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with topics of every kind, cleaned and checkpointed."""
    with BrokerProcess(tmp_path_factory.mktemp("source"), SETTINGS) as running:
        ends = fill(running)
        wait_until(lambda: checkpointed(running, ends))
        cleaned = running.log_dir / "cleaner-offset-checkpoint"
        wait_until(lambda: cleaned.exists() and "rows-compacted" in cleaned.read_text())
        wait_until(lambda: not [*(running.log_dir / "rows-compacted-0").glob("*.deleted")])
        yield running


def rows(frame: DataFrame, *, headers: bool = True) -> list[Any]:
    """Comparable rows."""
    columns = ["topic", "partition", "offset", "key", "value", "timestampType"]
    columns += ["headers"] if headers else []
    found = frame.select(*columns, F.unix_micros("timestamp").alias("micros"))
    return sorted(found.collect(), key=lambda row: (row.topic, row.partition, row.offset))


def both(spark: SparkSession, broker: BrokerProcess, **options: str) -> list[list[Any]]:
    """Return the rows of the kafka source and those of the files."""
    options = {"includeHeaders": "true", **options}
    kafka = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    ours = spark.read.format("pykafkalog").option("log.dirs", str(broker.log_dir))
    return [rows(source.options(**options).load()) for source in (kafka, ours)]


def fill(broker: BrokerProcess) -> dict[TopicPartition, int]:
    """Topics of every kind; their ends."""
    ends: dict[TopicPartition, int] = {}
    for codec in CODECS:
        make_topic(broker.bootstrap, f"rows-{codec}", **SMALL)
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "compression.type": codec,
                "linger.ms": 20,
                "enable.idempotence": codec != "none",
            }
        )
        for number in range(400):
            producer.produce(
                f"rows-{codec}",
                key=None if number % 7 == 0 else f"k{number}",
                value=None if number % 11 == 0 else f"{number:04}-ü".encode() * (number % 90),
                headers=[("h", b"1"), ("h", None), ("ü", b"\xff")][: number % 4],
                timestamp=1_700_000_000_000 + number * 60_000 - (number % 5) * 90_000,
            )
            if number % 50 == 0:  # a batch must fit into a segment
                producer.flush()
        assert producer.flush(30) == 0
        ends[TopicPartition(f"rows-{codec}", 0)] = 400
    make_topic(broker.bootstrap, "rows-spread", partitions=4)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(50):
        producer.produce("rows-spread", f"{number}", partition=2)
    assert producer.flush(30) == 0
    ends[TopicPartition("rows-spread", 2)] = 50
    make_topic(broker.bootstrap, "rows-dated", message_timestamp_type="LogAppendTime", **SMALL)
    producer.produce("rows-dated", b"by the log", timestamp=1)
    assert producer.flush(30) == 0
    ends[TopicPartition("rows-dated", 0)] = 1
    make_topic(broker.bootstrap, "rows-txn", **SMALL)
    transactional = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": "rows",
            "linger.ms": 0,
            "transaction.timeout.ms": 600_000,
        }
    )
    transactional.init_transactions(30)
    for number in range(20):
        transactional.begin_transaction()
        for part in range(4):
            transactional.produce("rows-txn", f"{number}-{part}-".encode() * 60)
        assert transactional.flush(30) == 0
        if number % 3 == 1:
            transactional.abort_transaction(30)
        else:
            transactional.commit_transaction(30)
    transactional.begin_transaction()
    transactional.produce("rows-txn", b"open")
    assert transactional.flush(30) == 0
    ends[TopicPartition("rows-txn", 0)] = 20 * 5 + 1
    fill.open_transaction = transactional  # type: ignore[attr-defined]  # it stays open
    make_topic(broker.bootstrap, "rows-compacted", cleanup_policy="compact", **SMALL)
    for number in range(2000):
        producer.produce("rows-compacted", key=f"k{number % 40}", value=f"{number:08}" * 20)
        if number % 100 == 0:
            producer.flush()
    assert producer.flush(30) == 0
    ends[TopicPartition("rows-compacted", 0)] = 2000
    return ends


def test_rows_are_those_of_the_kafka_source(spark: SparkSession, broker: BrokerProcess) -> None:
    for isolation in ("read_uncommitted", "read_committed"):
        options = {"kafka.isolation.level": isolation, "subscribePattern": "rows-.*"}
        kafka, ours = both(spark, broker, **options)
        assert len(kafka) > 2000
        assert ours == kafka
    begin = 1_700_000_000_000
    kafka, ours = both(
        spark,
        broker,
        subscribe="rows-lz4,rows-none",
        startingTimestamp=str(begin + 60 * 60_000),
        endingTimestamp=str(begin + 120 * 60_000),
    )
    assert kafka and ours == kafka
    kafka, ours = both(
        spark,
        broker,
        assign='{"rows-zstd":[0],"rows-spread":[1,2]}',
        startingOffsets='{"rows-zstd":{"0":17},"rows-spread":{"1":-2,"2":-2}}',
        endingOffsets='{"rows-zstd":{"0":333},"rows-spread":{"1":-1,"2":49}}',
    )
    assert kafka and ours == kafka
    # The given schema chooses the columns.
    source = spark.read.format("pykafkalog").option("log.dirs", str(broker.log_dir))
    few = source.option("subscribe", "rows-none").schema("offset long, topic string").load()
    assert few.agg(F.sum("offset"), F.min("topic")).first() == (399 * 200, "rows-none")


CONDITIONS = [
    "partition = 2",
    "partition > 0 and partition <= 2 and offset in (0, 49, 50)",
    "offset >= 399",
    "offset > 99 and offset < 101",
    "topic = 'rows-lz4' and offset between 120 and 121",
    "topic in ('rows-dated', 'nope')",
    "timestamp = timestamp_millis(1700000600000)",
    "timestamp > timestamp_millis(1700000600000) and topic = 'rows-none'",
    "timestamp >= timestamp_micros(1700000600000001) and topic = 'rows-none'",
    "timestamp < timestamp_millis(1700000600000)",
    "timestamp <= timestamp_millis(1700000600000) and offset < 20",
    "offset = 7 or partition = 2",
    "partition = 9",
    "offset > 390 and value is null",
]


def test_conditions_decide_what_is_read_and_not_which_rows_there_are(
    spark: SparkSession, broker: BrokerProcess
) -> None:
    """`everything` serves all queries, because a condition of one must not narrow the next."""
    options = {"subscribePattern": "rows-.*", "includeHeaders": "true"}

    def load(**more: str) -> DataFrame:
        source = spark.read.format("pykafkalog").option("log.dirs", str(broker.log_dir))
        return source.options(**{**options, **more}).load()

    kafka = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    everything, expected = load(), kafka.options(**options).load().cache()
    tasks = everything.rdd.getNumPartitions()
    spark.conf.set(PUSHDOWN, "true")
    for condition in CONDITIONS:
        wanted = rows(expected.where(condition))
        assert rows(everything.where(condition)) == wanted, condition
        if PUSHES:
            assert rows(load(pushDownPredicate="true").where(condition)) == wanted, condition
    pair = everything.where("partition = 2").union(everything.where("offset = 0"))
    assert pair.count() == len(rows(expected.where("partition = 2 or offset = 0"))) + 1
    if PUSHES:
        few = load(pushDownPredicate="true").where("topic = 'rows-spread'")
        assert few.rdd.getNumPartitions() == 1 < tasks
        # The options hold beside a condition, and a wrong one is refused.
        hundred = {"subscribe": "rows-none", "pushDownPredicate": "true"}
        del options["subscribePattern"]
        ranged = load(**hundred, endingOffsets='{"rows-none":{"0":100}}')
        assert ranged.where("offset > 97").count() == 2
        with pytest.raises(Exception, match="offset 4711 is not in the log"):
            load(**hundred, endingOffsets='{"rows-none":{"0":4711}}').where("offset < 5").count()
    spark.conf.set(PUSHDOWN, "false")
    options["subscribePattern"] = "rows-.*"
    why = "Set it to true" if PUSHES else r"needs Spark 4\.1"
    with pytest.raises(Exception, match=why):
        load(pushDownPredicate="true").where("offset < 5").count()


@pytest.mark.parametrize(
    ("options", "tasks"),
    [({"minPartitions": "30"}, 30), ({"maxRecordsPerPartition": "7"}, 58), ({}, 1)],
)
def test_as_many_tasks_as_are_asked_for(
    spark: SparkSession, broker: BrokerProcess, options: dict[str, str], tasks: int
) -> None:
    options = {"subscribe": "rows-none", **options}
    kafka, ours = both(spark, broker, **options)
    assert ours == kafka
    source = spark.read.format("pykafkalog").option("log.dirs", str(broker.log_dir))
    assert source.options(**options).load().rdd.getNumPartitions() >= tasks


def test_a_stream_over_a_log_that_is_written_and_cleaned_meanwhile(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    """Each committed offset once, over a restart from the checkpoint."""
    make_topic(broker.bootstrap, "live", partitions=2, cleanup_policy="compact", **SMALL)
    produced: list[int] = []
    ended = threading.Event()

    def produce() -> None:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "lz4"})
        number = 0
        while not ended.is_set():
            for _ in range(40):
                producer.produce("live", f"{number:06}" * 30, key=f"{number}", partition=number % 2)
                produced.append(number)
                number += 1
            producer.flush()
            time.sleep(0.05)

    def query(limit: str | None = None, **trigger: Any) -> Any:
        source = spark.readStream.format("pykafkalog").option("log.dirs", str(broker.log_dir))
        source = source.option("subscribe", "live").option("startingOffsets", "earliest")
        if limit is not None:
            source = source.option("maxOffsetsPerTrigger", limit)
        return (
            source.load()
            .select("partition", "offset", F.col("key").cast("string").alias("key"))
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(**trigger)
            .start()
        )

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        first = query(limit="500" if KEEPS_LIMITS else None, processingTime="1 second")
        wait_until(lambda: len([p for p in first.recentProgress if p["numInputRows"]]) >= 3, 120)
        sizes = [p["numInputRows"] for p in first.recentProgress]
        first.stop()
        assert max(sizes) <= 500 or not KEEPS_LIMITS
    finally:
        ended.set()
        thread.join()
    end = len(produced) // 2
    wait_until(lambda: checkpointed(broker, {TopicPartition("live", 0): end}))
    wait_until(lambda: checkpointed(broker, {TopicPartition("live", 1): end}))
    for _ in range(2):  # the first may end with the batch that the stop has interrupted
        query(availableNow=True).awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(int(row.key) for row in found) == produced
    assert all(int(row.key) == 2 * row.offset + row.partition for row in found)


REFUSED = {"kafka.auto.offset.reset": "latest", "kafka.enable.auto.commit": "true"}


def test_what_is_wrong_is_said(spark: SparkSession, broker: BrokerProcess, tmp_path: Path) -> None:
    def fails(match: str, directory: Path = broker.log_dir, **options: str) -> None:
        source = spark.read.format("pykafkalog").option("log.dirs", str(directory))
        with pytest.raises(Exception, match=match) as failed:
            source.options(**options).load().count()
        assert "Traceback" not in str(failed.value)

    fails("nope is not in .*; there are ", subscribe="nope")
    misspelt = "unknown option startingoffset; is startingOffsets meant"
    fails(misspelt, subscribe="rows-none", startingOffset="earliest")
    for name, value in REFUSED.items():
        fails(f"{name.lower()}.* is not supported", subscribe="rows-none", **{name: value})
    with pytest.raises(Exception, match="no number") as failed:  # before a stream begins
        source = spark.readStream.format("pykafkalog").option("log.dirs", str(broker.log_dir))
        source.option("subscribe", "rows-none").option("minPartitions", "few").load()
    assert "Traceback" not in str(failed.value)
    fails(
        "offset 4711 is not in the log",
        subscribe="rows-none",
        endingOffsets='{"rows-none":{"0":4711}}',
    )
    damaged = tmp_path / "copy" / "rows-none-0"
    damaged.mkdir(parents=True)
    for file in (broker.log_dir / "rows-none-0").iterdir():
        content = bytearray(file.read_bytes())
        if file.name == f"{0:020}.log":
            content[-5] ^= 1
        (damaged / file.name).write_bytes(content)
    fails(
        r"rows-none-0, offset \d+: the checksum .*00000\.log, byte \d+",
        tmp_path / "copy",
        subscribe="rows-none",
    )


def test_any_timestamp_is_exact_or_names_its_record(spark: SparkSession, tmp_path: Path) -> None:
    far = 1_795_803_382_261_000
    times = (far, 2**63 - 1, -(2**63), -13_000_000_000_000)
    (tmp_path / "odd-0").mkdir()
    batches = [build_batch([(at, None, b"v", ())], base_offset=n) for n, at in enumerate(times)]
    (tmp_path / "odd-0" / f"{0:020}.log").write_bytes(b"".join(batches))
    source = spark.read.format("pykafkalog").option("log.dirs", str(tmp_path))
    source = source.option("subscribe", "odd")
    exact = source.schema("offset long, timestampMs long").load()
    assert [row.timestampMs for row in exact.orderBy("offset").collect()] == list(times)
    for offset, at in ((0, far), (3, -13_000_000_000_000)):
        one = spark.read.format("pykafkalog").option("log.dirs", str(tmp_path))
        one = one.option("assign", '{"odd":[0]}').schema("timestamp timestamp")
        one = one.option("startingOffsets", f'{{"odd":{{"0":{offset}}}}}')
        one = one.option("endingOffsets", f'{{"odd":{{"0":{offset + 1}}}}}')
        assert one.load().select(F.unix_millis("timestamp")).first() == (at,)
    named = r"odd-0, offset 1: its timestamp, 92.*timestampMs"
    with pytest.raises(Exception, match=named) as failed:
        source.schema("offset long, timestamp timestamp").load().collect()
    assert "Traceback" not in str(failed.value)
    if PUSHES:
        spark.conf.set(PUSHDOWN, "true")
        pushing = source.option("pushDownPredicate", "true").schema("offset long, timestampMs long")
        for condition, offsets in (
            ("timestampMs = 9223372036854775807", [1]),
            ("timestampMs > 9223372036854775807", []),
            ("timestampMs <= -13000000000000", [2, 3]),
        ):
            assert [row.offset for row in pushing.load().where(condition).collect()] == offsets
        spark.conf.set(PUSHDOWN, "false")
