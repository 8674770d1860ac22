"""aiokafka as the roles use it: its event loop runs in a thread of its own all the time.

Each call runs a coroutine on that loop and waits for its result.
"""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

import aiokafka
from aiokafka import errors

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

T = TypeVar("T")
_FAILURES: Final = (errors.KafkaError, TimeoutError, errors.IllegalStateError)


class _Loop:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def wait(self, work: Coroutine[Any, Any, T], timeout_s: float = PATIENCE_S) -> T:
        """Run a coroutine on the library's loop; return its result. Raises TimeoutError."""

        async def bounded() -> T:
            return await asyncio.wait_for(work, timeout_s)

        return asyncio.run_coroutine_threadsafe(bounded(), self.loop).result()


class AiokafkaProducer:
    """A `TransactionalProducer`."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        self._loop = _Loop()
        self._sent: list[tuple[str, Any]] = []

        async def make() -> aiokafka.AIOKafkaProducer:
            made = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                transactional_id=transactional_id,
                transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
                request_timeout_ms=REQUEST_TIMEOUT_MS * 5,
                retry_backoff_ms=50,
            )
            await made.start()
            return made

        with raising(GivenUp, *_FAILURES):
            self._producer = self._loop.wait(make())

    def begin(self) -> None:
        """Begin a transaction. Nothing is sent: only the library knows of it."""
        self._sent = []
        with raising(GivenUp, *_FAILURES):
            self._loop.wait(self._producer.begin_transaction())

    def send(self, key: str, value: str) -> None:
        """Put a record into the library's queue."""
        topic, partition = split(key)
        with raising(MustAbort, *_FAILURES):
            future = self._loop.wait(
                self._producer.send(topic, value.encode(), partition=partition)
            )
        self._sent.append((value, future))

    def flush(self) -> dict[str, int]:
        """Wait until the broker has answered every record."""

        async def answers() -> dict[str, int]:
            return {value: (await future).offset for value, future in self._sent}

        with raising(MustAbort, *_FAILURES):
            offsets = self._loop.wait(answers())
        return {value: offset for value, offset in offsets.items() if offset >= 0}

    def commit(self) -> None:
        """Commit. After a failure this gives up: the library does not say whether to abort."""
        with raising(GivenUp, *_FAILURES):
            self._loop.wait(self._producer.commit_transaction())

    def abort(self) -> None:
        """Abort, and wait for the answer."""
        with raising(GivenUp, *_FAILURES):
            self._loop.wait(self._producer.abort_transaction())

    def close(self) -> None:
        """Do not wait for the library: the process ends."""


class AiokafkaReader:
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
        self._loop = _Loop()
        self._on_move = on_move

        class Listener(aiokafka.ConsumerRebalanceListener):
            def on_partitions_revoked(self, revoked: Any) -> None:
                pass

            def on_partitions_assigned(self, assigned: Any) -> None:
                on_move([joined(place.topic, place.partition) for place in assigned])

        async def make() -> aiokafka.AIOKafkaConsumer:
            made = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                group_id=group,
                isolation_level="read_committed",
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                session_timeout_ms=6000,
                heartbeat_interval_ms=500,
                fetch_max_wait_ms=100,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                retry_backoff_ms=50,
            )
            await made.start()
            if subscribe:
                topics = sorted({split(key)[0] for key in keys})
                made.subscribe(topics, listener=Listener())
            else:
                places = [aiokafka.TopicPartition(*split(key)) for key in keys]
                made.assign(places)
                await made.seek_to_beginning(*places)
                on_move(keys)
            return made

        with raising(GivenUp, *_FAILURES):
            self._consumer = self._loop.wait(make())

    def poll(self, timeout_s: float, limit: int) -> Records:
        """See `CommittedReader`."""
        with raising(GivenUp, *_FAILURES):
            found = self._loop.wait(
                self._consumer.getmany(timeout_ms=int(timeout_s * 1000), max_records=limit)
            )
        return {
            joined(place.topic, place.partition): [(r.offset, r.value.decode()) for r in records]
            for place, records in found.items()
        }

    def commit(self, offsets: Mapping[str, int]) -> None:
        """Commit where a successor of this member goes on. If this fails, it reads some again."""
        places = {aiokafka.TopicPartition(*split(key)): offset for key, offset in offsets.items()}
        with contextlib.suppress(*_FAILURES):
            self._loop.wait(self._consumer.commit(places))

    def seek(self, offsets: Mapping[str, int]) -> None:
        """Read on from these offsets."""

        async def go() -> None:
            for key, offset in offsets.items():
                self._consumer.seek(aiokafka.TopicPartition(*split(key)), offset)

        with raising(GivenUp, *_FAILURES):
            self._loop.wait(go())
        self._on_move(list(offsets))

    def close(self) -> None:
        """Leave the group."""
        with contextlib.suppress(*_FAILURES):
            self._loop.wait(self._consumer.stop())
