"""The Spark job of a restore: one task passes a target partition's rows, in order, to `sending`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as F

from pipeline.errors import PipelineError
from pipeline.restore.job import SendJob
from pipeline.restore.sending import Item, Sent, send_all

_RESULT = "topic STRING, partition INT, sent BIGINT, skipped BIGINT, next_position BIGINT"


@dataclass(frozen=True, slots=True)
class Extent:
    """The rows that the table has for a target partition."""

    topic: str
    partition: int
    records: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run for one target partition."""

    topic: str
    partition: int
    sent: int
    """Rows that this run has sent."""
    rows: int
    """Rows that the table has."""
    first: int
    last: int
    next_before: int
    next_now: int


def outcomes_of(
    found: Iterable[Extent], before: Mapping[tuple[str, int], int], results: Iterable[Sent]
) -> list[Outcome]:
    """Return the outcome for each partition; those without a result had no rows left."""
    sent = {(one.topic, one.partition): one for one in results}
    outcomes = []
    for extent in found:
        place = (extent.topic, extent.partition)
        result = sent.get(place)
        # Another attempt of this run at the same task had sent the rows that this one skipped.
        rows = 0 if result is None else result.sent + result.skipped
        now = before[place] if result is None else result.next_position
        outcomes.append(
            Outcome(*place, rows, extent.records, extent.first, extent.last, before[place], now)
        )
    return outcomes


def extents(rows: Any) -> list[Extent]:
    """Return each partition that has rows. Raises PipelineError if a row has no place."""
    found = (
        rows.groupBy("topic", "partition")
        .agg(
            F.count("*").alias("records"),
            F.count("position").alias("placed"),
            F.min("position").alias("first"),
            F.max("position").alias("last"),
        )
        .orderBy("topic", "partition")
        .collect()
    )
    for row in found:
        if row["topic"] is None or row["partition"] is None or row["placed"] != row["records"]:
            raise PipelineError("there are rows without topic, partition or offset")
    return [
        Extent(row["topic"], row["partition"], row["records"], row["first"], row["last"])
        for row in found
    ]


def send(
    session: Any, rows: Any, progress: Mapping[tuple[str, int], int], count: int, job: SendJob
) -> list[Sent]:
    """Send the rows from the progress on; return the result of each partition with rows left."""
    known = session.createDataFrame(
        [(topic, number, position) for (topic, number), position in progress.items()],
        "topic STRING, partition INT, next BIGINT",
    )
    left = (
        rows.join(F.broadcast(known), ["topic", "partition"])
        .where(F.col("position") >= F.col("next"))
        .drop("next")
    )
    ordered = left.repartition(count, "topic", "partition").sortWithinPartitions(
        "topic", "partition", "position"
    )

    def send_batches(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for sent in send_all(_items(batches), job):
            yield pyarrow.RecordBatch.from_pylist(
                [
                    {
                        "topic": sent.topic,
                        "partition": sent.partition,
                        "sent": sent.sent,
                        "skipped": sent.skipped,
                        "next_position": sent.next_position,
                    }
                ],
                schema=pyarrow.schema(
                    [
                        ("topic", pyarrow.string()),
                        ("partition", pyarrow.int32()),
                        ("sent", pyarrow.int64()),
                        ("skipped", pyarrow.int64()),
                        ("next_position", pyarrow.int64()),
                    ]
                ),
            )

    result = ordered.mapInArrow(send_batches, _RESULT).collect()
    return [Sent(**row.asDict()) for row in result]


def _items(batches: Iterator[Any]) -> Iterator[Item]:
    """Yield the rows of Arrow batches, in their order."""
    names = ("topic", "partition", "position", "timestamp", "key", "value")
    for batch in batches:
        columns = [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in names]
        headers = batch.column(batch.schema.get_field_index("headers")).to_pylist()
        for row, of_row in zip(zip(*columns, strict=True), headers, strict=True):
            pairs = None if of_row is None else [(one["key"], one["value"]) for one in of_row]
            yield Item._make((*row, pairs))
