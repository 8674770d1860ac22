"""Flights joined with the weather, by airport and hour: the same function for streams and tables.

The join of streams (`stream.py` runs it) emits a flight without a reading with nulls once the
watermark has passed its hour, and drops a record that arrives after the watermark. The join of
tables (`amend`) uses all records, so a batch run over the same topics finds the rows that the
stream had to leave out, and writes only those.

Rows are keyed by the flight's id, and their values depend only on the records that were read. So a
row that Spark's kafka sink writes twice, because a killed driver repeats its batch, is the same
row, and the latest row of a key is the result.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from examples.flights.table import FLIGHT_COLUMNS, WEATHER_COLUMNS

_TEXT: Final = ("carrier", "tailnum", "origin", "dest", "time_hour")
_MAY_BE_UNKNOWN: Final = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
_TYPES: Final = dict.fromkeys(_TEXT, "STRING") | dict.fromkeys(_MAY_BE_UNKNOWN, "DOUBLE")
FLIGHT_SCHEMA: Final = ", ".join(f"{name} {_TYPES.get(name, 'BIGINT')}" for name in FLIGHT_COLUMNS)
WEATHER_SCHEMA: Final = "origin STRING, " + ", ".join(f"{name} DOUBLE" for name in WEATHER_COLUMNS)

DELAY: Final = "10 days"
"""The watermark's delay. It covers how late records arrive (six hours), and how far the partitions
of a topic are apart in event time while they are read: a batch takes the same share of every
partition, and planes do not fly evenly over the year, which makes up to a week here."""


def flights_of(frame: DataFrame) -> DataFrame:
    """Return the flights in a frame of the kafka source, with event time and watermark."""
    return _events(frame, "flight_hour", FLIGHT_SCHEMA).select(
        "flight_hour", _place("airport"), *(f"row.{name}" for name in FLIGHT_COLUMNS)
    )


def weather_of(frame: DataFrame) -> DataFrame:
    """Return the readings in a frame of the kafka source, with event time and watermark."""
    return _events(frame, "weather_hour", WEATHER_SCHEMA).select(
        "weather_hour", _place("station"), *(f"row.{name}" for name in WEATHER_COLUMNS)
    )


def _events(frame: DataFrame, time: str, schema: str) -> DataFrame:
    row = F.from_json(F.col("value").cast("string"), schema).alias("row")
    return frame.select(F.col("timestamp").alias(time), row).withWatermark(time, DELAY)


def _place(name: str) -> Any:
    # Never null: otherwise the optimizer puts "is not null" below the watermark, and heartbeats,
    # which have no row, are filtered out before they move it.
    return F.coalesce("row.origin", F.lit("")).alias(name)


def with_weather(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Return the sink's rows: each flight once, with the reading of its airport and hour or nulls.

    In a batch run, heartbeats become rows without a carrier. A stream never emits them, as long as
    the heartbeats of the two topics have different hours.
    """
    same = (F.col("airport") == F.col("station")) & (F.col("flight_hour") == F.col("weather_hour"))
    name = F.format_string(
        "%04d-%02d-%02d %s%d %s", "year", "month", "day", "carrier", "flight", "origin"
    )
    row = F.to_json(F.struct(*FLIGHT_COLUMNS, *WEATHER_COLUMNS), {"ignoreNullFields": "false"})
    return flights.join(weather, same, "left_outer").select(
        name.alias("key"), row.alias("value"), "carrier"
    )


def latest_of(frame: DataFrame) -> DataFrame:
    """Return the last row of each key in a frame with the columns of the kafka source.

    Records of a key are in one partition, so their offsets say which is the last.
    """
    return frame.groupBy(F.col("key").cast("string").alias("key")).agg(
        F.max_by(F.col("value").cast("string"), "offset").alias("value")
    )


def amend(
    spark: SparkSession,
    bootstrap: str,
    topics: tuple[str, str, str],
    between: tuple[datetime, datetime],
) -> int:
    """Write the rows that the result lacks or has with another value; return how many.

    It makes the same join as tables, for event times from the first of `between` up to the second,
    exclusive. `topics` are those of flights, weather and result. A second run writes nothing.
    """
    since, until = between
    flights, weather, result = topics

    def topic(name: str) -> DataFrame:
        return (
            spark.read.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", name)
            .load()
        )

    def of_these_hours(name: str) -> DataFrame:
        return topic(name).where((F.col("timestamp") >= since) & (F.col("timestamp") < until))

    # An id begins with the local day, which in the first hours of a UTC day is the day before.
    days = [str(day.date()) for day in (since - timedelta(days=1), until)]
    of_these_days = F.substring(F.col("key").cast("string"), 1, 10).between(*days)
    there = latest_of(topic(result).where(of_these_days))
    missing = (
        with_weather(flights_of(of_these_hours(flights)), weather_of(of_these_hours(weather)))
        .where("carrier IS NOT NULL")
        .select("key", "value")
        .join(there, ["key", "value"], "left_anti")
        .persist()
    )
    try:
        count = int(missing.count())
        (
            missing.write.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", result)
            .save()
        )
    finally:
        missing.unpersist()
    return count
