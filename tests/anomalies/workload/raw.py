"""A transactional producer on raw frames, of version 2 (KIP-890) or of the older protocol.

No Python library speaks version 2.

In version 2, Produce 12 and TxnOffsetCommit 5 add to the transaction what they write to, EndTxn 5
answers the epoch of the next transaction, and sequences begin at 0 with each epoch. In the older
one, AddPartitionsToTxn and AddOffsetsToTxn do that, and sequences continue. As Kafka's Java
producer does, it sends an unanswered request again, with the same bytes on a new connection. There
is one broker, which is also the coordinator. One request is in flight at a time.

Requests go over a `Line`: a socket whose calls block (`SocketLine`), or one of a simulation.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.records.builder import build_batch
from tests.anomalies.workload.clients import (
    PATIENCE_S,
    REQUEST_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS,
    GivenUp,
    MustAbort,
    split,
)
from tests.support.wire_client import WireClient

FIND, INIT = 4, 5
"""Versions of both protocols."""
PRODUCE, OFFSETS, END = 12, 5, 5
OLDER_PRODUCE, OLDER_OFFSETS, OLDER_END = 11, 4, 4
ADD_PARTITIONS, ADD_OFFSETS = 3, 3
_TRANSACTION: Final = 1
"""The key type of FindCoordinator."""
_PAUSE_S: Final = 0.1
TRY_AGAIN: Final = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    )
)
_FENCED: Final = frozenset(
    (
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    )
)


class Line(Protocol):
    """A connection to the broker, which is made again when it breaks."""

    async def call(self, key: int, version: int, request: Any) -> Any:
        """Send a request; return the answer. Raises OSError when there is none."""

    async def pause(self, seconds: float) -> None:
        """Wait for so many seconds."""

    def monotonic(self) -> float:
        """Return monotonic seconds."""

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch."""

    def close(self) -> None:
        """Hang up."""


class RawProducer:
    """A `TransactionalProducer` that writes its own frames. Made by `open`."""

    def __init__(
        self,
        line: Line,
        transactional_id: str,
        *,
        version: int = 2,
        transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._line = line
        self._id = transactional_id
        self._is_older = version < 2
        self._timeout_ms = transaction_timeout_ms
        self._patience_s = patience_s
        self._sequences: dict[str, int] = {}
        self._unsent: dict[str, list[str]] = {}
        self._added: set[str] = set()
        self.producer_id = self.epoch = -1

    async def open(self) -> "RawProducer":
        """Become the owner of the transactional id. Raises GivenUp."""
        # There is one broker, but asking for the coordinator makes it create its topic.
        find = FindCoordinatorRequest(key_type=_TRANSACTION, coordinator_keys=[self._id])
        await self._call(
            ApiKey.FIND_COORDINATOR, FIND, find, lambda said: said.coordinators[0].error_code
        )
        request = InitProducerIdRequest(
            transactional_id=self._id, transaction_timeout_ms=self._timeout_ms
        )
        answer = await self._call(
            ApiKey.INIT_PRODUCER_ID, INIT, request, lambda said: said.error_code
        )
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return self

    async def begin(self) -> None:
        """Begin a transaction. The broker learns of it by the first write."""
        self._unsent = {}
        self._added.clear()

    async def send(self, key: str, value: str) -> None:
        """Keep a record until `flush`."""
        self._unsent.setdefault(key, []).append(value)

    async def flush(self) -> dict[str, int]:
        """Send one request with a batch for each partition."""
        unsent, self._unsent = self._unsent, {}
        offsets: dict[str, int] = {}
        if self._is_older:
            await self._add_partitions(unsent)
        while unsent:
            answer = await self._call(
                ApiKey.PRODUCE,
                OLDER_PRODUCE if self._is_older else PRODUCE,
                self._produce(unsent),
                lambda said: ErrorCode.NONE,
            )
            again: dict[str, list[str]] = {}
            for topic in answer.responses:
                for part in topic.partition_responses:
                    key = f"{topic.name}-{part.index}"
                    code = ErrorCode(part.error_code)
                    if code in TRY_AGAIN:
                        again[key] = unsent[key]
                        continue
                    if code is not ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                        self._raise_for(code)
                    if part.base_offset >= 0:
                        offsets |= {v: part.base_offset + n for n, v in enumerate(unsent[key])}
                    self._sequences[key] = self._sequences.get(key, 0) + len(unsent[key])
            unsent = again
            if again:
                await self._line.pause(_PAUSE_S)
        return offsets

    async def _add_partitions(self, keys: Iterable[str]) -> None:
        topics: dict[str, list[int]] = {}
        for key in keys:
            if key not in self._added:
                topic, partition = split(key)
                topics.setdefault(topic, []).append(partition)
        if not topics:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        await self._call(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            ADD_PARTITIONS,
            request,
            lambda said: max(
                part.partition_error_code
                for topic in said.results_by_topic_v3_and_below
                for part in topic.results_by_partition
            ),
        )
        self._added.update(keys)

    def _produce(self, unsent: Mapping[str, list[str]]) -> Any:
        now = self._line.wall_ms()
        topics: dict[str, list[Any]] = {}
        for key, values in unsent.items():
            topic, partition = split(key)
            batch = build_batch(
                # Each record has a key of its own, so that compaction removes none.
                [(now, value.encode(), value.encode(), ()) for value in values],
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                base_sequence=self._sequences.get(key, 0),
                transactional=True,
            )
            topics.setdefault(topic, []).append(
                PartitionProduceData(index=partition, records=batch)
            )
        return ProduceRequest(
            transactional_id=self._id,
            acks=-1,
            timeout_ms=REQUEST_TIMEOUT_MS,
            topic_data=[
                TopicProduceData(name=topic, partition_data=data) for topic, data in topics.items()
            ],
        )

    async def send_offsets(
        self,
        group: str,
        offsets: Mapping[str, int],
        *,
        member_id: str = "",
        generation: int = -1,
    ) -> None:
        """Add a group's offsets; if it has no members, only the transactional id fences."""
        if self._is_older:
            await self._call(
                ApiKey.ADD_OFFSETS_TO_TXN,
                ADD_OFFSETS,
                AddOffsetsToTxnRequest(
                    transactional_id=self._id,
                    producer_id=self.producer_id,
                    producer_epoch=self.epoch,
                    group_id=group,
                ),
                lambda said: said.error_code,
            )
        topics: dict[str, list[Any]] = {}
        for key, offset in offsets.items():
            topic, partition = split(key)
            topics.setdefault(topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=""
                )
            )
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[
                TxnOffsetCommitRequestTopic(name=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
        )
        await self._call(
            ApiKey.TXN_OFFSET_COMMIT,
            OLDER_OFFSETS if self._is_older else OFFSETS,
            request,
            lambda said: max(p.error_code for t in said.topics for p in t.partitions),
        )

    async def commit(self) -> None:
        """Commit. Raises GivenUp when the outcome is unknown."""
        await self._end(committed=True)

    async def abort(self) -> None:
        """Abort. Raises GivenUp when the outcome is unknown."""
        self._unsent = {}
        await self._end(committed=False)

    async def _end(self, *, committed: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )
        version = OLDER_END if self._is_older else END
        try:
            answer = await self._call(
                ApiKey.END_TXN, version, request, lambda said: said.error_code
            )
        except MustAbort as error:
            if committed:
                raise
            raise GivenUp(f"abort refused: {error}") from error
        if not self._is_older:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()

    async def _call(
        self, key: ApiKey, version: int, request: Any, code_of: Callable[[Any], int]
    ) -> Any:
        """Send a request until the answer is not one of those after which clients try again."""
        line = self._line
        deadline = line.monotonic() + self._patience_s
        while line.monotonic() < deadline:
            try:
                answer = await line.call(key, version, request)
            except OSError:
                line.close()
                await line.pause(_PAUSE_S)
                continue
            code = ErrorCode(code_of(answer))
            if code in TRY_AGAIN:
                await line.pause(_PAUSE_S)
                continue
            self._raise_for(code)
            return answer
        raise GivenUp(f"{key.name} was not answered for {self._patience_s} s")

    def _raise_for(self, code: ErrorCode) -> None:
        if code in _FENCED:
            raise GivenUp(code.name)
        if code is not ErrorCode.NONE:
            if self._is_older:
                # Its sequences are unknown until it gets a new epoch (KIP-360).
                raise GivenUp(code.name)
            raise MustAbort(code.name)


class SocketLine:
    """A `Line` on a socket: every call blocks."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._client: WireClient | None = None
        self.monotonic = time.monotonic

    async def call(self, key: int, version: int, request: Any) -> Any:
        """See `Line`."""
        if self._client is None:
            self._client = WireClient(self._port, timeout_s=REQUEST_TIMEOUT_MS / 1000)
        return self._client.call(key, version, request)

    async def pause(self, seconds: float) -> None:
        """See `Line`."""
        time.sleep(seconds)

    def wall_ms(self) -> int:
        """See `Line`."""
        return time.time_ns() // 1_000_000

    def close(self) -> None:
        """See `Line`."""
        if self._client is not None:
            self._client.close()
            self._client = None
