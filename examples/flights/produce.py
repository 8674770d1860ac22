"""Writes records to a topic with confluent-kafka: idempotent, lz4."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from examples.flights.arrivals import Arrival

KEPT_FOR_EVER = {"retention.ms": "-1", "segment.ms": str(31 * 24 * 3600 * 1000)}
"""Timestamps of 2013 are older than the default retention, which would delete them within minutes.
A segment covers a month instead of a week, as the records cover a year."""


def create_topic(
    bootstrap: str, topic: str, partitions: int, configs: Mapping[str, str] | None = None
) -> None:
    """Create the topic. Raises KafkaException if the broker refuses."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, partitions, 1, config=dict(configs or {}))
    admin.create_topics([new])[topic].result(30)


def produce(
    bootstrap: str,
    topic: str,
    arrivals: Iterable[Arrival],
    on_progress: Callable[[int], None] = lambda _count: None,
) -> int:
    """Send every record and wait for its acknowledgement; returns how many there were.

    Raises RuntimeError naming the first error when any record was not acknowledged.
    """
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 20,
            "partitioner": "murmur2_random",  # as Kafka's own clients
        }
    )
    errors: list[Any] = []
    acknowledged = 0

    def delivered(error: Any, _message: Any) -> None:
        nonlocal acknowledged
        if error is not None:
            errors.append(error)
        else:
            acknowledged += 1

    sent = 0
    for key, value, timestamp in arrivals:
        while True:
            try:
                producer.produce(
                    topic, key=key, value=value, timestamp=timestamp, on_delivery=delivered
                )
                break
            except BufferError:  # the client's queue is full: let it drain
                producer.poll(0.1)
        sent += 1
        if sent % 2000 == 0:
            producer.poll(0)
            on_progress(acknowledged)
    producer.flush(120)
    on_progress(acknowledged)
    if errors or acknowledged != sent:
        raise RuntimeError(
            f"{topic}: {sent - acknowledged} of {sent} not acknowledged: {errors[:1]}"
        )
    return acknowledged
