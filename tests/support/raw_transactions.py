"""A transactional producer of single requests, which outlives the broker where it began.

    client = RawTransaction("id")
    client.begin(port)                    # InitProducerId
    client.send(port, "t", 0, b"value")   # one batch
    client.end(port, commit=True)

Each call opens a connection, so the port may belong to another broker each time. It has both
protocols: with `version` 2, Produce and TxnOffsetCommit add partitions and groups to the
transaction and EndTxn returns the next epoch (KIP-890); with 1, AddPartitionsToTxn and
AddOffsetsToTxn add them.
"""

import time
from typing import Any

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.records.builder import build_batch
from tests.support.produce_requests import one_batch
from tests.support.wire_client import WireClient

PATIENCE_S = 30
GROUP, TRANSACTION = 0, 1
AGAIN = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    )
)
"""Errors of a broker that has just started, or is writing markers of the last transaction."""


class RawTransaction:
    """A transaction that single requests begin, write to and end."""

    def __init__(self, transactional_id: str, *, version: int, timeout_ms: int = 60_000) -> None:
        self.transactional_id = transactional_id
        self.version = version
        self.timeout_ms = timeout_ms
        self.producer_id = self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    @property
    def _owner(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def begin(self, port: int) -> None:
        """Become the owner of the id."""
        # The first FindCoordinator creates __transaction_state.
        find = FindCoordinatorRequest(key=self.transactional_id, key_type=TRANSACTION)
        _call(port, ApiKey.FIND_COORDINATOR, 3, find, lambda answer: answer.error_code)
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms
        )
        answer = _call(port, ApiKey.INIT_PRODUCER_ID, 4, request, lambda a: a.error_code)
        self._become(answer.producer_id, answer.producer_epoch)

    def send(self, port: int, topic: str, partition: int, *values: bytes, at: int) -> int:
        """Send one batch with timestamps of `at` ms; return the base offset."""
        if self.version < 2:
            self._add_partition(port, topic, partition)
        sequence = self._sequences.get((topic, partition), 0)
        batch = build_batch(
            [(at, None, value, []) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        request = one_batch(
            topic,
            batch,
            partition=partition,
            timeout_ms=10_000,
            transactional_id=self.transactional_id,
        )

        def code(answer: Any) -> int:
            return int(answer.responses[0].partition_responses[0].error_code)

        answer = _call(port, ApiKey.PRODUCE, 12 if self.version >= 2 else 9, request, code)
        self._sequences[topic, partition] = sequence + len(values)
        return int(answer.responses[0].partition_responses[0].base_offset)

    def send_offset(self, port: int, group: str, topic: str, partition: int, offset: int) -> None:
        """Commit an offset of the group in the transaction."""
        find = FindCoordinatorRequest(key=group, key_type=GROUP)
        _call(port, ApiKey.FIND_COORDINATOR, 3, find, lambda answer: answer.error_code)
        if self.version < 2:
            added = AddOffsetsToTxnRequest(**self._owner, group_id=group)
            _call(port, ApiKey.ADD_OFFSETS_TO_TXN, 3, added, lambda a: a.error_code)
        place = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            **self._owner,
            group_id=group,
            member_id="",
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[place])],
        )
        _call(
            port,
            ApiKey.TXN_OFFSET_COMMIT,
            5 if self.version >= 2 else 3,
            request,
            lambda answer: answer.topics[0].partitions[0].error_code,
        )

    def end(self, port: int, *, commit: bool) -> None:
        """Send EndTxn, without waiting for the markers."""
        request = EndTxnRequest(**self._owner, committed=commit)
        version = 5 if self.version >= 2 else 3
        answer = _call(port, ApiKey.END_TXN, version, request, lambda a: a.error_code)
        if self.version >= 2:
            self._become(answer.producer_id, answer.producer_epoch)

    def wait_at_rest(self, port: int) -> str:
        """Wait until no transaction is open and all markers are written; return the state."""
        request = DescribeTransactionsRequest(transactional_ids=[self.transactional_id])
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with WireClient(port, timeout_s=20) as client:
                answer = client.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)
            (described,) = answer.transaction_states
            state = str(described.transaction_state)
            if described.error_code == 0 and state in ("Empty", "CompleteCommit", "CompleteAbort"):
                return state
            assert time.monotonic() < deadline, (described.error_code, state)
            time.sleep(0.02)

    def _add_partition(self, port: int, topic: str, partition: int) -> None:
        request = AddPartitionsToTxnRequest(
            **{f"v3_and_below_{name}": value for name, value in self._owner.items()},
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[partition])],
        )

        def code(answer: Any) -> int:
            topics = answer.results_by_topic_v3_and_below
            return int(topics[0].results_by_partition[0].partition_error_code)

        _call(port, ApiKey.ADD_PARTITIONS_TO_TXN, 3, request, code)

    def _become(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self._sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch


def _call(port: int, key: ApiKey, version: int, request: Any, code_of: Any) -> Any:
    """Send a request, again after an error of `AGAIN`; return the answer."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with WireClient(port, timeout_s=20) as client:
            answer = client.call(key, version, request)
        code = ErrorCode(code_of(answer))
        if code is ErrorCode.NONE:
            return answer
        assert code in AGAIN and time.monotonic() < deadline, (key.name, code.name)
        time.sleep(0.02)
