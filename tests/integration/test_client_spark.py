"""Spark 4.0.0 with its kafka connector from Maven Central: source and sink, every codec."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.flights.aggregate import start_spark


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = start_spark()
    yield session
    session.stop()


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

    def run(to: str) -> int:
        stream = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "40")
            .load()
        )
        query = (
            stream.writeStream.format("parquet")
            .option("path", str(tmp_path / to))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return spark.read.parquet(str(tmp_path / to)).count()

    write(0, 100)
    assert run("first") == 100
    write(100, 150)
    assert run("first") == 150
