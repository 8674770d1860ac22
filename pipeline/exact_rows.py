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
from pipeline.java_clients import compiled, java_consumer
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
_TAKE: Final = """
    java.util.List rows = new java.util.ArrayList();
    for (java.util.Iterator each = consumer.poll(java.time.Duration.ofSeconds(1)).iterator();
            each.hasNext();) {
        ConsumerRecord r = (ConsumerRecord) each.next();
        Number end = (Number) ends.get(new TopicPartition(r.topic(), r.partition()));
        if (end == null || r.offset() >= end.longValue())
            continue;
        Header[] headers = r.headers().toArray();
        Object[] pairs = new Object[headers.length];
        for (int n = 0; n < headers.length; n++)
            pairs[n] = RowFactory.create(new Object[] {headers[n].key(), headers[n].value()});
        rows.add(RowFactory.create(new Object[] {
            r.topic(), r.partition(), r.offset(), r.timestamp(), r.timestampType().id,
            r.key(), r.value(), pairs.length == 0 ? null : pairs
        }));
    }
    long sum = 0;
    for (java.util.Iterator each = ends.entrySet().iterator(); each.hasNext();) {
        java.util.Map.Entry entry = (java.util.Map.Entry) each.next();
        TopicPartition place = (TopicPartition) entry.getKey();
        long position = consumer.position(place);
        sum += position;
        if (position >= ((Number) entry.getValue()).longValue()) {
            consumer.pause(java.util.Collections.singleton(place));
            each.remove();
        }
    }
    return new Object[] {rows, sum};
"""
"""Polls; returns rows of the records before `ends` (by partition), and the sum of the positions.
Partitions that are read to their ends are taken out of `ends`."""
_PARAMETERS: Final = {
    "consumer": "org.apache.kafka.clients.consumer.Consumer",
    "ends": "java.util.Map",
}
_IMPORTED: Final = (
    "org.apache.kafka.clients.consumer.ConsumerRecord",
    "org.apache.kafka.common.TopicPartition",
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
    """Yield the records of ranges, some megabytes at a time, each partition's in order.

    The columns are those of the kafka source, but `millis` in place of `timestamp`. Raises
    PipelineError if the broker does not answer, and what the Java client raises.
    """
    jvm = session._jvm
    schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(_COLUMNS)
    take = compiled(session, _TAKE, "java.lang.Object", _PARAMETERS, _IMPORTED)
    ends = jvm.java.util.LinkedHashMap()
    with java_consumer(session, {**_READING, **settings}) as consumer:
        starts = []
        for each in ranges:
            place = jvm.org.apache.kafka.common.TopicPartition(each.topic, each.partition)
            ends[place] = each.end
            starts.append((place, each.start))
        consumer.assign([place for place, _ in starts])
        for place, start in starts:
            if start is None:
                consumer.seekToBeginning([place])
            else:
                consumer.seek(place, start)
        sum_before, since = -1, time.monotonic()
        while ends:
            rows, positions = take(consumer, ends)
            if rows:
                made = session._jsparkSession.createDataFrame(rows, schema)
                yield DataFrame(made, session)
            if rows or positions != sum_before:
                sum_before, since = positions, time.monotonic()
            elif time.monotonic() - since > PATIENCE_S:
                place = next(iter(ends))
                raise PipelineError(
                    f"{place} cannot be read beyond offset {consumer.position(place)}: nothing"
                    f" came for {PATIENCE_S:.0f} s"
                )


_READING: Final = {
    "enable.auto.commit": "false",
    "max.poll.records": "50000",
    "fetch.max.bytes": "16000000",
    "max.partition.fetch.bytes": "16000000",
}
