"""Records whose timestamps Spark's kafka source cannot read, or not exactly.

A timestamp of Kafka is any int64 of milliseconds. The source makes a Spark timestamp of it and

* fails where that does not hold it (Spark 4.0 and 4.1 say "long overflow", and not which record);
* shifts it by days before 1582-10-15, because it goes through Java's calendar of that time.

`exactly_dated` makes the second fail, too, and `is_refused_time` knows both failures. Then
`exact_rows` reads the records again, by the source's own client, but in the driver's JVM alone.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.errors import PipelineError
from pipeline.failures import reasons_of
from pipeline.java_clients import java_consumer
from storage.reader.arrow.schema import LEAST_MS, MOST_MS

PATIENCE_S: Final = 60.0
"""Seconds without a new offset after which a read fails."""
_GREGORIAN: Final = "1582-10-15 00:00:00Z"
_SHIFTED: Final = "a timestamp that the kafka source does not give exactly"
_MARKS: Final = (_SHIFTED, "long overflow", "overflows when converting")
_COLUMNS: Final = (
    "topic STRING, partition INT, offset BIGINT, millis BIGINT, timestampType INT,"
    " key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
_ROWS: Final = """
    java.util.List rows = new java.util.ArrayList();
    for (java.util.Iterator each = records.iterator(); each.hasNext();) {
        ConsumerRecord r = (ConsumerRecord) each.next();
        Header[] headers = r.headers().toArray();
        Object[] pairs = new Object[headers.length];
        for (int n = 0; n < headers.length; n++)
            pairs[n] = RowFactory.create(new Object[] {headers[n].key(), headers[n].value()});
        rows.add(RowFactory.create(new Object[] {
            r.topic(), r.partition(), r.offset(), r.timestamp(), r.timestampType().id,
            r.key(), r.value(), pairs.length == 0 ? null : pairs
        }));
    }
    return rows;
"""
"""Makes rows of a poll's records. Spark compiles the code of its queries with the same compiler."""
_IMPORTED: Final = (
    "org.apache.kafka.clients.consumer.ConsumerRecord",
    "org.apache.kafka.common.header.Header",
    "org.apache.spark.sql.RowFactory",
)


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets of a partition, the end exclusive; start None: from the first there is."""

    topic: str
    partition: int
    start: int | None
    end: int


def exactly_dated(frame: DataFrame, latest_ms: int) -> DataFrame:
    """Return a frame of the kafka source that fails at a timestamp which the source shifts, and at
    one later than `latest_ms`."""
    time = F.col("timestamp")
    is_exact = (time >= F.lit(_GREGORIAN).cast("timestamp")) & (F.unix_millis(time) <= latest_ms)
    return frame.where(F.when(is_exact, True).otherwise(F.raise_error(F.lit(_SHIFTED))))


def is_refused_time(error: BaseException) -> bool:
    """Whether a job failed because of a record's timestamp."""
    return any(mark in reason for reason in reasons_of(error) for mark in _MARKS)


def is_held(latest_ms: int = MOST_MS) -> Any:
    """Return the condition that a timestamp of Spark holds `millis`, not above `latest_ms`."""
    return F.col("millis").between(LEAST_MS, latest_ms)


def out_of_range() -> Any:
    """Return words about `millis` that no timestamp holds."""
    return F.concat(
        F.lit("has the timestamp "),
        F.col("millis"),
        F.lit(" ms, of a year that no table holds (does its producer count other units than ms?)"),
    )


def whole_topics(
    session: Any, settings: Mapping[str, str], topics: Iterable[str]
) -> list[OffsetRange]:
    """Return everything that there is of topics now."""
    with java_consumer(session, settings) as consumer:
        place_of = session._jvm.org.apache.kafka.common.TopicPartition
        places = [
            place_of(topic, info.partition())
            for topic in topics
            for info in consumer.partitionsFor(topic)
        ]
        ends = consumer.endOffsets(places)
        return [
            OffsetRange(place.topic(), place.partition(), None, ends[place]) for place in places
        ]


def first_refused(session: Any, settings: Mapping[str, str], topics: Iterable[str]) -> str | None:
    """Return words about the first record whose timestamp no Spark timestamp holds, if any."""
    for rows in exact_rows(session, settings, whole_topics(session, settings, topics)):
        found = rows.where(~is_held()).withColumn("why", out_of_range()).first()
        if found is not None:
            return f"{found['topic']}-{found['partition']}, offset {found['offset']} {found['why']}"
    return None


def exact_rows(
    session: Any, settings: Mapping[str, str], ranges: Iterable[OffsetRange]
) -> Iterator[DataFrame]:
    """Yield the records of ranges, some megabytes at a time, in the order of offsets.

    The columns are those of the kafka source, but `millis` in place of `timestamp`. Raises
    PipelineError if the broker does not answer, and what the Java client raises.
    """
    jvm = session._jvm
    schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(_COLUMNS)
    rows_of = _compiled(session)
    with java_consumer(session, {**_READING, **settings}) as consumer:
        for each in ranges:
            place = jvm.org.apache.kafka.common.TopicPartition(each.topic, each.partition)
            consumer.assign([place])
            if each.start is None:
                consumer.seekToBeginning([place])
            else:
                consumer.seek(place, each.start)
            for polled in _polled(jvm, consumer, place, each):
                made = session._jsparkSession.createDataFrame(rows_of(polled), schema)
                yield DataFrame(made, session).where(F.col("offset") < each.end)


_READING: Final = {
    "enable.auto.commit": "false",
    "max.poll.records": "50000",
    "max.partition.fetch.bytes": "16000000",
}


def _polled(jvm: Any, consumer: Any, place: Any, wanted: OffsetRange) -> Iterator[Any]:
    second = jvm.java.time.Duration.ofSeconds(1)
    at, since = consumer.position(place), time.monotonic()
    while at < wanted.end:
        polled = consumer.poll(second)
        if polled.count():
            yield polled
        before, at = at, consumer.position(place)
        if at > before:
            since = time.monotonic()
        elif time.monotonic() - since > PATIENCE_S:
            raise PipelineError(
                f"{wanted.topic}-{wanted.partition} cannot be read beyond offset {at}: nothing"
                f" came for {PATIENCE_S:.0f} s"
            )


def _compiled(session: Any) -> Any:
    """Return the function of `_ROWS`, from a poll's records to a list of rows."""
    jvm, gateway = session._jvm, session.sparkContext._gateway
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()

    def array(kind: Any, *values: Any) -> Any:
        made = gateway.new_array(kind, len(values))
        for number, value in enumerate(values):
            made[number] = value
        return made

    script = jvm.org.codehaus.janino.ScriptEvaluator()
    script.setParentClassLoader(loader)
    script.setDefaultImports(array(jvm.java.lang.String, *_IMPORTED))
    script.setReturnType(loader.loadClass("java.util.List"))
    script.setParameters(
        array(jvm.java.lang.String, "records"),
        array(jvm.java.lang.Class, loader.loadClass("java.lang.Iterable")),
    )
    script.cook(_ROWS)
    return lambda records: script.evaluate(array(jvm.java.lang.Object, records))
