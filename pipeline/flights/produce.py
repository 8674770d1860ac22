"""Writes flights to a topic with confluent-kafka: idempotent, lz4, keyed by tail number."""

from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pipeline.flights.table import Flight


def create_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Create the topic. Raises KafkaException when that is refused."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)


def produce(
    bootstrap: str,
    topic: str,
    flights: Iterable[Flight],
    on_progress: Callable[[int], None] = lambda _count: None,
) -> int:
    """Send every flight and wait for its acknowledgement; returns how many there were.

    Raises RuntimeError naming the first error when any record was not acknowledged.
    """
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 20,
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
    for flight in flights:
        while True:
            try:
                producer.produce(topic, key=flight.key, value=flight.value, on_delivery=delivered)
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
            f"{sent - acknowledged} of {sent} flights not acknowledged: {errors[:1]}"
        )
    return acknowledged
