"""S-GRP-2: ids handed out, signs of life, and the codes for a member that was left behind."""

from broker.coordinator.group.classic.phases.sessions import NEW_MEMBER_JOIN_TIMEOUT_MS
from broker.coordinator.group.classic.state import GroupState
from protocol.errors import ErrorCode
from tests.support.group_harness import INITIAL_DELAY_MS, SESSION_MS, GroupHarness, subscription


def test_s_grp_2_a_new_member_is_sent_away_with_an_id(groups: GroupHarness) -> None:
    first = groups.join(require_id=True)
    assert first.reply.error is ErrorCode.MEMBER_ID_REQUIRED
    assert first.reply.member_id.startswith("client-")
    assert groups.group().state is GroupState.EMPTY
    again = groups.join(first.reply.member_id, require_id=True)
    groups.advance_ms(INITIAL_DELAY_MS)
    assert again.reply.error is ErrorCode.NONE
    assert again.reply.member_id == first.reply.member_id


def test_s_grp_2_a_pending_member_that_does_not_come_back_is_forgotten(
    groups: GroupHarness,
) -> None:
    member_id = groups.join(require_id=True).reply.member_id
    groups.advance_ms(SESSION_MS)
    assert not groups.group().pending_join
    assert groups.join(member_id).reply.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_s_grp_2_a_pending_member_holds_a_rebalance_up_until_it_comes_or_expires(
    groups: GroupHarness,
) -> None:
    generation, ids = groups.stable_group(2)
    groups.join(require_id=True)
    joins = [groups.join(one) for one in ids]
    assert not joins[0].done
    groups.advance_ms(SESSION_MS)
    assert [one.reply.generation for one in joins] == [generation + 1] * 2


def test_s_grp_2_a_pending_member_may_leave(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(1)
    pending = groups.join(require_id=True).reply.member_id
    joined = groups.join(ids[0])
    assert not joined.done
    assert groups.leave(pending).members[0].error is ErrorCode.NONE
    assert joined.reply.generation == generation + 1


def test_a_pending_member_that_leaves_does_not_disturb_a_stable_group(
    groups: GroupHarness,
) -> None:
    generation, ids = groups.stable_group(1)
    groups.leave(groups.join(require_id=True).reply.member_id)
    assert groups.group().state is GroupState.STABLE
    assert groups.heartbeat(ids[0], generation) is ErrorCode.NONE


def test_s_grp_2_heartbeats_keep_a_session(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(2)
    for _ in range(20):
        groups.advance_ms(SESSION_MS - 1)
        for one in ids:
            assert groups.heartbeat(one, generation) is ErrorCode.NONE
    assert groups.group().state is GroupState.STABLE


def test_s_grp_2_a_commit_keeps_a_session(groups: GroupHarness) -> None:
    generation, (member_id,) = groups.stable_group()
    for offset in range(5):
        groups.advance_ms(SESSION_MS - 1)
        done = groups.commit(offset, member_id=member_id, generation=generation)
        assert done.reply is ErrorCode.NONE
    assert groups.group().state is GroupState.STABLE


def test_s_grp_2_without_a_sign_of_life_the_member_is_out(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(2)
    groups.advance_ms(SESSION_MS // 2)
    groups.heartbeat(ids[0], generation)
    groups.advance_ms(SESSION_MS // 2)
    assert list(groups.group().members) == [ids[0]]
    assert groups.heartbeat(ids[0], generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.heartbeat(ids[1], generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_s_grp_2_when_all_sessions_end_the_group_is_empty(groups: GroupHarness) -> None:
    generation, _ = groups.stable_group(3)
    groups.advance_ms(SESSION_MS)
    assert groups.group().state is GroupState.EMPTY
    assert groups.group().generation == generation + 1
    assert len(groups.coordinator._timers) == 0


def test_s_grp_2_heartbeat_errors(groups: GroupHarness) -> None:
    assert groups.heartbeat("m", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    generation, ids = groups.stable_group(2)
    assert groups.heartbeat("m", generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat(ids[0], generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert groups.heartbeat(ids[0], generation - 1) is ErrorCode.ILLEGAL_GENERATION
    groups.join(ids[0])
    assert groups.heartbeat(ids[1], generation) is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_are_welcome_while_the_leader_assigns(groups: GroupHarness) -> None:
    joined = groups.join()
    groups.advance_ms(INITIAL_DELAY_MS)
    assert groups.heartbeat(joined.reply.member_id, 1) is ErrorCode.NONE


def test_a_parked_join_keeps_an_old_member_alive(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(2)
    waiting = groups.join(ids[0])
    for _ in range(5):
        groups.advance_ms(SESSION_MS - 1)
        groups.heartbeat(ids[1], generation)
    assert not waiting.done
    groups.join(ids[1])
    assert waiting.reply.error is ErrorCode.NONE


def test_a_parked_first_join_does_not_keep_a_new_member_for_ever(groups: GroupHarness) -> None:
    limit = NEW_MEMBER_JOIN_TIMEOUT_MS
    generation, ids = groups.stable_group(1, rebalance_ms=2 * limit)
    new = groups.join(rebalance_ms=2 * limit)
    passed = 0
    while passed < limit - 5_000:
        groups.advance_ms(5_000)
        passed += 5_000
        assert groups.heartbeat(ids[0], generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert not new.done
    groups.advance_ms(5_000)
    assert new.reply.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_session_timeout_may_change_with_the_next_join(groups: GroupHarness) -> None:
    generation, (member_id,) = groups.stable_group()
    joined = groups.join(member_id, session_ms=60_000)
    assert joined.reply.generation == generation + 1
    groups.sync(member_id, generation + 1, {member_id: b"x"})
    groups.advance_ms(59_999)
    assert groups.heartbeat(member_id, generation + 1) is ErrorCode.NONE


def test_leaving(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(2)
    assert groups.leave(ids[1]).members[0].error is ErrorCode.NONE
    assert groups.heartbeat(ids[0], generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.leave(ids[1]).members[0].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.leave(ids[0]).members[0].error is ErrorCode.NONE
    assert groups.group().state is GroupState.EMPTY
    assert groups.leave("m", group="none").members[0].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_leaves_while_its_join_is_parked_gets_an_answer(groups: GroupHarness) -> None:
    _, ids = groups.stable_group(2)
    parked = groups.join(ids[0])
    groups.leave(ids[0])
    assert parked.reply.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_follower_that_leaves_while_it_waits_in_sync_is_answered(groups: GroupHarness) -> None:
    _, follower = groups.joined(2)
    parked = groups.sync(follower, 1)
    groups.leave(follower)
    assert parked.reply.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_new_generation_after_the_group_was_empty_goes_on_counting(
    groups: GroupHarness,
) -> None:
    generation, _ = groups.stable_group()
    groups.advance_ms(SESSION_MS)
    joined = groups.join(protocol_type="connect", protocols=(("x", subscription("t")),))
    groups.advance_ms(INITIAL_DELAY_MS)
    assert joined.reply.generation == generation + 2
    assert joined.reply.protocol_type == "connect"
