"""Sends the rows of partitions in transactions, each of which also commits the next position.

It runs in Spark's Python workers; it uses Kafka's client and not Spark.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from pipeline.errors import PipelineError
from pipeline.restore.job import SendJob, TopicLimits
from pipeline.restore.refusals import FailedRow, dated, guilty, refusal

TIMEOUT_S: Final = 60.0
PATIENCE_S: Final = 180.0
"""Seconds that a broker may be away."""
_PAUSE_S: Final = 0.5


class Item(NamedTuple):
    """A row with its place."""

    topic: str
    partition: int
    position: int
    timestamp: int | None
    """Milliseconds since the epoch; None means the time of sending."""
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of sending a partition."""

    topic: str
    partition: int
    sent: int
    skipped: int
    """Rows that an earlier attempt had sent."""
    next_position: int


def committed_positions(
    job: SendJob, places: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], int]:
    """Return the next position of each partition that has one. Raises PipelineError."""
    consumer = _consumer(job)
    try:
        return _committed(consumer, list(places))
    finally:
        consumer.close()


def _consumer(job: SendJob) -> Any:
    return Consumer(
        {
            **job.client,
            "bootstrap.servers": job.bootstrap,
            "group.id": job.group,
            "enable.auto.commit": False,
            # The coordinator then answers only when no transaction with offsets is undecided.
            "isolation.level": "read_committed",
            "log_level": 2,
        }
    )


def _committed(consumer: Any, places: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
    found = _patiently(
        lambda: consumer.committed([TopicPartition(*place) for place in places], TIMEOUT_S)
    )
    result = {}
    for place in found:
        if place.error is not None:
            raise PipelineError(
                f"the progress of {place.topic}-{place.partition} cannot be read: "
                f"{place.error.str()}"
            )
        if place.offset >= 0:
            result[(place.topic, place.partition)] = place.offset
    return result


def _patiently(call: Callable[[], Any]) -> Any:
    """Return the call's result; repeat the call while it fails with a temporary error."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except KafkaException as error:
            if not _may_pass(error.args[0]) or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_S)


def _may_pass(error: Any) -> bool:
    return bool(error.retriable()) or error.code() in (
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    )


class PartitionSender:
    """Sends the rows of one partition, each with a greater position than the one before."""

    def __init__(self, job: SendJob, topic: str, partition: int) -> None:
        self._job = job
        self._place = (topic, partition)
        self._limits = job.limits.get(topic) or TopicLimits.of({})
        self._failed: list[FailedRow] = []
        self._waiting: list[Item] = []
        self._waiting_bytes = 0
        self._last = -1
        self.sent = self.skipped = 0
        self._producer = Producer(
            {
                "compression.type": job.compression,
                "linger.ms": 20,
                "message.max.bytes": 1_000_000_000,  # so that the topic's own limit decides
                "batch.size": self._limits.batch_bytes,
                **job.client,
                "bootstrap.servers": job.bootstrap,
                "transactional.id": job.transactional_id(topic, partition),
                "log_level": 2,
            }
        )
        self._consumer = _consumer(job)
        _patiently(lambda: self._producer.init_transactions(TIMEOUT_S))
        self.next_position = _committed(self._consumer, [self._place]).get(self._place, 0)

    def add(self, item: Item) -> None:
        """Queue a row for the next transaction.

        Raises PipelineError if it is out of order, or if the client cannot send its timestamp.
        """
        if item.position <= self._last:
            raise PipelineError(
                f"two rows of {item.topic}-{item.partition} have the position {item.position}"
            )
        self._last = item.position
        if item.position < self.next_position:
            self.skipped += 1
            return
        if item.timestamp == 0:  # for librdkafka, the present
            if self._job.date_0_as is None:
                raise PipelineError(
                    f"{self._where()}, position {item.position}: the row is dated {dated(0)}, for"
                    " which librdkafka would send the present. --date-0-as 1 dates such rows a"
                    " millisecond later (-1: not at all); run the same restore with it: it goes on"
                )
            item = item._replace(timestamp=self._job.date_0_as)
        self._waiting.append(item)
        self._waiting_bytes += _size(item.key, item.value)
        if (
            len(self._waiting) >= self._job.records_per_transaction
            or self._waiting_bytes >= self._job.bytes_per_transaction
        ):
            self._commit()

    def close(self) -> Sent:
        """Send the queued rows; return the result of the partition."""
        if self._waiting:
            self._commit()
        self._consumer.close()
        return Sent(*self._place, self.sent, self.skipped, self.next_position)

    def _commit(self) -> None:
        """Send the queued rows and the position after them in one transaction."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._attempted():
            if time.monotonic() > deadline:
                raise PipelineError(
                    f"{self._where()}: no transaction succeeded within {PATIENCE_S:.0f} s"
                )
            time.sleep(_PAUSE_S)
        self.sent += len(self._waiting)
        self.next_position = self._waiting[-1].position + 1
        self._waiting.clear()
        self._waiting_bytes = 0

    def _attempted(self) -> bool:
        """Try one transaction; return False if it was aborted and may be tried again."""
        producer = self._producer
        self._failed.clear()
        try:
            producer.begin_transaction()
            for item in self._waiting:
                self._produce(item)
            after = TopicPartition(*self._place, self._waiting[-1].position + 1)
            group = self._consumer.consumer_group_metadata()
            _patiently(lambda: producer.send_offsets_to_transaction([after], group, TIMEOUT_S))
            _patiently(lambda: producer.commit_transaction(TIMEOUT_S))
        except KafkaException as error:
            reason = error.args[0]
            if not reason.txn_requires_abort():
                raise PipelineError(f"{self._where()}: {reason.str()}") from None
            _patiently(lambda: producer.abort_transaction(TIMEOUT_S))
            failed = guilty(self._failed)
            if failed and not _may_pass(failed[0].error):
                topic, now_ms = self._place[0], time.time_ns() // 1_000_000
                said = refusal(failed, reason, topic, self._limits, now_ms)
                raise PipelineError(f"{self._where()}, {said}") from None
            return False
        return True

    def _produce(self, item: Item) -> None:
        headers = item.headers
        if self._job.offset_header is not None:
            number = str(item.position).encode()
            headers = [*(headers or ()), (self._job.offset_header, number)]

        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                size = _size(item.key, item.value, *chain(*(headers or ())))
                failed = FailedRow(item.position, item.timestamp, size, item.key is not None, error)
                self._failed.append(failed)

        more: dict[str, Any] = {} if item.timestamp is None else {"timestamp": item.timestamp}
        while True:
            try:
                self._producer.produce(
                    item.topic,
                    key=item.key,
                    value=item.value,
                    partition=item.partition,
                    headers=headers,
                    on_delivery=delivered,
                    **more,
                )
                break
            except BufferError:  # the client's queue is full
                self._producer.poll(0.1)
        self._producer.poll(0)

    def _where(self) -> str:
        return f"{self._place[0]}-{self._place[1]}"


def _size(*parts: bytes | str | None) -> int:
    return sum(len(part or b"") for part in parts)


def send_all(items: Iterable[Item], job: SendJob) -> Iterator[Sent]:
    """Send rows that are grouped by partition and sorted by position; yield a result for each."""
    sender: PartitionSender | None = None
    current: tuple[str, int] | None = None
    for item in items:
        if (item.topic, item.partition) != current:
            if sender is not None:
                yield sender.close()
            current = (item.topic, item.partition)
            sender = PartitionSender(job, *current)
        assert sender is not None
        sender.add(item)
    if sender is not None:
        yield sender.close()
