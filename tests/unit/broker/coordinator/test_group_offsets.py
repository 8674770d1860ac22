"""S-GRP-4: commits, what they are refused for, and when offsets expire."""

import pytest

from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.data.records import GroupMetadataRecord, OffsetRecord
from broker.coordinator.group.data.serde import decode_record
from broker.coordinator.group.data.values import CommitRequest, PartitionCommit
from protocol.errors import ErrorCode
from tests.support.group_harness import (
    INITIAL_DELAY_MS,
    SESSION_MS,
    GroupHarness,
    subscription,
)

RETENTION_MS = 7 * 24 * 3_600_000
CHECK_MS = 600_000


def written(groups: GroupHarness) -> list[object]:
    records = []
    for record in groups.log.all_records():
        assert record.key is not None
        records.append(decode_record(record.key, record.value))
    return records


# ---- commits


def test_s_grp_4_metadata_and_epoch_come_back(groups: GroupHarness) -> None:
    assert groups.commit(42, metadata="my place", leader_epoch=7).reply is ErrorCode.NONE
    found = groups.offset()
    assert (found.offset, found.metadata, found.leader_epoch) == (42, "my place", 7)


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
def test_s_grp_4_a_failed_write_is_no_commit(
    groups: GroupHarness, cause: ErrorCode, told: ErrorCode
) -> None:
    groups.commit(1)
    groups.log.fail_with = cause
    assert groups.commit(2).reply is told
    assert groups.committed() == 1
    assert groups.statistics().counters.commit_failures == 1


def test_a_commit_of_many_partitions_is_one_batch(groups: GroupHarness) -> None:
    written = groups.coordinator.commit_offsets(
        CommitRequest(
            group_id="g",
            partitions=tuple(
                PartitionCommit(topic="t", partition=one, offset=one) for one in range(10)
            ),
        )
    )
    assert written.value is ErrorCode.NONE
    assert len(groups.log.all_records()) == 10
    assert sum(len(batches) for batches in groups.log.batches.values()) == 1
    assert groups.statistics().counters.commits == 10
    assert groups.statistics().offsets == 10


def test_s_grp_4_a_simple_consumer_needs_no_group(groups: GroupHarness) -> None:
    assert groups.commit(5).reply is ErrorCode.NONE
    assert (groups.group().protocol_type, len(groups.group().members)) == (None, 0)
    assert groups.group().state is GroupState.EMPTY


def test_s_grp_4_the_empty_group_name_may_commit(groups: GroupHarness) -> None:
    assert groups.commit(5, group="").reply is ErrorCode.NONE
    assert groups.committed(group="") == 5


def test_s_grp_4_a_simple_consumer_may_not_disturb_a_group_in_use(groups: GroupHarness) -> None:
    groups.stable_group()
    assert groups.commit(5).reply is ErrorCode.UNKNOWN_MEMBER_ID
    groups.advance_ms(SESSION_MS)
    assert groups.commit(5).reply is ErrorCode.NONE  # empty now


def test_s_grp_4_members_commit_with_their_generation(groups: GroupHarness) -> None:
    generation, (member_id,) = groups.stable_group()
    illegal, unknown = ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID
    for member, number, code in (
        (member_id, generation, ErrorCode.NONE),
        (member_id, generation + 1, illegal),
        (member_id, generation - 1, illegal),
        (member_id, -1, illegal),
        ("other", generation, unknown),
        ("", generation, unknown),
    ):
        assert groups.commit(1, member_id=member, generation=number).reply is code


def test_s_grp_4_a_member_of_a_group_that_is_gone(groups: GroupHarness) -> None:
    illegal = groups.commit(1, member_id="m", generation=1)
    assert illegal.reply is ErrorCode.ILLEGAL_GENERATION
    missing = ErrorCode.GROUP_ID_NOT_FOUND
    assert groups.commit(1, member_id="m", generation=1, unknown_group=missing).reply is missing
    groups.stable_group()
    groups.advance_ms(SESSION_MS)
    assert groups.commit(1, member_id="m", generation=1).reply is ErrorCode.UNKNOWN_MEMBER_ID


def test_s_grp_4_commits_in_the_phases_of_a_rebalance(groups: GroupHarness) -> None:
    generation, ids = groups.stable_group(2)
    parked = groups.join(ids[0])
    commit = groups.commit(1, member_id=ids[1], generation=generation)
    assert commit.reply is ErrorCode.NONE  # still of the old generation: lets it hand over
    groups.join(ids[1])
    assert parked.done
    commit = groups.commit(1, member_id=ids[1], generation=generation + 1)
    assert commit.reply is ErrorCode.REBALANCE_IN_PROGRESS


def test_offsets_of_a_group_that_is_not_there_are_none(groups: GroupHarness) -> None:
    assert groups.committed() is None
    assert groups.coordinator.fetch_all_offsets("g") == {}


# ---- expiry


def test_s_grp_4_offsets_of_an_empty_group_expire_from_when_it_became_empty(
    groups: GroupHarness,
) -> None:
    generation, (member_id,) = groups.stable_group()
    groups.commit(1, member_id=member_id, generation=generation)
    groups.commit(1, topic="other", member_id=member_id, generation=generation)
    for _ in range(24):
        groups.advance_ms(SESSION_MS - 1)
        groups.heartbeat(member_id, generation)
    groups.leave(member_id)
    groups.advance_ms(RETENTION_MS - 1)
    assert groups.committed() == 1
    groups.advance_ms(CHECK_MS)
    assert groups.committed() is None
    assert groups.shard().group("g") is None
    tombstones = written(groups)[-3:]
    assert tombstones == [
        OffsetRecord(("g", "t", 0), None),
        OffsetRecord(("g", "other", 0), None),
        GroupMetadataRecord("g", None),
    ]
    assert groups.statistics().counters.expired_offsets == 2


def test_s_grp_4_offsets_of_a_simple_group_expire_from_their_commit(groups: GroupHarness) -> None:
    groups.commit(1)
    groups.advance_ms(RETENTION_MS // 2)
    groups.commit(1, partition=1)
    groups.advance_ms(RETENTION_MS // 2 + CHECK_MS)
    assert groups.committed() is None
    assert groups.committed(partition=1) == 1
    groups.advance_ms(RETENTION_MS // 2 + CHECK_MS)
    assert groups.shard().group("g") is None


def test_s_grp_4_a_group_in_use_keeps_what_it_subscribes_to(groups: GroupHarness) -> None:
    week = 2 * RETENTION_MS
    generation, (member_id,) = groups.stable_group(session_ms=1_800_000)
    for topic in ("t", "left"):
        groups.commit(1, topic=topic, member_id=member_id, generation=generation)
    for _ in range(week // 1_700_000):
        groups.advance_ms(1_700_000)
        assert groups.heartbeat(member_id, generation) is ErrorCode.NONE
    assert groups.committed("t") == 1
    assert groups.committed("left") is None


def test_s_grp_4_a_group_of_another_protocol_keeps_all_while_it_is_in_use(
    groups: GroupHarness,
) -> None:
    generation, (member_id,) = groups.stable_group(
        protocol_type="connect", protocols=(("x", b""),), session_ms=1_800_000
    )
    groups.commit(1, member_id=member_id, generation=generation)
    for _ in range(2 * RETENTION_MS // 1_700_000):
        groups.advance_ms(1_700_000)
        groups.heartbeat(member_id, generation)
    assert groups.committed() == 1


def test_s_grp_4_nothing_expires_during_a_rebalance(groups: GroupHarness) -> None:
    groups.commit(1, topic="left", retention_ms=1)
    groups.advance_ms(CHECK_MS - INITIAL_DELAY_MS)
    groups.join()
    groups.advance_ms(INITIAL_DELAY_MS)
    assert groups.group().state is not GroupState.STABLE
    assert groups.committed("left") == 1


def test_s_grp_4_a_group_back_in_use_starts_the_retention_anew(groups: GroupHarness) -> None:
    groups.stable_group()
    groups.advance_ms(SESSION_MS)
    groups.commit(1)
    groups.advance_ms(RETENTION_MS - CHECK_MS)
    _, (member_id,) = groups.stable_group()
    groups.leave(member_id)
    groups.advance_ms(2 * CHECK_MS)
    assert groups.committed() == 1


def test_s_grp_4_an_explicit_retention_rules(groups: GroupHarness) -> None:
    groups.commit(1, retention_ms=CHECK_MS // 2)
    groups.commit(1, partition=1)
    groups.advance_ms(CHECK_MS)
    assert groups.committed() is None
    assert groups.committed(partition=1) == 1


def test_s_grp_4_an_explicit_retention_longer_than_the_brokers(groups: GroupHarness) -> None:
    groups.commit(1, retention_ms=2 * RETENTION_MS)
    groups.advance_ms(RETENTION_MS + 2 * CHECK_MS)
    assert groups.committed() == 1


def test_s_grp_4_nothing_expires_under_a_commit_on_its_way(groups: GroupHarness) -> None:
    groups.commit(1)
    groups.advance_ms(RETENTION_MS - CHECK_MS // 2)
    groups.log.hold = True
    done = groups.commit(2)
    groups.advance_ms(CHECK_MS)
    groups.log.release()
    assert done.reply is ErrorCode.NONE
    assert groups.committed() == 2


def test_s_grp_4_an_empty_group_without_offsets_goes_at_the_next_check(
    groups: GroupHarness,
) -> None:
    groups.stable_group()
    groups.advance_ms(SESSION_MS)
    assert groups.group().state is GroupState.EMPTY
    groups.advance_ms(CHECK_MS)
    assert groups.shard().group("g") is None
    assert written(groups)[-1] == GroupMetadataRecord("g", None)


def test_a_group_with_a_pending_member_does_not_go_at_the_check(groups: GroupHarness) -> None:
    groups.advance_ms(CHECK_MS - 1_000)
    member_id = groups.join(require_id=True).reply.member_id
    groups.advance_ms(1_000)
    assert not groups.join(member_id).done
    groups.advance_ms(INITIAL_DELAY_MS)
    assert groups.group().state is GroupState.COMPLETING_REBALANCE


def test_a_failed_expiry_is_tried_again(groups: GroupHarness) -> None:
    groups.commit(1)
    groups.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    groups.advance_ms(RETENTION_MS + CHECK_MS)
    assert groups.committed() == 1
    assert groups.group().state is GroupState.EMPTY
    groups.log.fail_with = ErrorCode.NONE
    groups.advance_ms(CHECK_MS)
    assert groups.committed() is None
    assert groups.shard().group("g") is None


def test_tombstones_of_one_check_are_cut_into_batches() -> None:
    groups = GroupHarness(retention_ms=CHECK_MS)
    for start in range(0, 2_500, 500):
        groups.coordinator.commit_offsets(
            CommitRequest(
                group_id="g",
                partitions=tuple(
                    PartitionCommit(topic="t", partition=one, offset=one)
                    for one in range(start, start + 500)
                ),
            )
        )
    before = sum(len(batches) for batches in groups.log.batches.values())
    groups.advance_ms(2 * CHECK_MS)
    assert sum(len(batches) for batches in groups.log.batches.values()) == before + 3
    assert groups.statistics().offsets == 0


# ---- topics that go


def test_offsets_of_deleted_topics_are_forgotten(groups: GroupHarness) -> None:
    generation, (member_id,) = groups.stable_group()
    for topic in ("t", "u"):
        groups.commit(1, topic=topic, member_id=member_id, generation=generation)
    groups.commit(3, group="other")
    groups.coordinator.on_topics_deleted(["t"])
    assert groups.committed("t") is None
    assert groups.committed("u") == 1
    assert groups.committed(group="other") is None
    assert groups.statistics().counters.deleted_offsets == 2


# ---- subscriptions and listings


def test_subscriptions_of_later_versions_are_read_by_their_first_fields() -> None:
    from broker.coordinator.group.data.serde import subscribed_topics

    for version in (0, 1, 2, 3):
        assert subscribed_topics(subscription("a", "b", version=version)) == {"a", "b"}
    assert subscribed_topics(b"\x00\x09" + subscription("a")[2:] + b"later") == {"a"}
    assert subscribed_topics(b"\x00") is None
    assert subscribed_topics(b"\x00\x00\x7f\xff\xff\xff") is None


def test_groups_come_one_at_a_time_while_others_change(groups: GroupHarness) -> None:
    for number in range(3):
        groups.commit(number, group=f"g{number}")
    found = {}
    for group in groups.coordinator.groups_at_a_time():
        found[group.group_id] = (group.members, group.offsets["t"][0].offset)
        groups.commit(7, group=f"new-{len(found)}")
    assert found.keys() >= {"g0", "g1", "g2"}
    assert [found[name] for name in ("g0", "g1", "g2")] == [(0, 0), (0, 1), (0, 2)]
    assert groups.statistics().groups["Empty"] >= 6
