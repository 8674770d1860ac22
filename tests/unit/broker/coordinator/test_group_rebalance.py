"""S-GRP-1: how a group comes together and what makes it do so again."""

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

RANGE = ("range", subscription("t"))
STICKY = ("sticky", subscription("t"))


# ---- the initial delay


def test_s_grp_1_the_first_member_waits_for_the_initial_delay(groups: GroupHarness) -> None:
    joined = groups.join()
    groups.advance_ms(INITIAL_DELAY_MS - 1)
    assert not joined.done
    groups.advance_ms(1)
    assert joined.reply.error is ErrorCode.NONE
    assert joined.reply.generation == 1
    assert joined.reply.leader == joined.reply.member_id
    assert [one.member_id for one in joined.reply.members] == [joined.reply.member_id]
    assert joined.reply.protocol_name == "range"
    assert joined.reply.protocol_type == "consumer"


def test_s_grp_1_each_join_extends_the_initial_delay(groups: GroupHarness) -> None:
    first = groups.join()
    groups.advance_ms(INITIAL_DELAY_MS - 1)
    second = groups.join()
    groups.advance_ms(INITIAL_DELAY_MS)
    assert not first.done
    groups.advance_ms(1)
    assert first.done
    assert second.done
    assert first.reply.generation == second.reply.generation == 1


def test_s_grp_1_the_initial_delay_is_extended_up_to_the_rebalance_timeout() -> None:
    groups = GroupHarness()
    joins = [groups.join(rebalance_ms=7_000)]
    passed = 0
    while not joins[0].done and passed < 60_000:
        groups.advance_ms(500)
        passed += 500
        if not joins[0].done:
            joins.append(groups.join(rebalance_ms=7_000))
    assert 7_000 <= passed <= 7_000 + INITIAL_DELAY_MS
    assert all(one.reply.error is ErrorCode.NONE for one in joins)


def test_s_grp_1_everybody_gone_in_the_initial_delay_leaves_the_group_empty(
    groups: GroupHarness,
) -> None:
    joined = groups.join()
    member_id = next(iter(groups.group().members))
    groups.leave(member_id)
    assert joined.reply.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.group().state is GroupState.EMPTY


# ---- who may join


def test_a_protocol_that_a_member_names_twice_is_one(groups: GroupHarness) -> None:
    """Kafka counts it twice, and can never complete the join."""
    joined = groups.join(protocols=(("range", b"1"), ("range", b"2")))
    groups.advance_ms(INITIAL_DELAY_MS)
    assert joined.reply.error is ErrorCode.NONE
    assert joined.reply.protocol_name == "range"
    assert [one.metadata for one in joined.reply.members] == [b"1"]
    other = groups.join(protocols=(("range", b"3"),))
    assert not other.done
    again = groups.join(joined.reply.member_id, protocols=(("range", b"4"),))
    assert again.reply.error is other.reply.error is ErrorCode.NONE


def test_s_grp_1_session_timeout_bounds(groups: GroupHarness) -> None:
    for session_ms in (5_999, 1_800_001):
        refused = groups.join(session_ms=session_ms)
        assert refused.reply.error is ErrorCode.INVALID_SESSION_TIMEOUT
    for session_ms in (6_000, 1_800_000):
        assert not groups.join(session_ms=session_ms).done


def test_a_group_needs_a_name(groups: GroupHarness) -> None:
    assert groups.join(group="").reply.error is ErrorCode.INVALID_GROUP_ID
    assert groups.heartbeat("m", 1, group="") is ErrorCode.INVALID_GROUP_ID
    assert groups.sync("m", 1, group="").reply.error is ErrorCode.INVALID_GROUP_ID
    assert groups.leave("m", group="").error is ErrorCode.INVALID_GROUP_ID


def test_an_unknown_member_id_makes_no_group(groups: GroupHarness) -> None:
    assert groups.join("who").reply.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.shard().group("g") is None


def test_s_grp_1_inconsistent_protocols(groups: GroupHarness) -> None:
    inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    _, [member_id] = groups.stable_group(protocols=(RANGE,))
    assert groups.join(protocol_type="connect").reply.error is inconsistent
    for joining in ("", member_id):
        assert groups.join(joining, protocols=(STICKY,)).reply.error is inconsistent


@pytest.mark.parametrize(("kind", "protocols"), [("", (RANGE,)), ("consumer", ())])
def test_s_grp_1_no_protocol_at_all(
    groups: GroupHarness, kind: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    refused = groups.join(protocol_type=kind, protocols=protocols)
    assert refused.reply.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.shard().group("g") is None


def test_s_grp_1_group_max_size_in_a_stable_group() -> None:
    groups = GroupHarness(limits={"max_size": 2})
    _, ids = groups.stable_group(2)
    assert groups.join().reply.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.group().state is GroupState.STABLE
    assert not groups.join(ids[0]).done  # a member may always come back


def test_s_grp_1_group_max_size_while_preparing_counts_who_waits() -> None:
    groups = GroupHarness(limits={"max_size": 2})
    joined = [groups.join() for _ in range(4)]
    refused = [one for one in joined if one.done]
    assert [one.reply.error for one in refused] == [ErrorCode.GROUP_MAX_SIZE_REACHED] * 2
    groups.advance_ms(2 * INITIAL_DELAY_MS)
    assert sum(one.reply.error is ErrorCode.NONE for one in joined) == 2


def test_s_grp_1_the_last_to_rejoin_are_out_when_the_group_is_too_large() -> None:
    before = GroupHarness()
    before.stable_group(3)
    groups = GroupHarness(log=before.log, clock=before.clock, limits={"max_size": 2})
    groups.load()
    assert groups.group().state is GroupState.PREPARING_REBALANCE
    ids = list(groups.group().members)
    joined = [groups.join(one) for one in ids]
    assert joined[2].reply.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert joined[0].reply.error is joined[1].reply.error is ErrorCode.NONE
    assert len(groups.group().members) == 2


def test_protocol_vote_is_among_what_all_support(groups: GroupHarness) -> None:
    one = groups.join(protocols=(RANGE, STICKY))
    two = groups.join(protocols=(STICKY, RANGE))
    three = groups.join(protocols=(STICKY, RANGE))
    groups.advance_ms(2 * INITIAL_DELAY_MS)
    assert {join.reply.protocol_name for join in (one, two, three)} == {"sticky"}


# ---- assignment


def test_s_grp_1_followers_wait_in_sync_for_the_leader(groups: GroupHarness) -> None:
    joins = [groups.join(), groups.join()]
    groups.advance_ms(2 * INITIAL_DELAY_MS)
    leader, follower = (one.reply.member_id for one in joins)
    assert joins[1].reply.members == ()
    waiting = groups.sync(follower, 1)
    assert not waiting.done
    led = groups.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert led.reply.assignment == b"L"
    assert waiting.reply.assignment == b"F"
    assert waiting.reply.protocol_name == "range"
    assert groups.group().state is GroupState.STABLE


def test_s_grp_1_a_follower_that_syncs_late_gets_its_assignment(groups: GroupHarness) -> None:
    leader, follower = groups.joined(2)
    groups.sync(leader, 1, {follower: b"F"})
    assert groups.sync(follower, 1).reply.assignment == b"F"
    assert groups.sync(leader, 1).reply.assignment == b""


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        ("consumer", "range", ErrorCode.NONE),
        ("connect", "range", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", "sticky", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (None, None, ErrorCode.NONE),
    ],
)
def test_sync_names_the_groups_protocol(
    groups: GroupHarness, kind: str | None, name: str | None, code: ErrorCode
) -> None:
    generation, (leader,) = groups.stable_group()
    synced = groups.sync(leader, generation, protocol_type=kind, protocol_name=name)
    assert synced.reply.error is code


def test_sync_refusals(groups: GroupHarness) -> None:
    assert groups.sync("m", 1).reply.error is ErrorCode.UNKNOWN_MEMBER_ID
    generation, ids = groups.stable_group(2)
    assert groups.sync("m", generation).reply.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.sync(ids[0], generation + 1).reply.error is ErrorCode.ILLEGAL_GENERATION
    groups.join(ids[0])
    assert groups.sync(ids[1], generation).reply.error is ErrorCode.REBALANCE_IN_PROGRESS


def test_s_grp_1_a_leader_that_never_syncs_is_out_and_followers_rejoin(
    groups: GroupHarness,
) -> None:
    joins = [groups.join(rebalance_ms=30_000), groups.join(rebalance_ms=30_000)]
    groups.advance_ms(2 * INITIAL_DELAY_MS)
    leader, follower = (one.reply.member_id for one in joins)
    waiting = groups.sync(follower, 1)
    for _ in range(10):
        groups.advance_ms(3_000)
        groups.heartbeat(leader, 1)  # alive, but never brings an assignment
    assert waiting.reply.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert leader not in groups.group().members
    again = groups.join(follower)
    assert again.reply.leader == follower
    assert again.reply.generation == 2


def test_s_grp_1_a_leader_whose_session_ends_before_sync_fails_the_followers(
    groups: GroupHarness,
) -> None:
    _, follower = groups.joined(2)
    waiting = groups.sync(follower, 1)
    groups.advance_ms(SESSION_MS)
    assert waiting.reply.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.group().leader_id == follower


def test_an_assignment_written_too_late_is_not_used(groups: GroupHarness) -> None:
    leader, follower = groups.joined(2)
    groups.log.hold = True
    led = groups.sync(leader, 1, {follower: b"F"})
    assert not led.done
    groups.leave(follower)
    assert led.reply.error is ErrorCode.REBALANCE_IN_PROGRESS
    groups.log.release()
    assert groups.group().state is GroupState.PREPARING_REBALANCE


# ---- rejoining


def test_s_grp_1_an_unchanged_follower_may_join_again_without_a_rebalance(
    groups: GroupHarness,
) -> None:
    generation, ids = groups.stable_group(2)
    again = groups.join(ids[1])
    assert again.reply.error is ErrorCode.NONE
    assert again.reply.generation == generation
    assert again.reply.leader == ids[0]
    assert again.reply.members == ()
    assert groups.group().state is GroupState.STABLE


def test_s_grp_1_a_changed_follower_makes_a_rebalance(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(2)
    again = groups.join(ids[1], protocols=(("range", subscription("other")),))
    assert not again.done
    assert groups.heartbeat(ids[0], generation) is ErrorCode.REBALANCE_IN_PROGRESS
    led = groups.join(ids[0])
    assert led.reply.generation == again.reply.generation == generation + 1
    assert len(led.reply.members) == 2


def test_s_grp_1_an_unchanged_leader_always_makes_a_rebalance(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(2)
    again = groups.join(ids[0])
    assert not again.done
    assert groups.heartbeat(ids[1], generation) is ErrorCode.REBALANCE_IN_PROGRESS
    groups.join(ids[1])
    assert again.reply.generation == generation + 1


def test_s_grp_1_a_lost_join_response_is_repeated_before_sync(groups: GroupHarness) -> None:
    leader, follower = groups.joined(2)
    assert len(groups.join(leader).reply.members) == 2
    assert groups.join(follower).reply.members == ()
    assert groups.group().generation == 1
    assert groups.group().state is GroupState.COMPLETING_REBALANCE


def test_s_grp_1_changed_metadata_before_sync_starts_over(groups: GroupHarness) -> None:
    leader, follower = groups.joined(2)
    waiting = groups.sync(follower, 1)
    again = groups.join(leader, protocols=(("range", subscription("other")),))
    assert waiting.reply.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert not again.done


def test_s_grp_1_a_new_member_makes_everybody_join_again(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(2)
    new = groups.join()
    assert groups.group().state is GroupState.PREPARING_REBALANCE
    for one in ids:
        assert groups.heartbeat(one, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    replies = [groups.join(one) for one in ids]
    assert new.reply.generation == generation + 1
    assert len(replies[0].reply.members) == 3
    assert replies[0].reply.leader == ids[0]


def test_s_grp_1_a_member_that_does_not_rejoin_in_time_is_out(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(2)
    new = groups.join()
    again = groups.join(ids[0])
    for _ in range(REBALANCE_MS // 5_000):
        groups.heartbeat(ids[1], generation)
        groups.advance_ms(5_000)
    assert again.reply.generation == generation + 1
    assert {one.member_id for one in again.reply.members} == {ids[0], new.reply.member_id}
    assert groups.heartbeat(ids[1], generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_s_grp_1_a_leader_that_does_not_rejoin_is_replaced(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(2)
    groups.join(ids[1], protocols=(("range", subscription("other")),))
    again = groups.join(ids[1], protocols=(("range", subscription("more")),))
    for _ in range(REBALANCE_MS // 5_000):
        groups.heartbeat(ids[0], generation)
        groups.advance_ms(5_000)
    assert again.reply.leader == ids[1]
    assert len(again.reply.members) == 1


def test_a_join_repeated_on_another_connection_answers_the_first(groups: GroupHarness) -> None:
    _, ids = groups.stable_group(2)
    first = groups.join(ids[0])
    second = groups.join(ids[0])
    assert first.reply.error is ErrorCode.REBALANCE_IN_PROGRESS
    groups.join(ids[1])
    assert second.reply.error is ErrorCode.NONE


def test_rebalances_are_counted_by_reason(groups: GroupHarness) -> None:
    _, ids = groups.stable_group(2)
    groups.join(ids[0])
    statistics = groups.statistics()
    assert statistics.counters.rebalances == {
        "a new member joined": 1,
        "the leader joined again": 1,
    }
    assert statistics.counters.completed_rebalances == 1
    assert statistics.groups["PreparingRebalance"] == 1


def test_a_generation_with_a_new_group_is_written_with_its_members(groups: GroupHarness) -> None:
    groups.stable_group(2)
    assert len(groups.log.all_records()) == 2  # the group came into being; its first assignment
    groups.leave(*groups.group().members)
    assert len(groups.log.all_records()) == 3  # and it is empty
