"""Reads every record of a topic, from its beginning to its end as of the run's start."""

import time
from collections.abc import Callable
from typing import Any, Final

from tools.errors import CommandError
from tools.perf.measure import Measure, Told
from tools.perf.wanted import Wanted
from tools.presence import Presence

AT_ONCE: Final = 10_000
WAIT_S: Final = 0.02
"""The longest wait for a batch of messages. The last, fruitless wait counts in the time."""
ANSWER_S: Final = 15.0


def consume_records(
    consumer: Any,
    presence: Presence,
    measure_from: Callable[[], Measure],
    wanted: Wanted,
    told: Told,
) -> Measure:
    """Read until the end, or the limits of `wanted`. Raises CommandError, KafkaException.

    The clock starts after the partitions are assigned, so it does not include looking up their
    ends.
    """
    from confluent_kafka import KafkaError, TopicPartition

    topic, records = wanted.topic, wanted.records
    ends = _ends(consumer, topic)
    left = {partition for partition, (low, high) in ends.items() if high > low}
    if not left:
        raise CommandError(f"{topic} has no records: `pykafkalog perf produce {topic}` makes some")
    consumer.assign([TopicPartition(topic, partition, ends[partition][0]) for partition in left])
    measure = measure_from()
    stop = None if wanted.seconds is None else measure.began + wanted.seconds
    while left and not measure.interrupted and (records is None or measure.records < records):
        count = AT_ONCE if records is None else min(AT_ONCE, records - measure.records)
        messages = consumer.consume(count, WAIT_S)
        read = []
        for message in messages:
            error = message.error()
            if error is None:
                read.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            else:
                presence.doubt()
        measure.note(len(read), sum(map(len, read)))
        now = time.monotonic()
        if (interval := measure.tick(now)) is not None:
            presence.check()
            told(interval)
        left.difference_update(_finished(consumer, topic, left, ends))
        if stop is not None and now >= stop:
            break
    return measure


def _finished(
    consumer: Any, topic: str, left: set[int], ends: dict[int, tuple[int, int]]
) -> list[int]:
    """Return the partitions that were read up to their end in `ends`; they may have more now."""
    from confluent_kafka import TopicPartition

    places = consumer.position([TopicPartition(topic, partition) for partition in left])
    return [place.partition for place in places if place.offset >= ends[place.partition][1]]


def _ends(consumer: Any, topic: str) -> dict[int, tuple[int, int]]:
    from confluent_kafka import TopicPartition

    known = consumer.list_topics(topic, timeout=ANSWER_S).topics[topic]
    if known.error is not None:
        raise CommandError(f"{topic}: {known.error.str()}")
    return {
        partition: consumer.get_watermark_offsets(
            TopicPartition(topic, partition), timeout=ANSWER_S
        )
        for partition in known.partitions
    }
