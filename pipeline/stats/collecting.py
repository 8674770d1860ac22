"""Statistics of the records in a frame that has the columns of Spark's kafka source.

A time is `timestampMs` where the frame has that column, as the direct reader's can.

One pass reads the records and keeps the place, time, key and three lengths of each, in the memory
or on the disks of the executors. Everything else is computed from that. Keys are counted exactly,
by a shuffle of all distinct ones; with `exact_keys=False` they are estimated.
"""

from typing import Any, Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from pipeline.errors import PipelineError
from pipeline.stats.distribution import (
    EXACT_UP_TO,
    STEPS,
    gini,
    interval_ms,
    lorenz,
    sizes_of,
)
from pipeline.stats.values import Compaction, Keys, PartitionStats, Stats, TopicStats

TOP: Final = 10
DEVIATION: Final = 0.02
"""Relative standard deviation of estimated numbers of keys."""


def collect(frame: DataFrame, source: str, *, exact_keys: bool = True) -> Stats:
    """Return statistics of all topics in the frame. Raises PipelineError if it is empty.

    Headers count if the frame has them (`includeHeaders`).
    """
    records = _measured(frame).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        partitions = _partitions(records, exact_keys)
        if not partitions:
            raise PipelineError(f"{source}: no records to look at")
        widths = {
            topic: interval_ms(
                min(row.first_timestamp for row in rows), max(row.last_timestamp for row in rows)
            )
            for topic, rows in _by_topic(partitions).items()
        }
        sizes = _by_topic(_sizes(records).collect())
        throughput = _by_topic(_throughput(records, widths).collect())
        keys = _ExactKeys(records) if exact_keys else None
        try:
            topics = [
                _topic(name, rows, sizes[name], (widths[name], throughput[name]), keys)
                for name, rows in sorted(_by_topic(partitions).items())
            ]
        finally:
            if keys is not None:
                keys.release()
    finally:
        records.unpersist()
    return Stats(source=source, topics=tuple(topics))


def _measured(frame: DataFrame) -> DataFrame:
    def length(name: str) -> Any:
        return F.coalesce(F.octet_length(name), F.lit(0))

    headers = F.lit(0)
    if "headers" in frame.columns:
        headers = F.expr(
            "coalesce(aggregate(headers, 0, (sum, header) -> sum + octet_length(header.key)"
            " + coalesce(octet_length(header.value), 0)), 0)"
        )
    return frame.select(
        "topic",
        "partition",
        "offset",
        (
            F.col("timestampMs") if "timestampMs" in frame.columns else F.unix_millis("timestamp")
        ).alias("at"),
        "key",
        F.col("value").isNull().alias("is_null"),
        (length("key") + length("value") + headers).alias("size"),
    )


def _partitions(records: DataFrame, exact_keys: bool) -> list[Row]:
    estimate = F.lit(0) if exact_keys else F.approx_count_distinct("key", DEVIATION)
    return list(
        records.groupBy("topic", "partition")
        .agg(
            F.count("*").alias("records"),
            F.sum("size").alias("bytes"),
            F.min("offset").alias("first_offset"),
            F.max("offset").alias("last_offset"),
            F.min("at").alias("first_timestamp"),
            F.max("at").alias("last_timestamp"),
            F.count_if(F.col("key").isNull()).alias("without_key"),
            F.count_if(F.col("key").isNotNull() & F.col("is_null")).alias("tombstones"),
            estimate.alias("keys"),
        )
        .orderBy("topic", "partition")
        .collect()
    )


def _sizes(records: DataFrame) -> DataFrame:
    size = F.col("size")
    step = F.pow(F.lit(2), F.floor(F.log2(size)) - 8)  # STEPS of them to a doubling
    assert STEPS == 2**8
    coarse = F.when(size <= EXACT_UP_TO, size).otherwise(F.floor(size / step) * step)
    largest = F.max("size").alias("largest")
    return (
        records.groupBy("topic", coarse.cast("bigint").alias("about"))
        .agg(F.count("*").alias("records"), largest)
        .orderBy("about")
    )


def _throughput(records: DataFrame, widths: dict[str, int]) -> DataFrame:
    pairs = [F.lit(part) for pair in widths.items() for part in pair]
    # In whole numbers, because a double rounds times of 64 bits; `step * width` can overflow.
    step = F.expr("at div width - int(at < 0 AND at % width != 0)")
    return (
        records.withColumn("width", F.create_map(*pairs)[F.col("topic")])
        .groupBy("topic", step.alias("step"))
        .agg(F.count("*").alias("records"), F.sum("size").alias("bytes"))
        .orderBy("step")
    )


def _by_topic(rows: list[Row]) -> dict[str, list[Row]]:
    topics: dict[str, list[Row]] = {}
    for row in rows:
        topics.setdefault(row.topic, []).append(row)
    return topics


def _topic(
    name: str,
    rows: list[Row],
    sizes: list[Row],
    throughput: tuple[int, list[Row]],
    exact: "_ExactKeys | None",
) -> TopicStats:
    counts = [(row.about, row.records) for row in sizes]
    counts[-1] = (sizes[-1].largest, counts[-1][1])
    total = sum(row.bytes for row in rows)
    of_partition = {} if exact is None else exact.of_partitions(name)
    partitions = tuple(
        PartitionStats(
            **{
                field: row[field]
                for field in PartitionStats.__dataclass_fields__
                if field not in ("keys",)
            },
            keys=row["keys"] if exact is None else of_partition.get(row.partition, 0),
        )
        for row in rows
    )
    without_key = sum(row.without_key for row in rows)
    estimated = sum(row["keys"] for row in rows)
    return TopicStats(
        topic=name,
        partitions=partitions,
        sizes=sizes_of(counts, total),
        interval_ms=throughput[0],
        throughput=tuple(
            (row.step * throughput[0], row.records, row.bytes) for row in throughput[1]
        ),
        keys=Keys(exact=False, distinct=estimated) if exact is None else exact.keys(name),
        compaction=None if exact is None else exact.compaction(name, without_key),
    )


class _ExactKeys:
    """A row per topic, partition and key, and the numbers computed from these rows."""

    def __init__(self, records: DataFrame) -> None:
        self._rows = (
            records.where("key IS NOT NULL")
            .groupBy("topic", "partition", "key")
            .agg(
                F.count("*").alias("records"),
                F.sum("size").alias("bytes"),
                F.max_by("size", "offset").alias("last_bytes"),
                F.max_by("is_null", "offset").alias("is_dead"),
            )
            .persist(StorageLevel.MEMORY_AND_DISK)
        )
        dead = F.when(F.col("is_dead"), F.col("last_bytes")).otherwise(0)
        self._partitions = _by_topic(
            self._rows.groupBy("topic", "partition")
            .agg(
                F.count("*").alias("keys"),
                F.sum("records").alias("records"),
                F.sum("bytes").alias("bytes"),
                F.sum("last_bytes").alias("last_bytes"),
                F.count_if("is_dead").alias("dead"),
                F.sum(dead).alias("dead_bytes"),
            )
            .collect()
        )
        per_key = self._rows.groupBy("topic", "key").agg(
            F.sum("records").alias("n"), F.count("*").alias("partitions")
        )
        self._counts = _by_topic(
            per_key.groupBy("topic", "n")
            .agg(
                F.count("*").alias("keys"), F.count_if(F.col("partitions") > 1).alias("in_several")
            )
            .orderBy("n")
            .collect()
        )

    def release(self) -> None:
        """Have Spark drop the rows."""
        self._rows.unpersist()

    def of_partitions(self, topic: str) -> dict[int, int]:
        """Return the number of distinct keys by partition."""
        return {row.partition: row["keys"] for row in self._partitions.get(topic, [])}

    def keys(self, topic: str) -> Keys:
        """Return the number of a topic's keys and the distribution of their records."""
        rows = self._counts.get(topic, [])
        if not rows:
            return Keys(exact=True, distinct=0, in_several_partitions=0)
        counts = [(row.n, row["keys"]) for row in rows]
        return Keys(
            exact=True,
            distinct=sum(row["keys"] for row in rows),
            in_several_partitions=sum(row.in_several for row in rows),
            gini=gini(counts),
            lorenz=lorenz(counts),
            top=tuple((as_text(row.key), row.n, row.bytes) for row in self._top(topic)),
        )

    def _top(self, topic: str) -> list[Row]:
        return list(
            self._rows.where(F.col("topic") == topic)
            .groupBy("key")
            .agg(F.sum("records").alias("n"), F.sum("bytes").alias("bytes"))
            .orderBy(F.desc("n"), "key")
            .limit(TOP)
            .collect()
        )

    def compaction(self, topic: str, without_key: int) -> Compaction:
        """Return what would be left if only the last record of each key and partition stayed."""
        rows = self._partitions.get(topic, [])

        def total(name: str) -> int:
            return sum(row[name] for row in rows)

        return Compaction(
            records=total("records"),
            bytes=total("bytes"),
            latest=total("keys"),
            latest_bytes=total("last_bytes"),
            tombstones=total("dead"),
            tombstone_bytes=total("dead_bytes"),
            without_key=without_key,
        )


def as_text(key: bytes) -> str:
    """Return a key as printable text, or in hex."""
    try:
        text = bytes(key).decode()
    except UnicodeDecodeError:
        text = ""
    return text if text.isprintable() and text else "0x" + bytes(key).hex()
