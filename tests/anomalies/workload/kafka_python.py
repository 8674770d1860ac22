"""kafka-python as the roles use it."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import kafka
from kafka import errors

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

_QUICK: dict[str, Any] = {
    "request_timeout_ms": REQUEST_TIMEOUT_MS,
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 200,
    "retry_backoff_ms": 20,
}


class KafkaPythonProducer:
    """A `TransactionalProducer`."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        with raising(GivenUp, errors.KafkaError):
            self._producer = kafka.KafkaProducer(
                **_QUICK,
                bootstrap_servers=bootstrap,
                transactional_id=transactional_id,
                transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
                delivery_timeout_ms=int(PATIENCE_S * 1000),
                max_block_ms=int(PATIENCE_S * 1000),
            )
            self._producer.init_transactions()
        self._sent: list[tuple[str, Any]] = []

    def begin(self) -> None:
        """Begin a transaction. Nothing is sent: only the library knows of it."""
        self._sent = []
        with raising(GivenUp, errors.KafkaError):
            self._producer.begin_transaction()

    def send(self, key: str, value: str) -> None:
        """Put a record into the library's queue."""
        topic, partition = split(key)
        with raising(MustAbort, errors.KafkaError):
            future = self._producer.send(topic, value.encode(), partition=partition)
        self._sent.append((value, future))

    def flush(self) -> dict[str, int]:
        """Wait until the broker has answered every record."""
        offsets = {}
        with raising(MustAbort, errors.KafkaError):
            for value, future in self._sent:
                offset = future.get(PATIENCE_S).offset
                if offset is not None and offset >= 0:
                    offsets[value] = offset
        return offsets

    def commit(self) -> None:
        """Commit. After a failure this gives up: the library does not say whether to abort."""
        with raising(GivenUp, errors.KafkaError):
            self._producer.commit_transaction()

    def abort(self) -> None:
        """Abort, and wait for the answer."""
        with raising(GivenUp, errors.KafkaError):
            self._producer.abort_transaction()

    def close(self) -> None:
        """Do not wait for the library: the process ends."""
        self._producer.close(timeout=0)


class KafkaPythonReader:
    """A `CommittedReader`: assigned to `keys`, or subscribed to their topics as a member."""

    def __init__(
        self,
        bootstrap: str,
        keys: Sequence[str],
        on_move: OnMove,
        *,
        group: str | None = None,
        subscribe: bool = False,
    ) -> None:
        self._on_move = on_move
        self._consumer = kafka.KafkaConsumer(
            **{**_QUICK, "request_timeout_ms": 10_000},
            bootstrap_servers=bootstrap,
            group_id=group,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
            fetch_max_wait_ms=100,
        )
        if subscribe:

            class Listener(kafka.ConsumerRebalanceListener):
                def on_partitions_revoked(self, revoked: Any) -> None:
                    pass

                def on_partitions_assigned(self, assigned: Any) -> None:
                    on_move([joined(place.topic, place.partition) for place in assigned])

            topics = sorted({split(key)[0] for key in keys})
            self._consumer.subscribe(topics, listener=Listener())
            return
        places = [kafka.TopicPartition(*split(key)) for key in keys]
        self._consumer.assign(places)
        self._consumer.seek_to_beginning()
        on_move(keys)

    def poll(self, timeout_s: float, limit: int) -> Records:
        """See `CommittedReader`."""
        with raising(GivenUp, errors.KafkaError):
            found = self._consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=limit)
        return {
            joined(place.topic, place.partition): [(r.offset, r.value.decode()) for r in records]
            for place, records in found.items()
        }

    def commit(self, offsets: Mapping[str, int]) -> None:
        """Commit where a successor of this member goes on. If this fails, it reads some again."""
        places = {
            kafka.TopicPartition(*split(key)): kafka.OffsetAndMetadata(offset, "", -1)
            for key, offset in offsets.items()
        }
        with contextlib.suppress(errors.KafkaError):
            self._consumer.commit(places)

    def seek(self, offsets: Mapping[str, int]) -> None:
        """Read on from these offsets."""
        for key, offset in offsets.items():
            self._consumer.seek(kafka.TopicPartition(*split(key)), offset)
        self._on_move(list(offsets))

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
