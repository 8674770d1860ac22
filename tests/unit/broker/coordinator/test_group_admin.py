"""S-GRP-6: describing, listing and deleting groups and their offsets."""

import pytest

from broker.coordinator.group.coordinator import GroupCoordinator
from broker.coordinator.group.settings import GroupSettings
from protocol.errors import ErrorCode, KafkaError
from storage.waits import at_once
from tests.support.group_harness import INITIAL_DELAY_MS, SESSION_MS, GroupHarness
from tests.support.refusals import code_of


def delete_offsets(groups: GroupHarness, *wanted: tuple[str, int]) -> object:
    try:
        code, results = at_once(groups.coordinator.delete_offsets("g", wanted))
    except KafkaError as error:
        return error.code
    assert code is ErrorCode.NONE
    return results


def test_s_grp_6_describe_a_rebalancing_group_without_protocol(groups: GroupHarness) -> None:
    _, ids = groups.stable_group(2)
    groups.join(ids[0])
    described = groups.coordinator.describe("g")
    assert described.state == "PreparingRebalance"
    assert described.protocol_data == ""
    assert described.members[0].metadata == b""


def test_s_grp_6_only_empty_groups_can_be_deleted(groups: GroupHarness) -> None:
    assert groups.delete_group().reply is ErrorCode.GROUP_ID_NOT_FOUND
    generation, (member_id,) = groups.stable_group()
    groups.commit(1, member_id=member_id, generation=generation)
    assert groups.delete_group().reply is ErrorCode.NON_EMPTY_GROUP
    groups.advance_ms(SESSION_MS)
    assert groups.delete_group().reply is ErrorCode.NONE
    assert groups.shard().group("g") is None
    assert groups.committed() is None
    assert groups.delete_group().reply is ErrorCode.GROUP_ID_NOT_FOUND
    again = groups.restarted()
    assert again.shard().group("g") is None


@pytest.mark.parametrize("phase", ["preparing", "completing"])
def test_s_grp_6_a_rebalancing_group_cannot_be_deleted(groups: GroupHarness, phase: str) -> None:
    groups.join()
    if phase == "completing":
        groups.advance_ms(INITIAL_DELAY_MS)
    assert groups.delete_group().reply is ErrorCode.NON_EMPTY_GROUP


def test_s_grp_6_a_pending_member_does_not_keep_a_group_from_deletion(
    groups: GroupHarness,
) -> None:
    member_id = groups.join(require_id=True).reply.member_id
    assert groups.delete_group().reply is ErrorCode.NONE
    assert groups.join(member_id).reply.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert len(groups.coordinator._timers) == 0


def test_s_grp_6_a_commit_on_its_way_is_deleted_with_the_group(groups: GroupHarness) -> None:
    groups.commit(1)
    groups.log.hold = True
    commit = groups.commit(1, partition=1)
    done = groups.delete_group()
    groups.log.release()
    assert commit.reply is done.reply is ErrorCode.NONE
    assert groups.committed() is groups.committed(partition=1) is None
    assert groups.shard().group("g") is None
    assert groups.statistics().counters.deleted_offsets == 2


def test_s_grp_6_offset_delete_of_an_empty_group(groups: GroupHarness) -> None:
    groups.stable_group()
    groups.advance_ms(SESSION_MS)
    groups.commit(1)
    assert delete_offsets(groups, ("t", 0)) == {("t", 0): ErrorCode.NONE}
    assert groups.committed() is None


def test_s_grp_6_offset_delete_of_a_group_whose_subscriptions_cannot_be_read(
    groups: GroupHarness,
) -> None:
    assert delete_offsets(groups, ("t", 0)) is ErrorCode.GROUP_ID_NOT_FOUND
    groups.stable_group(protocol_type="connect", protocols=(("x", b""),))
    assert delete_offsets(groups, ("t", 0)) is ErrorCode.NON_EMPTY_GROUP


def test_after_shutdown_nothing_is_served(groups: GroupHarness) -> None:
    _, ids = groups.stable_group(2)
    parked = groups.join(ids[0])
    groups.coordinator.shutdown()
    not_available = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert parked.reply.error is not_available
    assert groups.heartbeat(ids[0], 1) is not_available
    assert groups.join().reply.error is not_available
    assert len(groups.coordinator._timers) == 0
    assert groups.deadlines.next_deadline() is None
    with pytest.raises(KafkaError):
        groups.coordinator.list_groups()


def test_before_the_start_nothing_is_served(groups: GroupHarness) -> None:
    """The log is not loaded yet, so a client that came now would find no offsets."""
    groups.commit(1)
    groups.coordinator = GroupCoordinator(
        GroupSettings(), groups.log, groups.deadlines, groups.clock, new_id=lambda: "id"
    )
    groups.coordinator.on_elected(groups.coordinator.partition_for("g"), 1)
    assert groups.join().reply.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert code_of(groups.coordinator.list_groups) is ErrorCode.COORDINATOR_NOT_AVAILABLE
