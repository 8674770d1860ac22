"""Sends records, counts the acknowledged ones, and keeps the first failure with its line."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tools.errors import CommandError
from tools.presence import Presence
from tools.produce.lines import Line

POLL_S: Final = 0.1


class NotSent(Exception):
    """A record could not be sent; the text says which one and why."""


class Delivery:
    """One producer's deliveries; `acknowledged` counts the records that the broker has."""

    def __init__(self, producer: Any, presence: Presence) -> None:
        self._producer: Final = producer
        self._presence: Final = presence
        self._partitions: dict[str, int | None] = {}
        self._failure: str | None = None
        self.acknowledged = 0

    def send(self, line: Line) -> None:
        """Hand a record to the client. Raises NotSent for it or an earlier one, CommandError."""
        from confluent_kafka import KafkaException

        record = line.record
        arguments: dict[str, Any] = {
            "key": record.key,
            "value": record.value,
            "on_delivery": partial(self._delivered, line),
        }
        if record.headers:
            arguments["headers"] = list(record.headers)
        if record.timestamp is not None:
            arguments["timestamp"] = record.timestamp
        if record.partition is not None:
            self._require_partition(line)
            arguments["partition"] = record.partition
        try:
            self._produce(record.topic, arguments)
        except KafkaException as error:
            raise NotSent(f"{line.name} was not sent: {error.args[0].str()}") from None
        self._producer.poll(0)
        self.require_success()

    def finish(self) -> None:
        """Wait until everything is acknowledged. Raises NotSent, CommandError."""
        while self._producer.flush(POLL_S * 5):
            self._presence.check()
            self.require_success()
        self.require_success()

    def drain(self) -> None:
        """Wait as `finish` does, but ignore records that failed. Raises CommandError."""
        while self._producer.flush(POLL_S * 5):
            self._presence.check()

    def require_success(self) -> None:
        """Raise NotSent if a record failed."""
        if self._failure is not None:
            raise NotSent(self._failure)

    def _produce(self, topic: str | None, arguments: dict[str, Any]) -> None:
        while True:
            try:
                self._producer.produce(topic, **arguments)
                return
            except BufferError:  # the client's queue is full
                self._producer.poll(POLL_S)
                self._presence.check()
                self.require_success()

    def _require_partition(self, line: Line) -> None:
        """Raise NotSent for an unknown partition: librdkafka would report it late and unclearly."""
        topic = line.record.topic or ""
        if topic not in self._partitions:
            known = self._producer.list_topics(timeout=10).topics
            self._partitions[topic] = len(known[topic].partitions) if topic in known else None
        count = self._partitions[topic]
        if count is not None and (line.record.partition or 0) >= count:
            raise NotSent(
                f"{line.name} was not sent: {topic} has no partition {line.record.partition}, its"
                f" last one is {count - 1} (--any-partition lets the key decide)"
            )

    def _delivered(self, line: Line, error: Any, _message: Any) -> None:
        if error is None:
            self.acknowledged += 1
        elif self._failure is None:
            self._failure = f"{line.name} was not sent: {error.str()}"


def send_all(delivery: Delivery, lines: Any, advance: Callable[[int], None]) -> int:
    """Send every line; return how many. Raises CommandError that says how many were sent."""
    from tools.produce.lines import BadInput

    try:
        for line in lines:
            delivery.send(line)
            advance(line.length)
        delivery.finish()
    except (BadInput, NotSent) as error:
        delivery.drain()
        sent = delivery.acknowledged
        raise CommandError(f"{error}; {records(sent)} {were(sent)} sent") from None
    except CommandError as error:
        sent = delivery.acknowledged
        raise CommandError(f"{error}; {records(sent)} {were(sent)} acknowledged") from None
    return delivery.acknowledged


def records(count: int) -> str:
    """Return a count with its noun: `1 record`, `2 records`."""
    return f"{count} record" if count == 1 else f"{count} records"


def were(count: int) -> str:
    """Return the verb for a sentence about `count` records."""
    return "was" if count == 1 else "were"
