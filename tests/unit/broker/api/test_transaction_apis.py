"""The transaction APIs over the wire, in every version (S-TXN-4, S-TXN-5, KIP-664)."""

import time
from typing import Any

import pytest

from broker.api.add_offsets_to_txn import AddOffsetsToTxnHandler
from broker.api.add_partitions_to_txn import AddPartitionsToTxnHandler
from broker.api.describe_transactions import DescribeTransactionsHandler
from broker.api.end_txn import EndTxnHandler
from broker.api.init_producer_id import InitProducerIdHandler
from broker.api.list_transactions import ListTransactionsHandler
from broker.api.txn_offset_commit import TxnOffsetCommitHandler
from broker.api.write_txn_markers import WriteTxnMarkersHandler
from broker.coordinator.transaction.state import TransactionState
from broker.coordinator.transactional_commits import TransactionalCommits
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_transactions import ListTransactionsRequest
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
from protocol.types import TopicPartition
from tests.support.api_calls import call
from tests.support.group_handlers import TOPIC_ID, GroupApi, versions
from tests.support.transaction_harness import T0, MemoryMarkers, TransactionHarness

NO_ID = b"?" * 16


class Api(GroupApi):
    """Group and transaction APIs of one broker; topics "t" (3 partitions) and "u" (1)."""

    def __init__(self) -> None:
        super().__init__()
        self.transactions = TransactionHarness()
        coordinator, ids = self.transactions.coordinator, None
        self.handlers |= {
            ApiKey.ADD_PARTITIONS_TO_TXN: AddPartitionsToTxnHandler(coordinator, self.image),
            ApiKey.ADD_OFFSETS_TO_TXN: AddOffsetsToTxnHandler(coordinator, self.coordinator),
            ApiKey.END_TXN: EndTxnHandler(coordinator, ids),  # type: ignore[arg-type]
            ApiKey.INIT_PRODUCER_ID: InitProducerIdHandler(ids, coordinator),  # type: ignore[arg-type]
            ApiKey.TXN_OFFSET_COMMIT: TxnOffsetCommitHandler(
                TransactionalCommits(self.coordinator, coordinator), self.image
            ),
            ApiKey.DESCRIBE_TRANSACTIONS: DescribeTransactionsHandler(coordinator),
            ApiKey.LIST_TRANSACTIONS: ListTransactionsHandler(coordinator, self.clock),
        }

    def add(self, version: int, producer_id: int, epoch: int, *topics: tuple[str, int]) -> Any:
        response = self.call(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            version,
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="id",
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnTopic(name=name, partitions=[index]) for name, index in topics
                ],
            ),
        )
        return [
            one.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        ]

    def commit(
        self, version: int, producer_id: int, epoch: int, *, metadata: str = "", group: str = "g"
    ) -> Any:
        response = self.call(
            ApiKey.TXN_OFFSET_COMMIT,
            version,
            offsets_of(
                "t",
                "missing",
                group_id=group,
                producer_id=producer_id,
                producer_epoch=epoch,
                metadata=metadata,
            ),
        )
        if version >= 6:
            assert [topic.topic_id for topic in response.topics] == [TOPIC_ID, NO_ID]
        else:
            assert [topic.name for topic in response.topics] == ["t", "missing"]
        return [one.error_code for topic in response.topics for one in topic.partitions]

    def add_offsets(self, version: int, producer_id: int, epoch: int) -> Any:
        request = AddOffsetsToTxnRequest(
            transactional_id="id", producer_id=producer_id, producer_epoch=epoch, group_id="g"
        )
        return self.call(ApiKey.ADD_OFFSETS_TO_TXN, version, request).error_code

    def end(self, version: int, producer_id: int, epoch: int) -> Any:
        return self.call(ApiKey.END_TXN, version, commit_of(producer_id, epoch))


def commit_of(producer_id: int = 1000, epoch: int = 0) -> EndTxnRequest:
    """The end of a transaction of "id"."""
    return EndTxnRequest(
        transactional_id="id", producer_id=producer_id, producer_epoch=epoch, committed=True
    )


def offsets_of(*topics: str, metadata: str = "", **fields: Any) -> TxnOffsetCommitRequest:
    """A commit of an offset in partition 0 of each topic, by the first owner of "id"."""
    partition = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata=metadata
    )
    made: TxnOffsetCommitRequest = TxnOffsetCommitRequest(
        transactional_id="id",
        topics=[
            TxnOffsetCommitRequestTopic(
                name=name, topic_id=TOPIC_ID if name == "t" else NO_ID, partitions=[partition]
            )
            for name in topics
        ],
        **{"group_id": "g", "producer_id": 1000, "producer_epoch": 0, **fields},
    )
    return made


def batched(
    name: str, producer_id: int, *topics: tuple[str, int], verify_only: bool = False
) -> Any:
    """One transaction of AddPartitionsToTxn v4+, in epoch 0."""
    return AddPartitionsToTxnTransaction(
        transactional_id=name,
        producer_id=producer_id,
        producer_epoch=0,
        verify_only=verify_only,
        topics=[AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in topics],
    )


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.mark.parametrize("metadata", ["", "x" * 5000])
@pytest.mark.parametrize("version", versions(ApiKey.TXN_OFFSET_COMMIT))
def test_s_txn_5_the_empty_group_takes_no_offsets_of_topics_that_exist(
    api: Api, version: int, metadata: str
) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 6 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    refused = api.commit(version, 7, 0, group="", metadata=metadata)
    assert refused == [ErrorCode.INVALID_GROUP_ID, unknown]


@pytest.mark.parametrize("version", versions(ApiKey.TXN_OFFSET_COMMIT))
def test_s_txn_5_a_refused_transaction_is_told_before_metadata_that_is_too_large(
    api: Api, version: int
) -> None:
    api.transactions.owner()
    refused = api.commit(version, 1001, 0, metadata="x" * 5000)
    assert refused[0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_s_txn_5_the_empty_group_takes_no_offsets_in_a_large_request(api: Api) -> None:
    response = api.send(
        ApiKey.TXN_OFFSET_COMMIT, 5, offsets_of("t", "missing", group_id=""), large=True
    ).response
    assert [one.error_code for topic in response.topics for one in topic.partitions] == [
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_what_waits_for_its_record_is_parked(api: Api) -> None:
    """Only a large commit is not: all its batches are written, even if the client leaves."""
    api.transactions.owner()
    api.add(3, 1000, 0, ("t", 0))
    api.add_offsets(4, 1000, 0)
    api.transactions.log.hold = api.log.hold = True
    init = InitProducerIdRequest(transactional_id="other", transaction_timeout_ms=1000)
    offsets = offsets_of("t")
    held = [
        api.send(ApiKey.TXN_OFFSET_COMMIT, 4, offsets),
        api.send(ApiKey.INIT_PRODUCER_ID, 5, init),
        api.send(ApiKey.END_TXN, 4, commit_of()),
    ]
    large = api.send(ApiKey.TXN_OFFSET_COMMIT, 4, offsets, large=True)
    assert all(later.parked for later in held)
    assert not large.parked
    api.log.release()
    api.transactions.log.release()
    assert [later.done for later in held] == [True] * 3
    assert large.done


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS])
def test_s_txn_5_offsets_follow_their_partition_even_if_the_client_has_left(
    api: Api, code: ErrorCode
) -> None:
    """From v5 on the commit adds the partition, and no turn lies between the two records."""
    api.transactions.owner()
    api.transactions.log.hold = True
    commit = api.send(ApiKey.TXN_OFFSET_COMMIT, 5, offsets_of("t"))
    assert commit.parked
    commit.leave()
    api.transactions.log.release(code)
    assert len(api.log.all_records()) == (code is ErrorCode.NONE)


def test_an_end_is_carried_out_even_if_the_client_has_left(api: Api) -> None:
    api.transactions.owner()
    api.add(3, 1000, 0, ("t", 0))
    api.transactions.log.hold = True
    end = api.send(ApiKey.END_TXN, 4, commit_of())
    end.leave()
    api.transactions.log.hold = False
    api.transactions.log.release()
    assert len(api.transactions.markers.written) == 1
    assert api.transactions.state() is TransactionState.COMPLETE_COMMIT


@pytest.mark.parametrize("version", range(4))
def test_s_txn_4_add_partitions(api: Api, version: int) -> None:
    owner = api.transactions.owner()
    assert api.add(version, 1000, 0, ("t", 0), ("nope", 0), ("t", 9)) == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert api.add(version, 1000, 0, ("t", 0), ("u", 0)) == [0, 0]
    assert api.transactions.value().partitions == {T0, TopicPartition("u", 0)}
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert api.add(version, owner.producer_id, 5, ("t", 0)) == [fenced]
    assert api.add(version, 7, 0, ("t", 0)) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]


@pytest.mark.parametrize("version", [4, 5])
def test_s_txn_7_brokers_add_and_verify_for_many_transactions(api: Api, version: int) -> None:
    api.transactions.owner("a")
    api.transactions.add(api.transactions.owner("b"), T0, transactional_id="b")
    request = AddPartitionsToTxnRequest(
        transactions=[
            batched("a", 1000, ("t", 0), ("u", 0)),
            batched("b", 1001, ("t", 0), ("t", 1), verify_only=True),
            batched("b", 1001, ("t", 0), ("nope", 0)),
            batched("unknown", 1001, ("t", 0), verify_only=True),
            batched("b", 7, ("t", 2)),
        ]
    )
    response = api.call(ApiKey.ADD_PARTITIONS_TO_TXN, version, request)
    assert response.error_code == 0
    assert [
        (
            result.transactional_id,
            [
                one.partition_error_code
                for t in result.topic_results
                for one in t.results_by_partition
            ],
        )
        for result in response.results_by_transaction
    ] == [
        ("a", [0, 0]),
        ("b", [0, ErrorCode.TRANSACTION_ABORTABLE]),
        ("b", [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]),
        ("unknown", [ErrorCode.INVALID_PRODUCER_ID_MAPPING]),
        ("b", [ErrorCode.INVALID_PRODUCER_ID_MAPPING]),
    ]
    added = api.transactions.value("a")
    assert added.partitions == {T0, TopicPartition("u", 0)}
    assert added.client_version == 2
    assert api.transactions.value("b").partitions == {T0}, "verification adds nothing"


def test_s_txn_7_the_answer_for_many_waits_for_all_of_them(api: Api) -> None:
    for name in "ab":
        api.transactions.owner(name)
    api.transactions.log.hold = True
    request = AddPartitionsToTxnRequest(
        transactions=[batched("a", 1000, ("t", 0)), batched("b", 1001, ("t", 0))]
    )
    later = api.send(ApiKey.ADD_PARTITIONS_TO_TXN, 5, request)
    assert not later.done
    api.transactions.log.release()
    assert [
        topic.results_by_partition[0].partition_error_code
        for result in later.response.results_by_transaction
        for topic in result.topic_results
    ] == [0, 0]
    nothing = api.call(ApiKey.ADD_PARTITIONS_TO_TXN, 5, AddPartitionsToTxnRequest(transactions=[]))
    assert list(nothing.results_by_transaction) == []


@pytest.mark.parametrize("version", range(6))
def test_s_txn_4_and_7_end(api: Api, version: int) -> None:
    api.transactions.owner()
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert api.end(version, 1000, 7).error_code == fenced
    assert api.end(version, 1000, 0).error_code == ErrorCode.INVALID_TXN_STATE
    api.add(3, 1000, 0, ("t", 0))
    response = api.end(version, 1000, 0)
    assert response.error_code == 0
    if version >= 5:
        assert (response.producer_id, response.producer_epoch) == (1000, 1)


@pytest.mark.parametrize("version", versions(ApiKey.TXN_OFFSET_COMMIT))
def test_s_txn_5_offsets_in_a_transaction(api: Api, version: int) -> None:
    api.transactions.owner()
    by_id = version >= 6
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if version < 5:
        refused = ErrorCode.TRANSACTION_ABORTABLE if version >= 4 else ErrorCode.INVALID_TXN_STATE
        assert api.commit(version, 1000, 0) == [refused, unknown]
        assert api.add_offsets(min(version, 4), 1000, 0) == 0
    assert api.commit(version, 1000, 0) == [0, unknown]
    partition = TopicPartition("__consumer_offsets", api.coordinator.partition_for("g"))
    assert api.transactions.value().partitions == {partition}
    too_long = api.commit(version, 1000, 0, metadata="x" * 5000)
    assert too_long == [ErrorCode.OFFSET_METADATA_TOO_LARGE, unknown]
    assert api.commit(version, 1000, 3)[0] == ErrorCode.INVALID_PRODUCER_EPOCH
    assert api.committed() is None
    api.coordinator.on_marker(partition.partition, 1000, commit=True)
    assert api.committed() == 5


@pytest.mark.parametrize("version", [1, 2, 5])
def test_s_txn_5_while_the_last_transaction_is_completed(api: Api, version: int) -> None:
    owner = api.transactions.owner()
    api.transactions.add(owner, T0)
    api.transactions.markers.hold = True
    api.transactions.end(owner)
    told = (
        ErrorCode.CONCURRENT_TRANSACTIONS if version >= 5 else ErrorCode.COORDINATOR_NOT_AVAILABLE
    )
    assert api.commit(version, 1000, 0)[0] == told


def marked(markers: MemoryMarkers, version: int, partitions: int, **fields: int) -> list[int]:
    """Ask for a marker of an abort in so many partitions; return their codes."""
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=list(range(partitions)))
    marker = WritableTxnMarker(topics=[topic], **fields)
    request = WriteTxnMarkersRequest(markers=[marker])
    response = call(WriteTxnMarkersHandler(markers), ApiKey.WRITE_TXN_MARKERS, version, request)
    return [one.error_code for one in response.markers[0].topics[0].partitions]


@pytest.mark.parametrize(
    "refusal",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    ],
)
def test_a_refused_marker_is_one_that_kafkas_coordinator_repeats(refusal: ErrorCode) -> None:
    markers = MemoryMarkers()
    markers.refusals = {TopicPartition("t", 0): refusal}
    codes = marked(markers, 1, 1, producer_id=5, producer_epoch=1, coordinator_epoch=3)
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


@pytest.mark.parametrize("version", range(3))
def test_s_txn_2_markers_by_an_administrator(version: int) -> None:
    markers = MemoryMarkers()
    markers.refusals = {TopicPartition("t", 1): ErrorCode.NOT_LEADER_OR_FOLLOWER}
    codes = marked(
        markers,
        version,
        2,
        producer_id=5,
        producer_epoch=1,
        coordinator_epoch=3,
        transaction_version=2,
    )
    assert codes == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    [(tp, marker)] = markers.written
    assert (tp, marker.coordinator_epoch, marker.commit) == (T0, 3, False)
    assert marker.transaction_version == (2 if version >= 2 else 0)


@pytest.mark.parametrize("version", range(3))
def test_kip_664_list(api: Api, version: int) -> None:
    harness = api.transactions
    for name in ("idle", "open-1", "open-2"):
        owner = harness.owner(name)
        if name != "idle":
            harness.add(owner, T0, transactional_id=name)

    def listed(**filters: Any) -> tuple[Any, set[str]]:
        response = api.call(ApiKey.LIST_TRANSACTIONS, version, ListTransactionsRequest(**filters))
        names = {one.transactional_id for one in response.transaction_states}
        return response, names

    assert listed()[1] == {"idle", "open-1", "open-2"}
    assert listed(state_filters=["Ongoing"])[1] == {"open-1", "open-2"}
    assert listed(producer_id_filters=[1000])[1] == {"idle"}
    response, names = listed(state_filters=["Bogus"])
    assert (list(response.unknown_state_filters), names) == (["Bogus"], set())
    if version >= 1:
        api.clock.advance(5)
        assert listed(duration_filter=1_000, state_filters=["Ongoing"])[1] == {"open-1", "open-2"}
        assert listed(duration_filter=10_000, state_filters=["Ongoing"])[1] == set()
    if version >= 2:
        assert listed(transactional_id_pattern="open-.*")[1] == {"open-1", "open-2"}
        assert listed(transactional_id_pattern="open")[1] == set()
        for bad in ("(", "a{1001}", "(?=a)", "((((a{100}){100}){100}){100})"):
            response, _ = listed(transactional_id_pattern=bad)
            assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION, bad


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*(a*)*(a*)*b"])
def test_kip_1152_a_hostile_pattern_does_not_stall_the_event_loop(api: Api, pattern: str) -> None:
    """Each of these takes a backtracking matcher longer than the test run for a single id."""
    for number in range(100):
        api.transactions.owner("a" * 100 + str(number))
    request = ListTransactionsRequest(transactional_id_pattern=pattern)
    began = time.process_time()
    response = api.call(ApiKey.LIST_TRANSACTIONS, 2, request)
    assert time.process_time() - began < 20
    assert (response.error_code, list(response.transaction_states)) == (0, [])


def test_kip_664_describe(api: Api) -> None:
    api.transactions.owner()
    api.add(3, 1000, 0, ("t", 2), ("t", 0))
    request = DescribeTransactionsRequest(transactional_ids=["id", "unknown", ""])
    response = api.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)
    found, unknown, empty = response.transaction_states
    assert (found.transaction_state, found.producer_id, found.producer_epoch) == (
        "Ongoing",
        1000,
        0,
    )
    assert [(topic.topic, list(topic.partitions)) for topic in found.topics] == [("t", [0, 2])]
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("partitions", [2, 40])  # 40: written in turns
@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, 0), (5, -1), (-(2**63), -1)])
def test_a_marker_of_no_producer_is_not_written(
    producer_id: int, epoch: int, partitions: int
) -> None:
    markers = MemoryMarkers()
    codes = marked(markers, 1, partitions, producer_id=producer_id, producer_epoch=epoch)
    assert codes == [ErrorCode.INVALID_REQUEST] * partitions
    assert markers.written == []
