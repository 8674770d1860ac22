"""confluent-kafka (librdkafka) as the roles use it; it speaks the protocol before KIP-890."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.anomalies.workload.clients import (
    PATIENCE_S,
    REQUEST_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS,
    GivenUp,
    MustAbort,
    OnMove,
    Records,
    joined,
    raising,
    split,
)

PLAIN_PATIENCE_MS = 120_000
"""How long a record without a transaction is tried: longer than any fault lasts."""
_QUICK: dict[str, Any] = {
    "socket.timeout.ms": REQUEST_TIMEOUT_MS,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "log_level": 0,
}


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Raise MustAbort or GivenUp in the place of the library's error, as that says."""
    try:
        yield
    except KafkaException as error:
        cause = error.args[0]
        kind = MustAbort if cause.txn_requires_abort() else GivenUp
        raise kind(cause.str()) from error


class ConfluentProducer:
    """A `TransactionalProducer`."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._producer = confluent_kafka.Producer(
            {
                **_QUICK,
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "linger.ms": 0,
            }
        )
        self._offsets: dict[str, int] = {}
        self._failed: list[str] = []
        with raising(GivenUp, KafkaException):
            self._producer.init_transactions(PATIENCE_S)

    def begin(self) -> None:
        """Begin a transaction. Nothing is sent: only the library knows of it."""
        self._offsets, self._failed = {}, []
        with raising(GivenUp, KafkaException):
            self._producer.begin_transaction()

    def send(self, key: str, value: str) -> None:
        """Put a record into the library's queue."""
        topic, partition = split(key)

        def delivered(error: KafkaError | None, message: confluent_kafka.Message) -> None:
            if error is not None:
                self._failed.append(error.str())
            elif message.offset() is not None and message.offset() >= 0:
                self._offsets[value] = message.offset()

        with _translated():
            self._producer.produce(
                topic, value.encode(), partition=partition, on_delivery=delivered
            )

    def flush(self) -> dict[str, int]:
        """Wait until every record has its delivery report."""
        with _translated():
            undelivered = self._producer.flush(PATIENCE_S)
        if undelivered:
            raise MustAbort("not delivered in time")
        if self._failed:
            raise MustAbort(self._failed[0])
        return self._offsets

    def send_offsets(self, offsets: Mapping[str, int], metadata: Any) -> None:
        """Add a group's offsets to the transaction, in the name of one of its members."""
        places = [TopicPartition(*split(key), offset) for key, offset in offsets.items()]
        with _translated():
            self._producer.send_offsets_to_transaction(places, metadata, PATIENCE_S)

    def commit(self) -> None:
        """Commit. After any error that does not say "abort" the outcome counts as unknown."""
        with _translated():
            self._producer.commit_transaction(PATIENCE_S)

    def abort(self) -> None:
        """Abort, and wait for the answer."""
        with raising(GivenUp, KafkaException):
            self._producer.abort_transaction(PATIENCE_S)

    def close(self) -> None:
        """Do not wait for the library: the process ends."""


class IdempotentProducer:
    """Sends without transactions; every record has acks=all and is tried for long."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = confluent_kafka.Producer(
            {
                **_QUICK,
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "message.timeout.ms": PLAIN_PATIENCE_MS,
                "linger.ms": 0,
            }
        )

    def send(self, key: str, value: str, answered: Callable[[int | None, str], None]) -> None:
        """Queue a record. `answered` gets its offset (None: not known) and an error ("": none)."""
        topic, partition = split(key)

        def delivered(error: KafkaError | None, message: confluent_kafka.Message) -> None:
            offset = message.offset()
            known = offset is not None and offset >= 0 and error is None
            answered(offset if known else None, "" if error is None else error.str())

        try:
            self._producer.produce(
                topic, value.encode(), partition=partition, on_delivery=delivered
            )
        except (BufferError, KafkaException) as error:
            answered(None, str(error))

    def answers(self, timeout_s: float) -> int:
        """Wait for answers so long; return how many are outstanding."""
        self._producer.poll(timeout_s)
        return len(self._producer)

    def flush(self, timeout_s: float) -> None:
        """Wait for all."""
        self._producer.flush(timeout_s)


class ConfluentReader:
    """A `CommittedReader`: assigned to `keys`, or subscribed to their topics as a member."""

    def __init__(
        self,
        bootstrap: str,
        keys: Sequence[str],
        on_move: OnMove,
        *,
        group: str | None = None,
        subscribe: bool = False,
        from_committed: bool = False,
    ) -> None:
        self._on_move = on_move
        self._consumer = confluent_kafka.Consumer(
            {
                **_QUICK,
                "bootstrap.servers": bootstrap,
                "group.id": group or "unused",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 500,
                "fetch.wait.max.ms": 100,
                # Small answers, because each must name the aborted transactions that reach into it.
                "fetch.message.max.bytes": 4000,
            }
        )
        if subscribe:
            topics = sorted({split(key)[0] for key in keys})
            self._consumer.subscribe(topics, on_assign=self._moved, on_lost=self._lost)
            return
        if from_committed:
            places = self._committed(keys)
        else:
            places = [TopicPartition(*split(key), 0) for key in keys]
        self._consumer.assign(places)
        on_move(keys)

    def _committed(self, keys: Sequence[str]) -> list[TopicPartition]:
        """Return the group's offsets, once no transaction that changes them is undecided."""
        with raising(GivenUp, KafkaException):
            places = self._consumer.committed(
                [TopicPartition(*split(key)) for key in keys], PATIENCE_S
            )
        return [TopicPartition(p.topic, p.partition, max(p.offset, 0)) for p in places]

    def _moved(self, _: Any, places: list[TopicPartition]) -> None:
        self._on_move([joined(place.topic, place.partition) for place in places])

    def _lost(self, _: Any, places: list[TopicPartition]) -> None:
        self._on_move([])

    def poll(self, timeout_s: float, limit: int) -> Records:
        """See `CommittedReader`."""
        found: Records = {}
        with raising(GivenUp, KafkaException):
            messages = self._consumer.consume(limit, timeout_s)
        for message in messages:
            if message.error() is None:
                key = joined(message.topic(), message.partition())
                found.setdefault(key, []).append((message.offset(), message.value().decode()))
        return found

    def commit(self, offsets: Mapping[str, int]) -> None:
        """Commit where a successor of this member goes on. If this fails, it reads some again."""
        places = [TopicPartition(*split(key), offset) for key, offset in offsets.items()]
        with contextlib.suppress(KafkaException):
            self._consumer.commit(offsets=places, asynchronous=True)

    def metadata(self) -> Any:
        """Return what identifies the member when a transaction commits the group's offsets."""
        return self._consumer.consumer_group_metadata()

    def rewind(self, keys: Sequence[str]) -> None:
        """Read on from the group's offsets. Raises GivenUp if a partition is no longer assigned."""
        self.seek({joined(p.topic, p.partition): p.offset for p in self._committed(keys)})

    def seek(self, offsets: Mapping[str, int]) -> None:
        """Read on from these offsets. Raises GivenUp if a partition is no longer assigned."""
        with raising(GivenUp, KafkaException):
            for key, offset in offsets.items():
                self._consumer.seek(TopicPartition(*split(key), offset))
        self._on_move(list(offsets))

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
