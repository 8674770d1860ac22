"""A group of another kind stands beside the classic ones and keeps the contract of every group."""

import pytest

from broker.coordinator.group.data.records import GroupMetadataRecord, GroupRecord, OffsetRecord
from broker.coordinator.group.data.serde import decode_record
from broker.coordinator.group.data.values import (
    CommitRequest,
    DescribedGroup,
    DescribedMember,
    ListedGroup,
)
from broker.coordinator.group.decision import GroupDecision, session_timer
from broker.coordinator.group.table.group import ExpiryBase, Group
from protocol.errors import ErrorCode, KafkaError
from storage.waits import at_once
from tests.support.group_harness import GroupHarness

CHECK_MS = 600_000
SESSION_MS = 45_000


class EpochGroup:
    """A group like those of KIP-848: each member has an epoch of its own, and commits with it."""

    def __init__(self, group_id: str, *, topics: frozenset[str] = frozenset()) -> None:
        self.group_id = group_id
        self.epochs: dict[str, int] = {}
        self.topics = topics
        self.state_timestamp_ms: int | None = 0
        self.timers_ended = False

    @property
    def state_name(self) -> str:
        return "Reconciling" if self.epochs else "Empty"

    @property
    def member_count(self) -> int:
        return len(self.epochs)

    @property
    def is_vacant(self) -> bool:
        return not self.epochs

    @property
    def expiry_base(self) -> ExpiryBase:
        return ExpiryBase.COMMIT if self.epochs else ExpiryBase.GROUP_EMPTY

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topics

    def check_commit(self, request: CommitRequest, out: GroupDecision) -> None:
        self.check_commit_in_transaction(request)
        out.schedule(session_timer(self.group_id, request.member_id, SESSION_MS))

    def check_commit_in_transaction(self, request: CommitRequest) -> None:
        epoch = self.epochs.get(request.member_id)
        if epoch is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if epoch != request.generation:
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)

    def check_offset_delete(self) -> None:
        pass

    def check_delete(self) -> None:
        if self.epochs:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self) -> list[GroupRecord]:
        return [GroupMetadataRecord(self.group_id, None)]

    def gone(self, out: GroupDecision) -> None:
        self.timers_ended = True

    def describe(self) -> DescribedGroup:
        members = tuple(
            DescribedMember(
                member_id=member_id,
                instance_id=None,
                client_id="c",
                client_host="/h",
                metadata=b"",
                assignment=b"",
            )
            for member_id in self.epochs
        )
        return DescribedGroup(group_id=self.group_id, state=self.state_name, members=members)

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id,
            protocol_type="consumer",
            state=self.state_name,
            type="consumer",
        )


@pytest.fixture
def groups() -> GroupHarness:
    return GroupHarness(retention_ms=2 * CHECK_MS, partition_count=1)


@pytest.fixture
def other(groups: GroupHarness) -> EpochGroup:
    """The group "g", with the member "m" in epoch 3."""
    group = EpochGroup("g", topics=frozenset({"t"}))
    group.epochs["m"] = 3
    kind: Group = group
    groups.shard().groups.put(kind)
    return group


def test_a_commit_is_the_kinds_to_refuse(groups: GroupHarness, other: EpochGroup) -> None:
    stale = groups.commit(1, member_id="m", generation=2)
    assert stale.reply is ErrorCode.STALE_MEMBER_EPOCH
    assert groups.commit(1).reply is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.commit(1, member_id="m", generation=3).reply is ErrorCode.NONE
    assert groups.committed() == 1
    assert ("session", "g", "m") in groups.coordinator._timers


def test_a_commit_in_a_transaction_too(groups: GroupHarness, other: EpochGroup) -> None:
    stale = groups.commit_in_transaction(7, member_id="m", generation=2)
    assert stale.reply is ErrorCode.STALE_MEMBER_EPOCH
    done = groups.commit_in_transaction(7, member_id="m", generation=3)
    assert done.reply is ErrorCode.NONE
    groups.coordinator.on_marker(0, 9, commit=True)
    assert groups.committed() == 7


def test_it_is_described_listed_and_counted_beside_classic_ones(
    groups: GroupHarness, other: EpochGroup
) -> None:
    groups.commit(1, group="simple")
    described = groups.coordinator.describe("g")
    assert (described.state, [one.member_id for one in described.members]) == ("Reconciling", ["m"])
    listed = {one.group_id: (one.type, one.state) for one in groups.coordinator.list_groups()}
    assert listed == {"g": ("consumer", "Reconciling"), "simple": ("classic", "Empty")}
    counted = groups.statistics().groups
    assert (counted["Reconciling"], counted["Empty"], counted["Stable"]) == (1, 1, 0)
    assert [one.members for one in groups.coordinator.groups_at_a_time()] == [1, 0]


def test_classic_requests_do_not_know_its_members(groups: GroupHarness, other: EpochGroup) -> None:
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.join().reply.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.sync("m", 3).reply.error is unknown
    assert groups.heartbeat("m", 3) is unknown
    assert [one.error for one in groups.leave("m").members] == [unknown]
    groups.coordinator.on_resigned(0)
    assert groups.shard().group("g") is None


def test_it_is_deleted_with_its_own_tombstones(groups: GroupHarness, other: EpochGroup) -> None:
    groups.commit(1, member_id="m", generation=3)
    assert groups.delete_group().reply is ErrorCode.NON_EMPTY_GROUP
    other.epochs.clear()
    groups.log.hold = True
    done = groups.delete_group()
    assert groups.commit(2).reply is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.coordinator.describe("g").error is ErrorCode.GROUP_ID_NOT_FOUND
    assert not other.timers_ended
    groups.log.release()
    assert done.reply is ErrorCode.NONE
    assert other.timers_ended
    assert groups.shard().group("g") is None
    assert groups.committed() is None


def test_its_offsets_expire_as_it_says_and_it_vanishes_with_them(
    groups: GroupHarness, other: EpochGroup
) -> None:
    groups.commit(1, member_id="m", generation=3)
    groups.commit(1, topic="u", member_id="m", generation=3)
    groups.advance_ms(4 * CHECK_MS)
    assert (groups.committed("t"), groups.committed("u")) == (1, None), "t is subscribed to"
    other.epochs.clear()
    other.topics = frozenset()
    other.state_timestamp_ms = groups.clock.wall_ms()
    groups.advance_ms(CHECK_MS)
    assert groups.committed("t") == 1
    groups.advance_ms(2 * CHECK_MS)
    assert groups.committed("t") is None
    assert groups.shard().group("g") is None
    last = [decode_record(one.key or b"", one.value) for one in groups.log.all_records()][-2:]
    assert last == [OffsetRecord(("g", "t", 0), None), GroupMetadataRecord("g", None)]


def test_offset_delete_asks_it_for_its_subscriptions(
    groups: GroupHarness, other: EpochGroup
) -> None:
    groups.commit(1, member_id="m", generation=3)
    groups.commit(1, topic="u", member_id="m", generation=3)
    wanted = [("t", 0), ("u", 0), ("u", 1)]
    code, results = at_once(groups.coordinator.delete_offsets("g", wanted))
    codes = [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE, ErrorCode.NONE]
    assert results == dict(zip(wanted, codes, strict=True))
    assert code is ErrorCode.NONE
    assert (groups.committed("t"), groups.committed("u")) == (1, None)
