"""Runs the streaming query: decodes each batch of the kafka source and appends it to the table."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from pipeline.archive.evolving import Evolving
from pipeline.archive.place import Place
from pipeline.archive.tables.table import LakeTable
from pipeline.archive.values import ERROR, refusing
from pipeline.archive.written import News, Written

COLUMNS: Final = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "key",
    "value",
    "headers",
    "date",
)
"""The columns of a table in the lake, in order; `date` is the timestamp's day in UTC."""
REASON: Final = "reason"
"""An additional column of dead letters, whose key and value are bytes."""
_QUERY_ID: Final = "sql.streaming.queryId"
_POLL_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Source:
    """What to read and how, for Spark's kafka source."""

    bootstrap: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    starting: dict[str, str] = field(default_factory=lambda: {"startingOffsets": "earliest"})
    """Where to begin in a partition that was never read."""
    read_committed: bool = True
    max_offsets: int = 500_000
    """The most offsets of one batch, over all partitions."""
    fail_on_data_loss: bool = True
    client: dict[str, str] = field(default_factory=dict)
    """Settings of the Java client."""

    def options(self) -> dict[str, str]:
        """Return options of `format("kafka")`, for a stream or a batch query."""
        subscription = (
            {"subscribe": ",".join(self.topics)}
            if self.pattern is None
            else {"subscribePattern": self.pattern}
        )
        return {
            **{f"kafka.{key}": value for key, value in self.client.items()},
            "kafka.bootstrap.servers": self.bootstrap,
            "kafka.isolation.level": (
                "read_committed" if self.read_committed else "read_uncommitted"
            ),
            "includeHeaders": "true",
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            "groupIdPrefix": "pykafkalog-archive",
            **subscription,
        }

    def stream(self, session: Any) -> Any:
        """Return the source as a streaming frame."""
        reader = session.readStream.format("kafka").options(**self.options())
        return reader.options(maxOffsetsPerTrigger=str(self.max_offsets), **self.starting).load()

    def sample(self, session: Any, most: int) -> list[str]:
        """Return at most `most` values as texts."""
        frame = session.read.format("kafka").options(**self.options()).load()
        values = frame.where("value IS NOT NULL").select(F.col("value").cast("string"))
        return [row[0] for row in values.limit(most).collect()]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of an archive."""

    source: Source
    place: Place
    table: LakeTable
    values: Evolving
    dead_letters: LakeTable | None = None
    after_batch: Callable[[Written, str, int], None] = lambda _written, _writer, _batch: None
    """Called with (counts so far, writer, batch) when the table has the batch."""
    on_news: Callable[[News, int], None] = lambda _news, _batch: None
    """Called with (news, batch), also when there are none, when the table has the batch."""


class Archiving:
    """One run of an archive; `written` has the counts so far."""

    def __init__(self, session: Any, parts: Parts) -> None:
        self._session = session
        self._parts = parts
        self._failure: BaseException | None = None
        self.written = Written()

    def run(
        self,
        interval_s: float | None,
        on_progress: Callable[[Any], None] = lambda _progress: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """Archive all records that exist now or, with an interval, run on until `stopping()`.

        Raises the error of a failed batch, or Spark's.
        """
        trigger: dict[str, Any] = (
            {"availableNow": True}
            if interval_s is None
            else {"processingTime": f"{int(interval_s * 1000)} milliseconds"}
        )
        query = (
            self._parts.source.stream(self._session)
            .writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", self._parts.place.checkpoint)
            .trigger(**trigger)
            .start()
        )
        try:
            while not query.awaitTermination(_POLL_S):
                on_progress(query.lastProgress)
                if stopping():
                    break
        except PySparkException:
            if self._failure is not None:
                raise self._failure from None
            raise
        finally:
            with contextlib.suppress(PySparkException):
                query.stop()

    def _batch(self, frame: Any, number: int) -> None:
        try:
            self._append(frame, number)
        except BaseException as failure:  # the JVM would return it only as a text
            self._failure = failure
            raise

    def _append(self, frame: Any, number: int) -> None:
        parts = self._parts
        writer = str(frame.sparkSession.sparkContext.getLocalProperty(_QUERY_ID))
        twice = parts.dead_letters is not None or parts.values.decoding.may_grow
        if twice:
            frame = frame.persist()
        try:
            dated = frame.withColumns(
                {
                    "date": F.to_date("timestamp"),
                    "raw_key": F.col("key"),
                    "raw_value": F.col("value"),
                }
            )
            decoded, news = parts.values.decoded(dated)
            if parts.dead_letters is not None:
                dead = decoded.where(F.col(ERROR).isNotNull()).select(
                    *(column for column in COLUMNS if column not in ("key", "value")),
                    F.col("raw_key").alias("key"),
                    F.col("raw_value").alias("value"),
                    F.col(ERROR).alias(REASON),
                )
                files = parts.dead_letters.append(dead, writer, number)
                self.written.dead_letters += sum(file.records for file in files)
                decoded = decoded.where(F.col(ERROR).isNull())
            else:
                decoded = refusing(decoded)
            self.written.add(parts.table.append(decoded.select(*COLUMNS), writer, number))
            self.written.note(news)
            parts.on_news(news, number)
        finally:
            if twice:
                frame.unpersist()
        self.written.batches += 1
        parts.after_batch(self.written, writer, number)
