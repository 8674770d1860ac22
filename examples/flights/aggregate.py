"""The Spark job: flights from one topic, totals per carrier into another.

Structured Streaming's kafka source reads all that is there (`availableNow`), the totals are a
streaming aggregate in complete mode, and the kafka sink writes each carrier's row as JSON keyed by
the carrier.
"""

import json
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from examples.flights.table import CarrierTotals, totals

SCHEMA = "carrier STRING, flight BIGINT, tailnum STRING, distance BIGINT, dep_delay DOUBLE"


def flights_of(frame: DataFrame) -> DataFrame:
    """The flights in a frame of the kafka source; heartbeats, which have no value, are left out."""
    row = F.from_json(F.col("value").cast("string"), SCHEMA).alias("row")
    return frame.where("value IS NOT NULL").select(row).select("row.*")


def totals_per_carrier(flights: DataFrame) -> DataFrame:
    """Totals per carrier of a frame with the columns of SCHEMA."""
    return flights.groupBy("carrier").agg(
        F.count("*").alias("flights"),
        F.sum("distance").alias("miles"),
        F.count("dep_delay").alias("delays_known"),
        F.sum("dep_delay").cast("bigint").alias("delay_minutes"),
    )


def run_streaming_job(
    spark: SparkSession, bootstrap: str, source: str, sink: str, checkpoint: Path
) -> None:
    """Aggregate the records that `source` holds now into `sink`. Raises the query's error."""
    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
    )
    rows = totals_per_carrier(flights_of(stream)).select(
        F.col("carrier").alias("key"),
        F.to_json(F.struct("carrier", *CarrierTotals._fields)).alias("value"),
    )
    query = (
        rows.writeStream.format("kafka")
        .outputMode("complete")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", sink)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def read_totals(bootstrap: str, topic: str, timeout_s: float = 30) -> dict[str, CarrierTotals]:
    """The last row of each carrier in the sink's topic, read from its beginning to its end.

    Raises TimeoutError if the end is not reached in time.
    """
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "totals", "enable.auto.commit": False}
    )
    partitions = consumer.list_topics(topic, timeout=timeout_s).topics[topic].partitions
    left: dict[int, int] = {}
    for number in partitions:
        _low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout_s)
        if high:
            left[number] = high
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in left])
    rows: dict[str, Any] = {}
    while left:
        message = consumer.poll(timeout_s)
        if message is None or message.error() is not None:
            raise TimeoutError(f"{topic} was not read to its end: {message and message.error()}")
        row = json.loads(message.value())
        rows[row["carrier"]] = totals(row)
        if message.offset() + 1 >= left[message.partition()]:
            del left[message.partition()]
    consumer.close()
    return rows
