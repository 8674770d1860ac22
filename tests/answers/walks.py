"""Walks: they reach states that single requests do not reach, and compare the answers of each step.

A walk is a list of steps drawn from a seed. The request of a step is made for each broker from that
broker's earlier answers (session ids, member ids, producers), so that both get the same request.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from protocol.api_keys import ApiKey
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.records.builder import build_batch
from tests.frames.valid import Names


@dataclass(slots=True)
class State:
    """The values of one broker's answers so far."""

    names: Names
    session: int = 0
    epoch: int = 0
    """The next epoch of the fetch session."""
    member: str = ""
    generation: int = -1
    producer: tuple[int, int] = (-1, -1)
    older: tuple[int, int] = (-1, -1)
    """The producer before the last InitProducerId."""
    sequence: dict[int, int] = field(default_factory=dict)
    page: tuple[str, int] | None = None
    """The begin of the next page of topics."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request."""

    key: ApiKey
    version: int
    text: str
    request: Callable[[State], Any]
    learn: Callable[[State, Any], None] = lambda state, answer: None


Walk = Callable[[Random], Iterator[Step]]


def produce_step(rng: Random, *, transactional: bool = False) -> Step:
    partition = rng.choice((0, 0, 0, 1))
    count = rng.choice((1, 1, 2, 5))
    late = rng.choice((0, 0, 0, -5_000, 7_000, 1_000_000))
    # The sequence is the next one, a repeated one, or one that leaves a hole.
    off = rng.choice((0, 0, 0, 0, 0, -1, 3)) if transactional else 0
    old_epoch = transactional and rng.random() < 0.1
    version = rng.choice((9, 11) if transactional else (9, 11, 13))

    def request(state: State) -> Any:
        producer = {}
        if transactional:
            producer_id, epoch = (
                state.older if old_epoch and state.older[0] >= 0 else state.producer
            )
            producer = {
                "producer_id": producer_id,
                "producer_epoch": epoch,
                "base_sequence": max(0, state.sequence.get(partition, 0) + off),
                "transactional": True,
            }
        now = state.names.timestamp_ms + late
        batch = build_batch([(now + n, b"k", b"v", ()) for n in range(count)], **producer)
        data = [PartitionProduceData(index=partition, records=batch)]
        return ProduceRequest(
            acks=-1,
            timeout_ms=5_000,
            transactional_id=state.names.transactional_id if transactional else None,
            topic_data=[
                TopicProduceData(
                    name=state.names.topic, topic_id=state.names.topic_id, partition_data=data
                )
            ],
        )

    def learn(state: State, answer: Any) -> None:
        told = answer.responses[0].partition_responses[0]
        if transactional and told.error_code == 0 and off == 0 and not old_epoch:
            state.sequence[partition] = state.sequence.get(partition, 0) + count

    text = f"produce {count} to {partition} late={late} sequence{off:+} old={old_epoch}"
    return Step(ApiKey.PRODUCE, version, text, request, learn)


def fetch_step(rng: Random) -> Step:
    offset = rng.choice((0, 0, 1, 3, 8, 100, -1))
    isolation = rng.choice((0, 1))
    size = rng.choice((1 << 20, 1 << 20, 200, 0))
    what = rng.choice(("none", "open", "more", "more", "more", "forget", "close", "wrong"))
    partition = rng.choice((0, 0, 1))

    def request(state: State) -> Any:
        session, epoch = 0, -1
        if what == "open":
            session, epoch = 0, 0
        elif what == "close":
            session, epoch = state.session, -1
        elif what in ("more", "forget"):
            session, epoch = state.session, state.epoch
        elif what == "wrong":
            session, epoch = state.session, state.epoch + 5
        asked = FetchPartition(
            partition=partition,
            fetch_offset=offset,
            partition_max_bytes=size,
            current_leader_epoch=-1,
            log_start_offset=-1,
        )
        named = {"topic": state.names.topic, "topic_id": state.names.topic_id}
        forgotten = [ForgottenTopic(**named, partitions=[partition])]
        return FetchRequest(
            replica_id=-1,
            max_bytes=1 << 20,
            isolation_level=isolation,
            session_id=session,
            session_epoch=epoch,
            topics=[] if what == "forget" else [FetchTopic(**named, partitions=[asked])],
            forgotten_topics_data=forgotten if what == "forget" else [],
        )

    def learn(state: State, answer: Any) -> None:
        if what == "open":
            state.session, state.epoch = answer.session_id, 1
        elif what in ("more", "forget") and answer.error_code == 0:
            state.epoch += 1

    text = f"fetch {what} {partition} from {offset} isolation={isolation} max={size}"
    return Step(ApiKey.FETCH, rng.choice((11, 12, 18, 18)), text, request, learn)


def delete_records_step(rng: Random) -> Step:
    offset = rng.choice((0, 1, 3, 6, -1, 1_000))

    def request(state: State) -> Any:
        partition = DeleteRecordsPartition(partition_index=0, offset=offset)
        topic = DeleteRecordsTopic(name=state.names.topic, partitions=[partition])
        return DeleteRecordsRequest(topics=[topic], timeout_ms=5_000)

    return Step(ApiKey.DELETE_RECORDS, 2, f"delete records before {offset}", request)


def list_offsets_step(rng: Random) -> Step:
    version = rng.choice((1, 5, 7, 10))
    timestamp = rng.choice((-1, -2, 0, None, None, 1_700_000_000_001, 1_800_000_000_000))
    isolation = rng.choice((0, 1))
    partition = rng.choice((0, 0, 1))

    def request(state: State) -> Any:
        when = state.names.timestamp_ms if timestamp is None else timestamp
        asked = ListOffsetsPartition(
            partition_index=partition, timestamp=when, current_leader_epoch=-1
        )
        topic = ListOffsetsTopic(name=state.names.topic, partitions=[asked])
        return ListOffsetsRequest(
            replica_id=-1, isolation_level=isolation, topics=[topic], timeout_ms=5_000
        )

    text = f"offsets of {partition} at {timestamp} isolation={isolation}"
    return Step(ApiKey.LIST_OFFSETS, version, text, request)


def epoch_step(rng: Random) -> Step:
    epoch = rng.choice((0, 1, -1))

    def request(state: State) -> Any:
        asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
        topic = OffsetForLeaderTopic(topic=state.names.topic, partitions=[asked])
        return OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])

    return Step(ApiKey.OFFSET_FOR_LEADER_EPOCH, 3, f"end of epoch {epoch}", request)


def log_walk(rng: Random) -> Iterator[Step]:
    """Records, sessions, deletions, offsets."""
    steps = (
        produce_step,
        fetch_step,
        fetch_step,
        delete_records_step,
        list_offsets_step,
        epoch_step,
    )
    while True:
        yield rng.choice(steps)(rng)


def group_walk(rng: Random) -> Iterator[Step]:
    """One member and its group; static or not."""
    static = rng.choice((None, "instance"))

    def join(state: State) -> Any:
        return JoinGroupRequest(
            group_id=state.names.group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=state.member,
            group_instance_id=static,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )

    def joined(state: State, answer: Any) -> None:
        if answer.member_id:
            state.member = answer.member_id
        if answer.error_code == 0:
            state.generation = answer.generation_id

    def off(state: State, by: int) -> int:
        return state.generation + by

    while True:
        by = rng.choice((0, 0, 0, 0, -1, 5))
        wrong = rng.random() < 0.1
        kind = rng.choice(
            ("join", "sync", "beat", "commit", "fetch", "leave", "describe", "delete")
        )

        def member(state: State, wrong: bool = wrong) -> str:
            return "nobody" if wrong else state.member

        if kind == "join":
            yield Step(ApiKey.JOIN_GROUP, 5, f"join {static}", join, joined)
        elif kind == "sync":
            yield Step(
                ApiKey.SYNC_GROUP,
                3,
                f"sync {by} {wrong}",
                lambda s, by=by, member=member: SyncGroupRequest(
                    group_id=s.names.group,
                    generation_id=off(s, by),
                    member_id=member(s),
                    group_instance_id=static,
                    assignments=[
                        SyncGroupRequestAssignment(member_id=s.member, assignment=b"mine")
                    ],
                ),
            )
        elif kind == "beat":
            yield Step(
                ApiKey.HEARTBEAT,
                3,
                f"heartbeat {by} {wrong}",
                lambda s, by=by, member=member: HeartbeatRequest(
                    group_id=s.names.group,
                    generation_id=off(s, by),
                    member_id=member(s),
                    group_instance_id=static,
                ),
            )
        elif kind == "commit":
            simple = rng.random() < 0.3

            def commit(s: State, by: int = by, member: Any = member, simple: bool = simple) -> Any:
                one = OffsetCommitRequestPartition(
                    partition_index=0,
                    committed_offset=4,
                    committed_leader_epoch=0,
                    committed_metadata="m",
                )
                return OffsetCommitRequest(
                    group_id=s.names.group,
                    generation_id_or_member_epoch=-1 if simple else off(s, by),
                    member_id="" if simple else member(s),
                    group_instance_id=None if simple else static,
                    topics=[OffsetCommitRequestTopic(name=s.names.topic, partitions=[one])],
                )

            yield Step(ApiKey.OFFSET_COMMIT, 7, f"commit {by} {wrong} {simple}", commit)
        elif kind == "fetch":
            yield Step(
                ApiKey.OFFSET_FETCH,
                5,
                "fetch offsets",
                lambda s: OffsetFetchRequest(
                    group_id=s.names.group,
                    topics=[OffsetFetchRequestTopic(name=s.names.topic, partition_indexes=[0, 1])],
                ),
            )
        elif kind == "leave" and rng.random() < 0.5:
            yield Step(
                ApiKey.LEAVE_GROUP,
                3,
                f"leave {wrong}",
                lambda s, member=member: LeaveGroupRequest(
                    group_id=s.names.group,
                    members=[MemberIdentity(member_id=member(s), group_instance_id=static)],
                ),
            )
        elif kind == "describe":
            yield Step(
                ApiKey.DESCRIBE_GROUPS,
                4,
                "describe",
                lambda s: DescribeGroupsRequest(groups=[s.names.group]),
            )
        elif kind == "delete":
            yield Step(
                ApiKey.DELETE_GROUPS,
                3,
                "delete",
                lambda s: DeleteGroupsRequest(groups_names=[s.names.group]),
            )


def txn_commit_step(rng: Random, who: Callable[[State], tuple[int, int]], text: str) -> Step:
    unknown = rng.random() < 0.2

    def request(s: State) -> Any:
        one = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=4)
        topic = TxnOffsetCommitRequestTopic(
            name="unknown" if unknown else s.names.topic,
            topic_id=b"?" * 16 if unknown else s.names.topic_id,
            partitions=[one],
        )
        return TxnOffsetCommitRequest(
            transactional_id=s.names.transactional_id,
            group_id=s.names.group,
            producer_id=who(s)[0],
            producer_epoch=who(s)[1],
            topics=[topic],
        )

    return Step(
        ApiKey.TXN_OFFSET_COMMIT, rng.choice((3, 6)), f"commit unknown={unknown} {text}", request
    )


def transaction_walk(rng: Random) -> Iterator[Step]:
    """One transactional id, its owners and what they write."""

    def init(bump: bool) -> Step:
        def request(s: State) -> Any:
            producer_id, epoch = s.producer if bump else (-1, -1)
            return InitProducerIdRequest(
                transactional_id=s.names.transactional_id,
                transaction_timeout_ms=900_000,
                producer_id=producer_id,
                producer_epoch=epoch,
            )

        def learn(s: State, answer: Any) -> None:
            if answer.error_code == 0:
                s.older, s.producer = s.producer, (answer.producer_id, answer.producer_epoch)
                s.sequence.clear()

        return Step(ApiKey.INIT_PRODUCER_ID, 4, f"init bump={bump}", request, learn)

    yield init(False)
    while True:
        kind = rng.choice(
            (
                "init",
                "bump",
                "add",
                "add",
                "offsets",
                "commit",
                "produce",
                "produce",
                "end",
                "end",
                "fetch",
            )
        )
        old = rng.random() < 0.1

        def who(s: State, old: bool = old) -> tuple[int, int]:
            return s.older if old and s.older[0] >= 0 else s.producer

        if kind in ("init", "bump"):
            if rng.random() < 0.4:
                yield init(kind == "bump")
        elif kind == "add":
            name = rng.choice((None, None, None, "unknown"))
            yield Step(
                ApiKey.ADD_PARTITIONS_TO_TXN,
                rng.choice((0, 2, 3)),
                f"add {name} old={old}",
                lambda s, who=who, name=name: AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=s.names.transactional_id,
                    v3_and_below_producer_id=who(s)[0],
                    v3_and_below_producer_epoch=who(s)[1],
                    v3_and_below_topics=[
                        AddPartitionsToTxnTopic(name=name or s.names.topic, partitions=[0, 1])
                    ],
                ),
            )
        elif kind == "offsets":
            yield Step(
                ApiKey.ADD_OFFSETS_TO_TXN,
                3,
                f"add offsets old={old}",
                lambda s, who=who: AddOffsetsToTxnRequest(
                    transactional_id=s.names.transactional_id,
                    producer_id=who(s)[0],
                    producer_epoch=who(s)[1],
                    group_id=s.names.group,
                ),
            )
        elif kind == "commit":
            yield txn_commit_step(rng, who, f"old={old}")
        elif kind == "produce":
            yield produce_step(rng, transactional=True)
        elif kind == "end":
            committed = rng.random() < 0.6
            yield Step(
                ApiKey.END_TXN,
                rng.choice((1, 3)),
                f"end commit={committed} old={old}",
                lambda s, who=who, committed=committed: EndTxnRequest(
                    transactional_id=s.names.transactional_id,
                    producer_id=who(s)[0],
                    producer_epoch=who(s)[1],
                    committed=committed,
                ),
            )
            yield Step(
                ApiKey.DESCRIBE_TRANSACTIONS,
                0,
                "describe",
                lambda s: DescribeTransactionsRequest(transactional_ids=[s.names.transactional_id]),
            )
        else:
            yield rng.choice((fetch_step, list_offsets_step))(rng)


ENDS_TRANSACTIONS = (ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN)
"""After these, markers are written when the answer is gone: what comes next would be a race."""
