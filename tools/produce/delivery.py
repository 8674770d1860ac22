"""Sends records, counts the acknowledged ones, and keeps the first failure with its line."""

import time
from collections.abc import Callable
from typing import Any, Final

from tools.errors import CommandError
from tools.presence import Presence
from tools.produce.lines import Line, line_name
from tools.produce.stalls import Stall
from tools.records.record import Record

POLL_S: Final = 0.05
"""How long to wait for room in the client's queue."""
FLUSH_S: Final = 0.5
POLL_EVERY_S: Final = 0.1
"""How soon a record that failed is noticed while others are sent."""
CHUNK: Final = 500
"""Lines that share a report."""
ANY_PARTITION: Final = -1
NOW: Final = 0
"""The timestamp for which the client library puts in the current time."""


class NotSent(Exception):
    """A record could not be sent; the text says which one and why."""


class Delivery:
    """One producer's deliveries. The producer reports failures only."""

    def __init__(
        self,
        producer: Any,
        presence: Presence,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from confluent_kafka import KafkaError, KafkaException

        self._producer: Final = producer
        self._stall: Final = Stall(producer, clock)
        self._timed_out: Final = KafkaError._MSG_TIMED_OUT
        self._topic = ""
        self._presence: Final = presence
        self._clock: Final = clock
        self._refused: Final = KafkaException
        self._partitions: dict[str, int | None] = {}
        self._failure: str | None = None
        self._handed = self._failed = 0
        self._chunk: _Chunk | None = None
        self._report: Callable[[Any, Any], None] | None = None
        self._polled = clock()

    @property
    def acknowledged(self) -> int:
        """How many records the broker has: those that neither failed nor wait for an answer."""
        return self._handed - self._failed - len(self._producer)

    def send(self, line: Line) -> None:
        """Hand a record to the client. Raises NotSent for it or an earlier one, CommandError."""
        record = line.record
        self._topic = record.topic or ""
        if record.partition is not None:
            self._require_partition(line)
        chunk = self._chunk
        if chunk is None or len(chunk.records) >= CHUNK or chunk.source != line.source:
            chunk = self._chunk = _Chunk(line, self._failed_in)
            self._report = chunk.reported  # one object for all its records
        chunk.records.append((record.key or b"", record.value or b""))
        try:
            self._produce(record, self._report)
        except self._refused as error:
            raise NotSent(f"{line.name} was not sent: {error.args[0].str()}") from None
        self._handed += 1
        now = self._clock()
        if now - self._polled >= POLL_EVERY_S:
            self._polled = now
            self._producer.poll(0)
            self.require_success()

    def finish(self) -> None:
        """Wait until everything is acknowledged. Raises NotSent, CommandError."""
        while self._producer.flush(FLUSH_S):
            self._wait()
        self.require_success()

    def drain(self) -> None:
        """Wait as `finish` does, but ignore records that failed. Raises CommandError."""
        while self._producer.flush(FLUSH_S):
            self._presence.check()

    def require_success(self) -> None:
        """Raise NotSent if a record failed."""
        if self._failure is not None:
            raise NotSent(self._failure)

    def _produce(self, record: Record, reported: Any) -> None:
        while True:
            try:
                self._producer.produce(
                    record.topic,
                    record.value,
                    record.key,
                    ANY_PARTITION if record.partition is None else record.partition,
                    on_delivery=reported,
                    timestamp=record.timestamp or NOW,
                    headers=list(record.headers),
                )
                return
            except BufferError:  # the client's queue is full
                self._producer.poll(POLL_S)
                self._wait()

    def _wait(self) -> None:
        """Look at what keeps records waiting. Raises NotSent, CommandError."""
        self._presence.check()
        self.require_success()
        self._stall.note(self._topic, self.acknowledged)

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

    def _failed_in(self, chunk: "_Chunk", error: Any, message: Any) -> None:
        self._failed += 1
        if self._failure is None:
            late = error.code() == self._timed_out
            reason = self._stall.reason(message.topic()) if late else None
            self._failure = (
                f"{chunk.name_of(message)} was not sent: {error.str()}"
                f"{'' if reason is None else f' ({reason})'}"
            )


class _Chunk:
    """Lines of one source that follow one another and share a report, so that they leave no objects
    for the garbage collector; a record that failed is found among them by its content."""

    def __init__(self, first: Line, failed: Callable[["_Chunk", Any, Any], None]) -> None:
        self._first: Final = first.number
        self._failed: Final = failed
        self.source: Final = first.source
        self.records: Final[list[tuple[bytes, bytes]]] = []

    def reported(self, error: Any, message: Any) -> None:
        """Take the client's report of one record."""
        if error is not None:
            self._failed(self, error, message)

    def name_of(self, message: Any) -> str:
        """Return the first line with the message's content."""
        at = self.records.index((message.key() or b"", message.value() or b""))
        return line_name(self.source, self._first + at)


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
