"""Transactions frame by frame, in the versions that clients use: what is refused, and how.

Client libraries hide most of these answers from a test, or never ask. Passes on Apache Kafka, too.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from protocol.records.builder import build_batch
from tests.integration.test_transactions import committed, uncommitted
from tests.support.produce_requests import one_batch
from tests.support.topics import make_topic
from tests.support.wire_client import WireClient

PATIENCE_S = 20
PASSING = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,  # The topic was made a moment ago.
    )
)


def patiently(ask: Any) -> Any:
    """Ask until the code is no passing error; return it."""
    deadline = time.monotonic() + PATIENCE_S
    while (code := ask()) in PASSING and time.monotonic() < deadline:
        time.sleep(0.02)
    return code


class Peer:
    """A transactional producer that sends single requests."""

    def __init__(self, bootstrap: str, name: str) -> None:
        host, port = bootstrap.split(":")
        self.wire = WireClient(int(port), host, timeout_s=PATIENCE_S)
        self.name = name
        self.producer_id = self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    def coordinator(self, kind: int, key: str) -> None:
        request = FindCoordinatorRequest(key=key, key_type=kind)
        code = patiently(lambda: self.wire.call(ApiKey.FIND_COORDINATOR, 3, request).error_code)
        assert code == 0

    def init(self) -> None:
        self.coordinator(1, self.name)

        def ask() -> int:
            request = InitProducerIdRequest(
                transactional_id=self.name, transaction_timeout_ms=60_000
            )
            response = self.wire.call(ApiKey.INIT_PRODUCER_ID, 4, request)
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
            return int(response.error_code)

        assert patiently(ask) == 0

    def add(self, topic: str, *partitions: int) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )

        def ask() -> int:
            response = self.wire.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
            [result, *_] = response.results_by_topic_v3_and_below[0].results_by_partition
            return int(result.partition_error_code)

        return int(patiently(ask))

    def produce(self, version: int, topic: str, partition: int = 0, *, retry: bool = True) -> int:
        sequence = self.sequences.get((topic, partition), 0)
        batch = build_batch(
            [(int(time.time() * 1000), None, b"v", ())],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        request = one_batch(topic, batch, partition=partition, transactional_id=self.name)

        def ask() -> int:
            response = self.wire.call(ApiKey.PRODUCE, version, request)
            return int(response.responses[0].partition_responses[0].error_code)

        code = patiently(ask) if retry else ask()
        if not code:
            self.sequences[topic, partition] = sequence + 1
        return int(code)

    def add_offsets(self, group: str) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        ask = lambda: self.wire.call(ApiKey.ADD_OFFSETS_TO_TXN, 3, request).error_code  # noqa: E731
        return int(patiently(ask))

    def commit_offset(
        self, version: int, group: str, topic: str, offset: int, **member: Any
    ) -> int:
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
                    ],
                )
            ],
            **member,
        )

        def ask() -> int:
            response = self.wire.call(ApiKey.TXN_OFFSET_COMMIT, version, request)
            return int(response.topics[0].partitions[0].error_code)

        return int(patiently(ask))

    def end(self, version: int, *, commit: bool) -> int:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )

        def ask() -> int:
            response = self.wire.call(ApiKey.END_TXN, version, request)
            if version >= 5 and not response.error_code:
                self.producer_id, self.epoch = response.producer_id, response.producer_epoch
                self.sequences.clear()
            return int(response.error_code)

        return int(patiently(ask))

    def fetch_offset(
        self, version: int, group: str, topic: str, *, stable: bool
    ) -> tuple[int, int]:
        """Return (code, offset)."""
        request = OffsetFetchRequest(
            group_id=group,
            topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0])],
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group,
                    topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])],
                )
            ],
            require_stable=stable,
        )
        response = self.wire.call(ApiKey.OFFSET_FETCH, version, request)
        topics = response.topics if version < 8 else response.groups[0].topics
        [result] = topics[0].partitions
        return result.error_code, result.committed_offset


@pytest.fixture
def peer(bootstrap: str, topic: str) -> Iterator[Peer]:
    make_topic(bootstrap, topic, partitions=2)
    made = Peer(bootstrap, f"{topic}-id")
    made.init()
    yield made
    made.wire.close()


# ---- offsets (S-TXN-5)


@pytest.mark.parametrize("version", [7, 8, 9])
@pytest.mark.parametrize("commit", [True, False])
def test_s_txn_5_offsets_on_their_way_are_unstable(
    peer: Peer, topic: str, group: str, version: int, commit: bool
) -> None:
    peer.coordinator(0, group)
    assert peer.add_offsets(group) == 0
    assert peer.commit_offset(3, group, topic, 7) == 0
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert peer.fetch_offset(version, group, topic, stable=True) == (unstable, -1)
    assert peer.fetch_offset(version, group, topic, stable=False) == (0, -1)
    assert peer.fetch_offset(6, group, topic, stable=False) == (0, -1)
    assert peer.end(1, commit=commit) == 0
    wanted = (0, 7 if commit else -1)
    deadline = time.monotonic() + PATIENCE_S
    while peer.fetch_offset(version, group, topic, stable=True) != wanted:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def stable_member(wire: WireClient, group: str, instance: str | None) -> tuple[int, str]:
    """(generation, member id) of the one member of a group."""

    def join(member_id: str) -> Any:
        return wire.call(
            ApiKey.JOIN_GROUP,
            5,
            JoinGroupRequest(
                group_id=group,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id=member_id,
                group_instance_id=instance,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(10))],
            ),
        )

    joined = join("")
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        joined = join(joined.member_id)
    assert joined.error_code == 0
    synced = wire.call(
        ApiKey.SYNC_GROUP,
        3,
        SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance,
            assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"a")],
        ),
    )
    assert synced.error_code == 0
    return joined.generation_id, joined.member_id


@pytest.mark.parametrize("version", [3, 4, 5])
def test_s_txn_5_kip_447_a_zombie_of_the_group_is_fenced(
    peer: Peer, topic: str, group: str, version: int
) -> None:
    """librdkafka and kafka-python send v3, Java 3.9 v4, Java 4 v5."""
    peer.coordinator(0, group)
    generation, member = stable_member(peer.wire, group, None)
    if version < 5:
        assert peer.add_offsets(group) == 0

    def commit(offset: int, **who: Any) -> int:
        return peer.commit_offset(version, group, topic, offset, **who)

    illegal = ErrorCode.ILLEGAL_GENERATION
    assert commit(1, member_id=member, generation_id_or_member_epoch=generation - 1) == illegal
    assert commit(2, member_id=member, generation_id_or_member_epoch=generation + 1) == illegal
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(3, member_id="zombie", generation_id_or_member_epoch=generation) == unknown
    assert commit(4, member_id=member, generation_id_or_member_epoch=generation) == 0
    assert peer.end(1 if version < 5 else 5, commit=True) == 0
    deadline = time.monotonic() + PATIENCE_S
    while peer.fetch_offset(7, group, topic, stable=True) != (0, 4):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_s_txn_5_kip_447_a_static_zombie_is_fenced(
    peer: Peer, topic: str, group: str, version: int
) -> None:
    peer.coordinator(0, group)
    generation, member = stable_member(peer.wire, group, "static")
    if version < 5:
        assert peer.add_offsets(group) == 0

    def commit(**who: Any) -> int:
        return peer.commit_offset(
            version, group, topic, 5, generation_id_or_member_epoch=generation, **who
        )

    fenced, unknown = ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(member_id="zombie", group_instance_id="static") == fenced
    assert commit(member_id=member, group_instance_id="other") == unknown
    assert commit(member_id=member, group_instance_id="static") == 0
    assert peer.end(1 if version < 5 else 5, commit=False) == 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_s_txn_5_clients_before_kip_447_are_not_checked(
    peer: Peer, topic: str, group: str, version: int
) -> None:
    """aiokafka sends v0: it names no member."""
    peer.coordinator(0, group)
    stable_member(peer.wire, group, None)
    assert peer.add_offsets(group) == 0
    assert peer.commit_offset(version, group, topic, 9) == 0
    assert peer.end(0, commit=True) == 0


# ---- verification (KIP-890)


@pytest.mark.parametrize("version", [3, 8, 9, 10, 11])
def test_s_txn_7_older_clients_write_only_to_partitions_they_added(
    peer: Peer, bootstrap: str, topic: str, version: int
) -> None:
    assert peer.add(topic, 0) == 0
    assert peer.produce(version, topic, 0) == 0
    told = ErrorCode.TRANSACTION_ABORTABLE if version >= 11 else ErrorCode.INVALID_TXN_STATE
    assert peer.produce(version, topic, 1) == told
    assert peer.end(1, commit=True) == 0
    assert peer.add(topic, 1) == 0  # Begins when the last one is complete.
    # A late batch of the last transaction does not hang in the next one.
    assert peer.produce(version, topic, 0) == told
    assert peer.produce(version, topic, 1) == 0
    assert peer.end(1, commit=False) == 0

    assert committed(bootstrap, topic, partitions=2) == ["v"]
    assert len(uncommitted(bootstrap, topic, partitions=2)) == 2


@pytest.mark.parametrize("version", [4, 5])
def test_s_txn_7_brokers_verify_for_many_transactions(peer: Peer, topic: str, version: int) -> None:
    assert peer.add(topic, 0) == 0
    request = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=name,
                producer_id=peer.producer_id,
                producer_epoch=peer.epoch + late,
                verify_only=True,
                topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0, 1])],
            )
            for name, late in ((peer.name, 0), (f"{peer.name}-unknown", 0))
        ]
    )
    response = peer.wire.call(ApiKey.ADD_PARTITIONS_TO_TXN, version, request)
    assert response.error_code == 0
    found = {
        result.transactional_id: {
            one.partition_index: one.partition_error_code
            for one in result.topic_results[0].results_by_partition
        }
        for result in response.results_by_transaction
    }
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert found == {
        peer.name: {0: 0, 1: ErrorCode.TRANSACTION_ABORTABLE},
        f"{peer.name}-unknown": {0: mapping, 1: mapping},
    }
    assert peer.end(1, commit=False) == 0


# ---- markers of an administrator (S-TXN-2)


@pytest.mark.parametrize("version", [1, 2])
def test_s_txn_2_and_7_a_marker_of_version_2_needs_a_raised_epoch(
    peer: Peer, bootstrap: str, topic: str, version: int
) -> None:
    assert peer.add(topic, 0) == 0
    assert peer.produce(9, topic) == 0

    def mark(epoch: int) -> int:
        request = WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    producer_id=peer.producer_id,
                    producer_epoch=epoch,
                    transaction_result=False,
                    topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
                    coordinator_epoch=0,
                    transaction_version=2,
                )
            ]
        )
        response = peer.wire.call(ApiKey.WRITE_TXN_MARKERS, version, request)
        return int(response.markers[0].topics[0].partitions[0].error_code)

    assert mark(peer.epoch) == (ErrorCode.INVALID_PRODUCER_EPOCH if version >= 2 else 0)
    assert mark(peer.epoch + 1) == 0
    assert mark(peer.epoch) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert committed(bootstrap, topic) == []
    assert uncommitted(bootstrap, topic) == ["v"]


# ---- ListTransactions


def test_kip_1152_patterns_are_read_as_re2_does(peer: Peer) -> None:
    def listed(pattern: str) -> tuple[int, set[str]]:
        request = ListTransactionsRequest(transactional_id_pattern=pattern)
        response = peer.wire.call(ApiKey.LIST_TRANSACTIONS, 2, request)
        return response.error_code, {one.transactional_id for one in response.transaction_states}

    assert listed(f"{peer.name[:-3]}-(id|x)") == (0, {peer.name})
    assert listed(peer.name[:-1]) == (0, set())
    assert peer.name in listed("(?i)TOPIC.*")[1]
    assert peer.name in listed(r"\p{Ll}+-\d+-\d+-\w{2}")[1]
    for bad in ("(", "(?=a)", r"(a)\1"):
        assert listed(bad) == (ErrorCode.INVALID_REGULAR_EXPRESSION, set()), bad
