"""A coordinator's state while one of its records is in flight, and after the append has failed.

All records take one way (`broker.coordinator.runtime`): nothing changes before the record is
durable, so a record of any kind that fails leaves the state as it was.
"""

from collections.abc import Callable

import pytest

from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.data.values import CommitRequest, PartitionCommit
from broker.world.in_turn import begin
from protocol.errors import ErrorCode
from tests.support.group_harness import SESSION_MS, GroupHarness, Parked
from tests.support.transaction_harness import T0, TransactionHarness

FAILURES = [
    (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
]
fails = pytest.mark.parametrize(("cause", "told"), FAILURES)
NONE = ErrorCode.NONE
NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR


def delete_offsets(groups: GroupHarness) -> Parked:
    async def code() -> ErrorCode:
        code, _ = await groups.coordinator.delete_offsets("g", [("t", 0)])
        return code

    parked = Parked(lambda: begin(code()))
    groups.check()
    return parked


def end_transaction(groups: GroupHarness, *, commit: bool, producer_id: int = 9) -> None:
    partition = groups.coordinator.partition_for("g")
    groups.coordinator.on_marker(partition, producer_id, commit=commit)
    groups.check()


def nothing_in_flight(harness: GroupHarness | TransactionHarness) -> bool:
    return not any(shard.in_flight for shard in harness.shards())


# ---- records of groups that fail


@fails
def test_tombstones_of_offsets_that_fail_leave_the_offsets(
    groups: GroupHarness, cause: ErrorCode, told: ErrorCode
) -> None:
    groups.commit(1)
    groups.log.fail_with = cause
    assert delete_offsets(groups).reply is told
    assert groups.committed() == 1
    assert groups.statistics().counters.deleted_offsets == 0
    groups.log.fail_with = NONE
    assert delete_offsets(groups).reply is NONE
    assert groups.committed() is None
    assert groups.statistics().counters.deleted_offsets == 1


@fails
def test_a_group_whose_first_record_fails_has_never_been(
    groups: GroupHarness, cause: ErrorCode, told: ErrorCode
) -> None:
    groups.log.fail_with = cause
    assert groups.join().reply.error is told
    assert groups.shard().group("g") is None
    assert len(groups.coordinator._timers) == 0
    groups.log.fail_with = NONE
    assert not groups.join().done


@fails
def test_an_assignment_that_fails_makes_nobody_stable(
    groups: GroupHarness, cause: ErrorCode, told: ErrorCode
) -> None:
    leader, follower = groups.joined(2)
    waiting = groups.sync(follower, 1)
    groups.log.hold = True
    led = groups.sync(leader, 1, {leader: b"mine"})
    assert groups.group().state is GroupState.COMPLETING_REBALANCE
    assert groups.group().members[leader].assignment == b"", "not durable yet"
    groups.log.release(cause)
    groups.check()
    assert led.reply.error is waiting.reply.error is told
    assert groups.group().state is GroupState.PREPARING_REBALANCE
    assert groups.group().members[leader].assignment == b""
    assert groups.statistics().counters.completed_rebalances == 0


def test_a_leader_that_syncs_twice_completes_one_rebalance(groups: GroupHarness) -> None:
    (member_id,) = groups.joined()
    groups.log.hold = True
    first = groups.sync(member_id, 1, {member_id: b"one"})
    second = groups.sync(member_id, 1, {member_id: b"two"})
    assert first.reply.error is ErrorCode.REBALANCE_IN_PROGRESS
    groups.log.release()
    assert second.reply.assignment == b"one"
    assert groups.statistics().counters.completed_rebalances == 1


@pytest.mark.parametrize("joins_again", [False, True])
def test_an_assignment_outlives_the_group_whose_first_record_failed(
    joins_again: bool,
) -> None:
    """The first record's followers were too slow, those of the second were not."""
    groups = GroupHarness(limits={"initial_rebalance_delay_ms": 0})
    groups.log.hold = True
    joined = groups.join()
    groups.advance_ms(1)
    member_id = joined.reply.member_id
    synced = groups.sync(member_id, 1, {member_id: b"mine"})
    groups.log.release_one(ErrorCode.REQUEST_TIMED_OUT)
    assert synced.reply.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.shard().group("g") is None
    if joins_again:
        again = groups.join()
        groups.advance_ms(1)
        assert again.done
        assert groups.group().generation == 1
    groups.log.release_one()
    groups.check()
    if joins_again:
        assert groups.group().state is GroupState.COMPLETING_REBALANCE
    else:
        assert groups.shard().group("g") is None, "nobody would end its members' sessions"


@fails
def test_a_deletion_that_fails_leaves_the_group_as_it_was(
    groups: GroupHarness, cause: ErrorCode, told: ErrorCode
) -> None:
    groups.commit(1)
    pending = groups.join(require_id=True).reply.member_id
    groups.log.hold = True
    done = groups.delete_group()
    not_available = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.join().reply.error is not_available
    assert groups.join(pending).reply.error is not_available
    assert groups.sync("m", 1).reply.error is not_available
    assert groups.heartbeat("m", 1) is not_available
    assert groups.leave("m").error is not_available
    assert groups.commit(2).reply is not_available
    assert groups.delete_group().reply is ErrorCode.GROUP_ID_NOT_FOUND
    assert groups.coordinator.describe("g").error is ErrorCode.GROUP_ID_NOT_FOUND
    assert [group.state for group in groups.coordinator.list_groups()] == ["Dead"]
    assert groups.statistics().groups["Dead"] == 1
    groups.log.hold = False
    groups.log.release(cause)
    assert done.reply is told
    assert groups.coordinator.describe("g").state == "Empty"
    assert groups.statistics().groups == {
        state.value: int(state is GroupState.EMPTY) for state in GroupState
    }
    assert groups.committed() == 1
    assert not groups.join(pending).done, "the id that it was given is good"
    groups.check()


def test_timers_of_a_group_that_is_being_deleted_do_nothing(groups: GroupHarness) -> None:
    groups.join(require_id=True)
    groups.log.hold = True
    groups.delete_group()
    groups.advance_ms(SESSION_MS)
    groups.log.release()
    assert groups.shard().group("g") is None
    assert len(groups.coordinator._timers) == 0


def test_a_deletion_in_batches_fails_with_the_batch_that_fails(groups: GroupHarness) -> None:
    request = CommitRequest(
        group_id="g",
        partitions=tuple(
            PartitionCommit(topic="t", partition=one, offset=one) for one in range(1_500)
        ),
    )
    groups.coordinator.commit_offsets(request)
    groups.log.hold = True
    done = groups.delete_group()
    groups.log.release_one()
    assert not done.done
    assert groups.join().reply.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.log.release_one(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert done.reply is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.group().state is GroupState.EMPTY
    assert groups.statistics().offsets == 500
    assert nothing_in_flight(groups)


# ---- several writes of one key


@pytest.mark.parametrize("first_fails", [True, False])
def test_one_of_two_commits_in_flight_fails(groups: GroupHarness, first_fails: bool) -> None:
    failure = ErrorCode.NOT_ENOUGH_REPLICAS
    groups.commit(1)
    groups.log.hold = True
    first, second = groups.commit(2), groups.commit(3)
    assert (first.done, groups.committed()) == (False, 1)
    groups.log.release_one(failure if first_fails else NONE)
    assert groups.committed() == (1 if first_fails else 2)
    assert ("g", "t", 0) in groups.shard().in_flight
    assert not second.done
    groups.log.release_one(NONE if first_fails else failure)
    assert groups.committed() == (3 if first_fails else 2)
    assert [first.reply is NONE, second.reply is NONE] == [not first_fails, first_fails]
    assert nothing_in_flight(groups)


def test_a_group_is_deleted_while_a_commit_is_on_its_way_and_that_fails(
    groups: GroupHarness,
) -> None:
    groups.commit(1)
    groups.log.hold = True
    commit = groups.commit(2, partition=1)
    done = groups.delete_group()
    groups.log.release_one()
    assert (commit.reply, groups.committed(partition=1)) == (NONE, 2)
    groups.log.release_one(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert done.reply is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (groups.committed(), groups.committed(partition=1)) == (1, 2)


# ---- offsets within transactions


@pytest.mark.parametrize("commit", [True, False])
def test_s_txn_5_a_marker_overtakes_the_answer_of_a_write(
    groups: GroupHarness, commit: bool
) -> None:
    """The record lies before the marker in the log; only its followers are late."""
    groups.commit(1)
    groups.log.hold = True
    done = groups.commit_in_transaction(7)
    end_transaction(groups, commit=commit)
    assert groups.committed() == 1, "not durable yet"
    assert groups.is_unstable()
    groups.log.release()
    groups.check()
    assert done.reply is NONE
    assert groups.committed() == (7 if commit else 1)
    assert not groups.is_unstable(), "nobody will end this transaction again"


def test_s_txn_5_the_marker_of_another_producer_ends_nothing(groups: GroupHarness) -> None:
    groups.log.hold = True
    groups.commit_in_transaction(7)
    end_transaction(groups, commit=True, producer_id=10)
    groups.log.release()
    assert groups.committed() is None
    assert groups.is_unstable()


def test_s_txn_5_a_second_commit_that_fails_leaves_the_first_pending(groups: GroupHarness) -> None:
    groups.commit_in_transaction(7)
    groups.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert groups.commit_in_transaction(8).reply is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.is_unstable()
    end_transaction(groups, commit=True)
    assert groups.committed() == 7


def test_s_grp_6_what_is_on_its_way_into_a_transaction_is_deleted_with_the_group(
    groups: GroupHarness,
) -> None:
    groups.commit(1)
    groups.log.hold = True
    groups.commit_in_transaction(7)
    groups.delete_group()
    groups.log.release()
    end_transaction(groups, commit=True)
    assert groups.committed() is None
    assert groups.shard().group("g") is None


def test_offsets_of_a_deleted_topic_do_not_outlive_it_on_their_way(groups: GroupHarness) -> None:
    groups.commit_in_transaction(7)
    groups.log.hold = True
    groups.commit_in_transaction(8, producer_id=10)
    groups.commit(9)
    groups.coordinator.on_topics_deleted(["t"])
    groups.log.release()
    for producer_id in (9, 10):
        end_transaction(groups, commit=True, producer_id=producer_id)
    assert groups.committed() is None
    assert not groups.is_unstable()


# ---- the shard goes while a record of it is on its way


def _resign(groups: GroupHarness) -> None:
    groups.coordinator.on_resigned(groups.coordinator.partition_for("g"))


def _delete_topic(groups: GroupHarness) -> None:
    groups.log.drop()
    groups.coordinator.on_topics_deleted(["__consumer_offsets"])


def _elect_anew(groups: GroupHarness) -> None:
    _resign(groups)
    groups.coordinator.on_elected(groups.coordinator.partition_for("g"), 1)


@pytest.mark.parametrize("goes", [_resign, _delete_topic, _elect_anew])
@pytest.mark.parametrize("code", [NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_whoever_waits_for_a_shard_that_went_asks_the_next(
    groups: GroupHarness, goes: Callable[[GroupHarness], None], code: ErrorCode
) -> None:
    groups.commit(1)
    before = groups.shard()
    groups.log.hold = True
    commit = groups.commit(2)
    in_transaction = groups.commit_in_transaction(7)
    tombstone = delete_offsets(groups)
    joined = groups.join()
    goes(groups)
    assert joined.reply.error is NOT_COORDINATOR
    groups.log.release(code)
    assert commit.reply is in_transaction.reply is tombstone.reply is NOT_COORDINATOR
    found = before.offsets.get(("g", "t", 0))
    assert found is not None
    assert found.offset == 1
    assert not before.in_flight
    assert len(groups.coordinator._timers) == 0


# ---- records of transactions


def test_a_new_id_is_not_there_before_it_is_durable_and_costs_one_producer_id(
    broker: TransactionHarness,
) -> None:
    broker.log.hold = True
    broker.init("new")
    assert "new" not in broker.shard("new").transactions
    assert broker.init("new").code is ErrorCode.CONCURRENT_TRANSACTIONS
    broker.log.release()
    assert broker.value("new").producer_epoch == 0
    broker.log.hold = False
    assert broker.init("new").producer.producer_epoch == 1
    assert broker.owner("next").producer_id == broker.value("new").producer_id + 1


@fails
def test_an_id_whose_tombstone_fails_is_good_for_the_next_transaction(
    broker: TransactionHarness, cause: ErrorCode, told: ErrorCode
) -> None:
    owner = broker.owner()
    broker.log.hold = True
    settings = broker.coordinator.settings
    broker.advance_ms(settings.id_expiration_ms + settings.remove_expired_interval_ms)
    assert broker.add(owner, T0) is ErrorCode.CONCURRENT_TRANSACTIONS
    broker.log.hold = False
    broker.log.release(cause)
    assert broker.statistics().counters.expired_ids == 0
    assert broker.add(owner, T0) is NONE


def test_a_fence_that_failed_once_is_no_excuse_for_the_next_transaction(
    broker: TransactionHarness,
) -> None:
    broker.opened(T0)
    broker.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    broker.init()
    broker.log.fail_with = NONE
    owner = broker.opened(T0)
    assert broker.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert broker.value().producer_epoch == owner.producer_epoch + 1


# ---- expiry and loading


def test_a_group_does_not_vanish_under_its_first_offset(groups: GroupHarness) -> None:
    groups.stable_group()
    groups.advance_ms(SESSION_MS)
    groups.log.hold = True
    done = groups.commit(1)
    groups.advance_ms(600_000)
    groups.log.release()
    assert done.reply is NONE
    assert groups.shard().group("g") is not None
    assert groups.group().protocol_type == "consumer", "the same group, not a new one"


def test_a_group_that_is_being_deleted_does_not_expire_as_well(groups: GroupHarness) -> None:
    groups.stable_group()
    groups.advance_ms(SESSION_MS)
    groups.log.hold = True
    groups.delete_group()
    before = len(groups.log.all_records())
    groups.advance_ms(600_000)
    assert len(groups.log.all_records()) == before


def test_an_assignment_of_the_generation_before_is_not_used(groups: GroupHarness) -> None:
    (member_id,) = groups.joined()
    groups.log.hold = True
    groups.sync(member_id, 1, {member_id: b"old"})
    groups.join(member_id, protocols=(("range", b"changed"),))
    assert groups.group().generation == 2
    groups.log.release()
    assert groups.group().state is GroupState.COMPLETING_REBALANCE
    assert groups.group().members[member_id].assignment == b""


def test_s_grp_5_beside_an_open_transaction_the_last_record_of_a_group_wins_too(
    groups: GroupHarness,
) -> None:
    """Records are replayed as they come then, so the group of an earlier one is there already."""
    groups.commit_in_transaction(7)
    generation, [member_id] = groups.stable_group()
    groups.join(member_id, protocols=(("range", b"changed"),))
    groups.sync(member_id, generation + 1, {member_id: b"last"})
    after = groups.restarted()
    assert after.group().generation == generation + 1
    assert after.group().members[member_id].assignment == b"last"
