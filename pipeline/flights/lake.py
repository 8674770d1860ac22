"""From the result's topic to a lake: Parquet files by Structured Streaming, each record once."""

from pathlib import Path

from pyspark.sql import SparkSession


def write(spark: SparkSession, bootstrap: str, topic: str, lake: Path, checkpoint: Path) -> None:
    """Append what the topic has more than the lake; raises what the query failed with."""
    (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .writeStream.format("parquet")
        .option("path", str(lake))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
