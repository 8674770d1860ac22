"""A producer of version 2 transactions (KIP-890), which no Python library is yet.

Written on raw frames: Produce 12 and TxnOffsetCommit 5 add what they write to, EndTxn 5 answers
with the epoch of the next transaction. It behaves as Kafka's Java producer does where that matters:
an unanswered request is sent again, the same bytes on a new connection; sequences begin at 0 with
each epoch. There is one broker, which is also the coordinator. One request is in flight at a time.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
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

FIND, INIT, PRODUCE, OFFSETS, END = 4, 5, 12, 5, 5
"""Versions."""
_TRANSACTION: Final = 1
"""The key type of FindCoordinator."""
_PAUSE_S: Final = 0.05
_TRY_AGAIN: Final = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
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


class ModernProducer:
    """See the module; a `TransactionalProducer`."""

    def __init__(
        self,
        port: int,
        transactional_id: str,
        *,
        transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._port = port
        self._id = transactional_id
        self._patience_s = patience_s
        self._client: WireClient | None = None
        self._sequences: dict[str, int] = {}
        self._unsent: dict[str, list[str]] = {}
        # Whom one finds is known; but asking makes the broker create its topic.
        find = FindCoordinatorRequest(key_type=_TRANSACTION, coordinator_keys=[transactional_id])
        self._call(
            ApiKey.FIND_COORDINATOR, FIND, find, lambda said: said.coordinators[0].error_code
        )
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=transaction_timeout_ms
        )
        answer = self._call(ApiKey.INIT_PRODUCER_ID, INIT, request, lambda said: said.error_code)
        self.producer_id: int = answer.producer_id
        self.epoch: int = answer.producer_epoch

    def begin(self) -> None:
        """The broker hears of it with the first write."""
        self._unsent = {}

    def send(self, key: str, value: str) -> None:
        """Kept until `flush`."""
        self._unsent.setdefault(key, []).append(value)

    def flush(self) -> dict[str, int]:
        """One request, a batch for each partition."""
        unsent, self._unsent = self._unsent, {}
        offsets: dict[str, int] = {}
        while unsent:
            answer = self._call(
                ApiKey.PRODUCE, PRODUCE, self._produce(unsent), lambda said: ErrorCode.NONE
            )
            again: dict[str, list[str]] = {}
            for topic in answer.responses:
                for part in topic.partition_responses:
                    key = f"{topic.name}-{part.index}"
                    code = ErrorCode(part.error_code)
                    if code in _TRY_AGAIN:
                        again[key] = unsent[key]
                        continue
                    if code is not ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                        self._raise_for(code)
                    if part.base_offset >= 0:
                        offsets |= {v: part.base_offset + n for n, v in enumerate(unsent[key])}
                    self._sequences[key] = self._sequences.get(key, 0) + len(unsent[key])
            unsent = again
            if again:
                time.sleep(_PAUSE_S)
        return offsets

    def _produce(self, unsent: Mapping[str, list[str]]) -> Any:
        topics: dict[str, list[Any]] = {}
        for key, values in unsent.items():
            topic, partition = split(key)
            batch = build_batch(
                [(time.time_ns() // 1_000_000, None, value.encode(), ()) for value in values],
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

    def send_offsets(self, group: str, offsets: Mapping[str, int]) -> None:
        """Offsets of a group without members: the transactional id alone fences."""
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
            topics=[
                TxnOffsetCommitRequestTopic(name=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
        )
        self._call(
            ApiKey.TXN_OFFSET_COMMIT,
            OFFSETS,
            request,
            lambda said: max(p.error_code for t in said.topics for p in t.partitions),
        )

    def commit(self) -> None:
        """Raises GivenUp when it is not known what became of it."""
        self._end(committed=True)

    def abort(self) -> None:
        """Likewise."""
        self._unsent = {}
        self._end(committed=False)

    def _end(self, *, committed: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )
        try:
            answer = self._call(ApiKey.END_TXN, END, request, lambda said: said.error_code)
        except MustAbort as error:
            if committed:
                raise
            raise GivenUp(f"abort refused: {error}") from error
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    def close(self) -> None:
        """Hang up."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _call(self, key: ApiKey, version: int, request: Any, code_of: Callable[[Any], int]) -> Any:
        """Until it is answered with something else than to try again."""
        deadline = time.monotonic() + self._patience_s
        while time.monotonic() < deadline:
            try:
                if self._client is None:
                    self._client = WireClient(self._port, timeout_s=REQUEST_TIMEOUT_MS / 1000)
                answer = self._client.call(key, version, request)
            except OSError:
                self.close()
                time.sleep(_PAUSE_S)
                continue
            code = ErrorCode(code_of(answer))
            if code in _TRY_AGAIN:
                time.sleep(_PAUSE_S)
                continue
            self._raise_for(code)
            return answer
        raise GivenUp(f"{key.name} was not answered for {self._patience_s} s")

    def _raise_for(self, code: ErrorCode) -> None:
        if code in _FENCED:
            raise GivenUp(code.name)
        if code is not ErrorCode.NONE:
            raise MustAbort(code.name)
