"""S-GRP-3: static members come back, are fenced, and are removed by name."""

import pytest

from broker.coordinator.group.classic.state import GroupState
from protocol.errors import ErrorCode
from tests.support.group_harness import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    GroupHarness,
    subscription,
)


def static_group(groups: GroupHarness) -> tuple[int, str, str]:
    """(generation, leader, follower) of instances "a" and "b", stable."""
    joins = [groups.join(instance="a", require_id=True), groups.join(instance="b")]
    groups.advance_ms(2 * INITIAL_DELAY_MS)
    leader, follower = (one.reply.member_id for one in joins)
    groups.sync(follower, 1, instance="b")
    groups.sync(leader, 1, {leader: b"A", follower: b"B"}, instance="a")
    assert groups.group().state is GroupState.STABLE
    return 1, leader, follower


def test_s_grp_3_a_static_member_needs_no_second_join(groups: GroupHarness) -> None:
    joined = groups.join(instance="a", require_id=True)
    groups.advance_ms(INITIAL_DELAY_MS)
    assert joined.reply.error is ErrorCode.NONE
    assert joined.reply.member_id.startswith("a-")
    assert joined.reply.members[0].instance_id == "a"


def test_s_grp_3_a_follower_comes_back_without_a_rebalance(groups: GroupHarness) -> None:
    generation, leader, follower = static_group(groups)
    back = groups.join(instance="b")
    assert back.reply.error is ErrorCode.NONE
    assert back.reply.generation == generation
    assert back.reply.leader == leader
    assert back.reply.member_id not in (leader, follower)
    assert groups.sync(back.reply.member_id, generation, instance="b").reply.assignment == b"B"
    assert groups.heartbeat(leader, generation) is ErrorCode.NONE
    assert groups.group().state is GroupState.STABLE


def test_s_grp_3_the_replacement_is_written(groups: GroupHarness) -> None:
    static_group(groups)
    back = groups.join(instance="b")
    again = groups.restarted()
    assert again.group().static_members["b"] == back.reply.member_id


def test_s_grp_3_the_old_id_is_fenced(groups: GroupHarness) -> None:
    generation, _, follower = static_group(groups)
    groups.join(instance="b")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert groups.heartbeat(follower, generation, instance="b") is fenced
    assert groups.sync(follower, generation, instance="b").reply.error is fenced
    assert groups.join(follower, instance="b").reply.error is fenced
    commit = groups.commit(1, member_id=follower, generation=generation, instance="b")
    assert commit.reply is fenced
    assert groups.leave((follower, "b")).members[0].error is fenced


def test_s_grp_3_an_unknown_instance(groups: GroupHarness) -> None:
    generation, leader, _ = static_group(groups)
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat(leader, generation, instance="x") is unknown
    assert groups.join(leader, instance="x").reply.error is unknown
    assert groups.sync(leader, generation, instance="x").reply.error is unknown


def test_s_grp_3_a_returning_leader_below_v9_follows_its_old_id(groups: GroupHarness) -> None:
    generation, leader, _ = static_group(groups)
    back = groups.join(instance="a")
    assert back.reply.generation == generation
    assert back.reply.leader == leader  # not its new id: it must not assign
    assert back.reply.members == ()
    assert groups.group().leader_id == back.reply.member_id


def test_s_grp_3_a_returning_leader_may_skip_the_assignment_from_v9(groups: GroupHarness) -> None:
    _, _, follower = static_group(groups)
    back = groups.join(instance="a", skip=True)
    assert back.reply.skip_assignment
    assert back.reply.leader == back.reply.member_id
    assert {one.member_id for one in back.reply.members} == {back.reply.member_id, follower}
    follower_back = groups.join(instance="b", skip=True)
    assert not follower_back.reply.skip_assignment
    assert follower_back.reply.members == ()


def test_s_grp_3_other_metadata_is_taken_over_without_a_rebalance(groups: GroupHarness) -> None:
    static_group(groups)
    back = groups.join(instance="b", protocols=(("range", subscription("other")),))
    assert back.reply.error is ErrorCode.NONE
    member = groups.group().members[back.reply.member_id]
    assert member.metadata("range") == subscription("other")


def test_s_grp_3_a_change_of_the_groups_protocol_makes_a_rebalance() -> None:
    groups = GroupHarness()
    both = (("range", subscription("t")), ("sticky", subscription("t")))
    joins = [groups.join(instance=one, protocols=both) for one in "ab"]
    groups.advance_ms(2 * INITIAL_DELAY_MS)
    leader = joins[0].reply.member_id
    groups.sync(joins[1].reply.member_id, 1)
    groups.sync(leader, 1, {})
    back = groups.join(instance="b", protocols=(("sticky", subscription("t")),))
    assert not back.done
    assert groups.group().state is GroupState.PREPARING_REBALANCE


def test_s_grp_3_coming_back_while_the_leader_assigns_starts_over(groups: GroupHarness) -> None:
    joins = [groups.join(instance="a"), groups.join(instance="b")]
    groups.advance_ms(2 * INITIAL_DELAY_MS)
    parked = groups.sync(joins[1].reply.member_id, 1, instance="b")
    back = groups.join(instance="b")
    assert parked.reply.error is ErrorCode.FENCED_INSTANCE_ID
    assert not back.done
    assert groups.group().state is GroupState.PREPARING_REBALANCE
    led = groups.join(joins[0].reply.member_id, instance="a")
    assert led.reply.generation == back.reply.generation == 2


def test_s_grp_3_a_duplicate_instance_fences_the_parked_join(groups: GroupHarness) -> None:
    one = groups.join(instance="a")
    two = groups.join(instance="a")
    assert one.reply.error is ErrorCode.FENCED_INSTANCE_ID
    groups.advance_ms(2 * INITIAL_DELAY_MS)
    assert two.reply.error is ErrorCode.NONE
    assert len(groups.group().members) == 1


def test_s_grp_3_a_failed_write_gives_the_old_id_back(groups: GroupHarness) -> None:
    generation, _, follower = static_group(groups)
    groups.log.fail_with = ErrorCode.REQUEST_TIMED_OUT
    back = groups.join(instance="b", protocols=(("range", subscription("x")),), session_ms=99_000)
    assert back.reply.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.heartbeat(follower, generation, instance="b") is ErrorCode.NONE
    member = groups.group().members[follower]
    assert member.metadata("range") == subscription("t")
    assert member.session_timeout_ms == SESSION_MS


def test_a_rebalance_that_overtakes_the_write_answers_the_returning_member(
    groups: GroupHarness,
) -> None:
    _, leader, _ = static_group(groups)
    groups.log.hold = True
    back = groups.join(instance="b")
    led = groups.join(leader, instance="a")
    groups.log.release()
    assert back.reply.generation == led.reply.generation == 2


def test_s_grp_3_a_static_member_is_not_thrown_out_by_a_rebalance(groups: GroupHarness) -> None:
    generation, leader, follower = static_group(groups)
    groups.join(leader, instance="a")
    for _ in range(REBALANCE_MS // 5_000):
        groups.advance_ms(5_000)
        groups.heartbeat(follower, generation, instance="b")
    assert groups.group().generation == generation + 1
    assert follower in groups.group().members  # until its session ends


def test_s_grp_3_a_group_of_absent_static_members_waits_for_their_sessions() -> None:
    groups = GroupHarness()
    joins = [groups.join(instance=one, session_ms=200_000) for one in "ab"]
    groups.advance_ms(2 * INITIAL_DELAY_MS)
    leader, follower = (one.reply.member_id for one in joins)
    groups.sync(follower, 1)
    groups.sync(leader, 1, {})
    groups.leave(("", "a"))
    groups.advance_ms(2 * REBALANCE_MS)
    assert groups.group().state is GroupState.PREPARING_REBALANCE
    groups.advance_ms(REBALANCE_MS + 50_000)
    assert groups.group().state is GroupState.EMPTY


def test_s_grp_3_batch_leave_by_instance_id(groups: GroupHarness) -> None:
    _, leader, follower = static_group(groups)
    reply = groups.leave(("", "b"), ("", "nobody"), ("", None), (leader, "b"), (leader, "a"))
    assert [one.error for one in reply.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,  # "b" has just left
        ErrorCode.NONE,
    ]
    assert groups.group().state is GroupState.EMPTY
    assert follower not in groups.group().members


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT])
def test_s_grp_3_a_second_return_has_its_own_id_and_answer(
    groups: GroupHarness, code: ErrorCode
) -> None:
    """Whatever comes of the record of the first return, which followers copy meanwhile."""
    generation, _, _ = static_group(groups)
    groups.log.hold = True
    first = groups.join(instance="b")
    second = groups.join(instance="b")
    assert first.reply.error is ErrorCode.FENCED_INSTANCE_ID
    groups.log.release_one(code)
    assert not second.done
    groups.log.release()
    assert second.reply.error is ErrorCode.NONE
    synced = groups.sync(second.reply.member_id, generation, instance="b")
    assert (synced.reply.error, synced.reply.assignment) == (ErrorCode.NONE, b"B")
