"""Spark with its kafka connector from Maven Central: source and sink, every codec."""

from pathlib import Path

import confluent_kafka
import pytest
from javaproperties import loads
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.sasl_broker import java_settings, sasl_broker


def written(frame: DataFrame, directory: Path) -> DataFrame:
    """Run a stream from its checkpoint to the end; return all rows that it has written."""
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(directory / "out"))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return frame.sparkSession.read.parquet(str(directory / "out"))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batch_sink_and_source_with_every_codec(
    spark: SparkSession, bootstrap: str, topic: str, codec: str
) -> None:
    numbers = spark.range(500).select(
        F.col("id").cast("string").alias("key"), F.concat(F.lit("v"), "id").alias("value")
    )
    (
        numbers.write.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.compression.type", codec)
        .option("topic", topic)
        .save()
    )
    back = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .load()
    )
    rows = back.select(
        F.col("key").cast("string"), F.col("value").cast("string"), "offset"
    ).collect()
    assert sorted((r.key, r.value) for r in rows) == sorted((str(i), f"v{i}") for i in range(500))
    assert sorted(r.offset for r in rows) == list(range(500))


def test_streaming_goes_on_from_its_checkpoint(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    def write(first: int, last: int) -> None:
        frame = spark.range(first, last).select(F.col("id").cast("string").alias("value"))
        frame.write.format("kafka").option("kafka.bootstrap.servers", bootstrap).option(
            "topic", topic
        ).save()

    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "40")
        .load()
    )
    write(0, 100)
    assert written(stream, tmp_path).count() == 100
    write(100, 150)
    assert written(stream, tmp_path).count() == 150


def test_s_txn_3_a_read_committed_source_sees_nothing_of_aborted_transactions(
    spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """The source plans by offsets, and its ranges have holes: aborted records and markers."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-id", "linger.ms": 0}
    )
    producer.init_transactions(30)
    expected = []
    for number in range(30):
        producer.begin_transaction()
        for part in range(5):
            producer.produce(topic, f"{number}-{part}".encode(), partition=0)
        assert producer.flush(30) == 0
        if number % 3 == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
            expected += [f"{number}-{part}" for part in range(5)]
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(30) == 0

    def options(isolation: str) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "kafka.isolation.level": isolation,
        }

    def batch(isolation: str) -> list[str]:
        frame = spark.read.format("kafka").options(**options(isolation)).load()
        rows = frame.orderBy("offset").select(F.col("value").cast("string")).collect()
        return [row.value for row in rows]

    assert batch("read_committed") == expected
    everything = batch("read_uncommitted")
    assert len(everything) == 151 and set(expected) < set(everything)

    stream = spark.readStream.format("kafka").options(**options("read_committed"))
    frame = stream.option("maxOffsetsPerTrigger", "40").load()
    values = frame.select(F.col("value").cast("string"), "offset")
    rows = written(values, tmp_path).orderBy("offset").collect()
    assert [row.value for row in rows] == expected
    producer.abort_transaction(30)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_over_tls_with_a_password(
    spark: SparkSession, topic: str, tmp_path: Path, mechanism: str
) -> None:
    with sasl_broker(tmp_path / "broker", protocol="SASL_SSL") as broker:
        settings = java_settings(tmp_path, mechanism, authority=broker.authority)
        secured = {f"kafka.{key}": value for key, value in loads(settings.read_text()).items()}
        options = {"kafka.bootstrap.servers": broker.bootstrap, **secured}
        assert options["kafka.security.protocol"] == "SASL_SSL"
        numbers = spark.range(100).select(F.col("id").cast("string").alias("value"))
        numbers.write.format("kafka").options(**options, topic=topic).save()
        stream = spark.readStream.format("kafka").options(
            **options, subscribe=topic, startingOffsets="earliest"
        )
        rows = written(stream.load().select(F.col("value").cast("string")), tmp_path).collect()
        assert sorted(int(row.value) for row in rows) == [*range(100)]
