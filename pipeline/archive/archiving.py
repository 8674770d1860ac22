"""Runs the streaming query: decodes each batch of the kafka source and appends it to the table.

A batch with a timestamp that the source cannot read, or not exactly, is read again without it
(`pipeline.exact_rows`). Then a timestamp that no table holds is an error of the record, like a
value that is not as declared.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from pipeline.archive.batch_ranges import batch_ranges
from pipeline.archive.evolving import Evolving
from pipeline.archive.files import Files
from pipeline.archive.place import Place
from pipeline.archive.tables.table import LakeTable
from pipeline.archive.values import ERROR, TIME_ERROR, refusing
from pipeline.archive.written import News, Written
from pipeline.exact_rows import (
    exact_rows,
    exactly_dated,
    is_held,
    is_refused_time,
    out_of_range,
    whole_topics,
)
from pipeline.java_clients import java_admin

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
FIRST_DAY, LAST_DAY = "0001-01-01", "9999-12-31"
"""`date` of earlier and of later timestamps. It names directories, and of other years they would be
no dates for pandas and DuckDB; nor can pandas read a table with directories for null."""
REASON: Final = "reason"
"""An additional column of dead letters, whose key and value are bytes."""
_QUERY_ID: Final = "sql.streaming.queryId"
_POLL_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Source:
    """The topics to read, and the options to read them with, for Spark's kafka source."""

    bootstrap: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    starting: dict[str, str] = field(default_factory=lambda: {"startingOffsets": "earliest"})
    """The offsets at which to begin in a partition that was never read."""
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

    def settings(self) -> dict[str, str]:
        """Return the settings of a Java client."""
        level = "read_committed" if self.read_committed else "read_uncommitted"
        return {
            "isolation.level": level,
            "auto.offset.reset": "none" if self.fail_on_data_loss else "earliest",
            **self.client,
            "bootstrap.servers": self.bootstrap,
        }

    def names(self, session: Any) -> list[str]:
        """Return the topics, of a pattern those that match it now."""
        if self.pattern is None:
            return list(self.topics)
        pattern = session._jvm.java.util.regex.Pattern.compile(self.pattern)
        with java_admin(session, self.settings()) as admin:
            there = admin.listTopics().names().get()
            return sorted(name for name in there if pattern.matcher(name).matches())

    def stream(self, session: Any) -> Any:
        """Return the source as a streaming frame."""
        reader = session.readStream.format("kafka").options(**self.options())
        return reader.options(maxOffsetsPerTrigger=str(self.max_offsets), **self.starting).load()

    def sample(self, session: Any, most: int) -> list[str]:
        """Return at most `most` values as texts."""
        frame = session.read.format("kafka").options(**self.options()).load()
        try:
            return _texts(frame, most)
        except Exception as error:
            if not is_refused_time(error):
                raise
        texts: list[str] = []
        everything = whole_topics(session, self.settings(), self.names(session))
        for rows in exact_rows(session, self.settings(), everything):
            texts += _texts(rows, most - len(texts))
            if len(texts) >= most:
                break
        return texts


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
        writer = str(frame.sparkSession.sparkContext.getLocalProperty(_QUERY_ID))
        try:
            latest_ms = self._parts.table.latest_ms
            self._write(exactly_dated(frame, latest_ms), writer, number)
        except Exception as error:
            if not is_refused_time(error):
                raise
            aside = f"{self._parts.place.staging}/exact"
            self._write(self._read_exactly(number, aside), writer, number)
            Files(self._session).delete(aside)
        self.written.batches += 1
        self._parts.after_batch(self.written, writer, number)

    def _read_exactly(self, number: int, aside: str) -> Any:
        """Return a batch with every timestamp as it is, or with the reason why it cannot be."""
        parts, session = self._parts, self._session
        files = Files(session)
        files.delete(aside)  # of a start that was killed
        ranges = batch_ranges(files, parts.place.checkpoint, number)
        for rows in exact_rows(session, parts.source.settings(), ranges):
            rows.coalesce(1).write.mode("append").parquet(aside)
        # One task has a partition's records, in order, as the source gives them.
        places = ("topic", "partition")
        rows = session.read.parquet(aside).repartition(max(len(ranges), 1), *places)
        held = is_held(parts.table.latest_ms)
        return rows.sortWithinPartitions(*places, "offset").withColumns(
            {
                "timestamp": F.when(held, F.timestamp_micros(F.col("millis") * 1000)),
                TIME_ERROR: F.when(~held, out_of_range()),
            }
        )

    def _write(self, frame: Any, writer: str, number: int) -> None:
        parts = self._parts
        twice = parts.dead_letters is not None or parts.values.decoding.may_grow
        if twice:
            frame = frame.persist()
        try:
            dated = frame.withColumns(
                {
                    "date": _day(frame),
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


def _day(frame: Any) -> Any:
    first, last = (F.lit(day).cast("date") for day in (FIRST_DAY, LAST_DAY))
    day = F.greatest(first, F.least(last, F.to_date("timestamp")))
    if "millis" in frame.columns:  # of a dead letter, too
        without = F.when(F.col("millis") < 0, first).otherwise(last)
        day = F.when(F.col("timestamp").isNull(), without).otherwise(day)
    return day


def _texts(frame: Any, most: int) -> list[str]:
    values = frame.where("value IS NOT NULL").select(F.col("value").cast("string"))
    return [row[0] for row in values.limit(most).collect()]
