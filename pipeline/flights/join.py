"""Flights joined with the weather, by airport and hour: the same function for streams and tables.

As a stream (`stream.py` runs it) a flight without a reading is given out with nulls once the
watermark has passed its hour; a record that comes after the watermark is dropped. As tables
(`amend`) everything counts, so a batch run over the same topics finds what the stream had to leave
out, and writes just that.

What is written is keyed by the flight's id, and its value depends on nothing but the records that
were read. So a row that Spark's kafka sink writes twice, because a killed driver repeats its batch,
is the same row, and the latest row of a key is the result.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.flights.table import FLIGHT_COLUMNS, WEATHER_COLUMNS

_TEXT: Final = ("carrier", "tailnum", "origin", "dest", "time_hour")
_MAY_BE_UNKNOWN: Final = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
_TYPES: Final = dict.fromkeys(_TEXT, "STRING") | dict.fromkeys(_MAY_BE_UNKNOWN, "DOUBLE")
FLIGHT_SCHEMA: Final = ", ".join(f"{name} {_TYPES.get(name, 'BIGINT')}" for name in FLIGHT_COLUMNS)
WEATHER_SCHEMA: Final = "origin STRING, " + ", ".join(f"{name} DOUBLE" for name in WEATHER_COLUMNS)

DELAY: Final = "10 days"
"""How long the watermark stays behind. It covers two things: how late records come (six hours), and
how far the partitions of a topic are apart in event time while they are read. A batch takes the
same share of every partition, and a plane does not fly evenly over the year: up to a week here."""


def flights_of(frame: DataFrame) -> DataFrame:
    """Flights from a frame of the kafka source, with their event time and a watermark on it."""
    return _events(frame, "flight_hour", FLIGHT_SCHEMA).select(
        "flight_hour", _place("airport"), *(f"row.{name}" for name in FLIGHT_COLUMNS)
    )


def weather_of(frame: DataFrame) -> DataFrame:
    """Readings from a frame of the kafka source, with their event time and a watermark on it."""
    return _events(frame, "weather_hour", WEATHER_SCHEMA).select(
        "weather_hour", _place("station"), *(f"row.{name}" for name in WEATHER_COLUMNS)
    )


def _events(frame: DataFrame, time: str, schema: str) -> DataFrame:
    row = F.from_json(F.col("value").cast("string"), schema).alias("row")
    return frame.select(F.col("timestamp").alias(time), row).withWatermark(time, DELAY)


def _place(name: str) -> Any:
    # Never null, or the optimizer would put "is not null" below the watermark: heartbeats, which
    # have no row, would be gone before they move it.
    return F.coalesce("row.origin", F.lit("")).alias(name)


def with_weather(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Each flight once, with the reading of its airport and hour or nulls: the sink's rows.

    Heartbeats come out of a batch run as rows without a carrier. A stream never gives them out, as
    long as those of the two topics are of different hours.
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
    """The last row of each key, of a frame with the columns of the kafka source.

    Records of a key lie in one partition, so their offsets say which is the last.
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
    """Write the rows that the result lacks, or has otherwise; how many there were.

    `topics`: of flights, weather and result. The same join as tables, of the event times from the
    first of `between` up to the second, which is left out. Run once more, it writes nothing.
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

    # An id begins with the local day, which is the day before in the first hours of a day in UTC.
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
