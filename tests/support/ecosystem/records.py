"""Writes and reads records of the tests' topics with librdkafka."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import confluent_kafka

PATIENCE_S = 90
QUIET = {"log_level": 0}


@dataclass(frozen=True, slots=True)
class Found:
    """A record as a consumer sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int


def send(
    bootstrap: str,
    topic: str,
    records: Iterable[tuple[bytes | None, bytes]],
    headers: Iterable[tuple[str, bytes]] = (),
) -> None:
    """Produce (key, value) pairs, and wait until all are acknowledged."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True, **QUIET}
    )
    errors: list[object] = []
    for key, value in records:
        producer.produce(
            topic,
            value=value,
            key=key,
            headers=list(headers),
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert not errors, errors[:3]


class Tail:
    """Reads one topic from its beginning on, also over kills of the broker."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: int = 1, isolation: str = "read_committed"
    ) -> None:
        self.records: list[Found] = []
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "reconnect.backoff.max.ms": 500,
                **QUIET,
            }
        )
        self._consumer.assign(
            [confluent_kafka.TopicPartition(topic, p, 0) for p in range(partitions)]
        )

    def read(self, seconds: float = 0.1) -> None:
        """Read the records that have arrived."""
        for message in self._consumer.consume(5000, seconds):
            if message.error() is None:
                self.records.append(
                    Found(
                        partition=message.partition(),
                        offset=message.offset(),
                        key=message.key(),
                        value=message.value(),
                        headers=tuple(message.headers() or ()),
                        timestamp=message.timestamp()[1],
                    )
                )

    def has(self, condition: Callable[[list[Found]], bool]) -> Callable[[], bool]:
        """Return a function that reads on and then says whether the condition holds."""

        def asked() -> bool:
            self.read()
            return condition(self.records)

        return asked

    def at_least(self, count: int) -> Callable[[], bool]:
        """Return a function that reads on and then says whether `count` records have come."""
        return self.has(lambda records: len(records) >= count)

    def nothing_more(self, seconds: float = 2.0) -> None:
        """Read on for `seconds`, to notice records that should not come."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read()

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def __enter__(self) -> "Tail":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
