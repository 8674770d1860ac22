"""The driver of the join, a process of its own: it may be killed at any moment and started again.

    python -m examples.flights.stream --bootstrap 127.0.0.1:9092 --checkpoint DIR --progress FILE \\
        --flights flights --weather weather --result flights-weather

Its checkpoint holds all its state: the offsets and the watermark of each batch, and the state of
the join. It runs until SIGTERM and appends one line of JSON per batch to `--progress`.
"""

import argparse
import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from examples.flights.join import flights_of, weather_of, with_weather
from pipeline.session import start_session

SHARE: Final = {"flights": 30_000, "weather": 2_340}
"""Records of each topic in a batch: the same share of both, so that neither gets ahead."""

SETTINGS: Final = {
    # Each partition of the join has four state stores, and writes them in each batch.
    "spark.sql.shuffle.partitions": "2",
    # The job is a minute's work on two cores: the optimizing compiler and a parallel collector
    # would cost more than they save.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def main() -> int:
    """Join until SIGTERM; return the exit code. Raises the query's error."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "flights", "weather", "result"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--progress", type=Path, required=True)
    parser.add_argument("--log", type=Path)
    args = parser.parse_args()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    spark = start_session("flights-join", conf=SETTINGS, log_file=args.log)
    query = start_join(spark, args)
    seen = -1
    while not stopping.is_set() and not query.awaitTermination(0.1):
        seen = report(query, args.progress, seen)
    query.stop()
    report(query, args.progress, seen)
    spark.stop()
    return 0


def start_join(spark: SparkSession, args: argparse.Namespace) -> Any:
    """Start the streaming query from its checkpoint."""

    def topic(name: str, share: int) -> DataFrame:
        return (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", args.bootstrap)
            .option("subscribe", name)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", share)
            .load()
        )

    flights = flights_of(topic(args.flights, SHARE["flights"]))
    weather = weather_of(topic(args.weather, SHARE["weather"]))
    return (
        with_weather(flights, weather)
        .select("key", "value")
        .writeStream.format("kafka")
        .outputMode("append")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("topic", args.result)
        .option("checkpointLocation", str(args.checkpoint))
        .start()
    )


def report(query: Any, to: Path, seen: int) -> int:
    """Append a line for each batch after `seen`; return the number of the last batch."""
    with to.open("a") as file:
        for progress in query.recentProgress:
            if progress["batchId"] > seen and progress["stateOperators"]:
                seen = progress["batchId"]
                file.write(json.dumps(summary(progress)) + "\n")
    return seen


def summary(progress: Any) -> dict[str, Any]:
    """Return what the example reports of a batch."""
    state = progress["stateOperators"]
    flights, weather = progress["sources"]
    return {
        "batch": progress["batchId"],
        "watermark": progress["eventTime"].get("watermark"),
        "flights_read": _read(flights),
        "weather_read": _read(weather),
        "rows": max(progress["sink"]["numOutputRows"], 0),
        "waiting": sum(operator["numRowsTotal"] for operator in state),
        "dropped": sum(operator["numRowsDroppedByWatermark"] for operator in state),
        "ms": progress["batchDuration"],
    }


def _read(source: Any) -> int:
    """Return the sum of the batch's end offsets over the partitions of the topic."""
    end = source["endOffset"]
    offsets = json.loads(end) if isinstance(end, str) else end
    return sum(offset for topic in offsets.values() for offset in topic.values())


if __name__ == "__main__":
    sys.exit(main())
