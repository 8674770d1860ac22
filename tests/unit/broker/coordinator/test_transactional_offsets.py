"""S-TXN-5: offsets in a transaction are seen when it commits; KIP-447 fences its zombies."""

from typing import Any

import pytest

from broker.coordinator.group.data.values import CommitRequest, PartitionCommit
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import read_header
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.types import TopicPartition
from tests.support.group_harness import GroupHarness

PRODUCER_ID = 9


def end(groups: GroupHarness, *, commit: bool, producer_id: int = PRODUCER_ID) -> None:
    """Do as the marker writer: append the marker, then tell the coordinator."""
    partition = groups.coordinator.partition_for("g")
    assert groups.coordinator.marker_refusal(partition) is ErrorCode.NONE
    marker = build_end_transaction_marker(
        ControlType.COMMIT if commit else ControlType.ABORT,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp=groups.clock.wall_ms(),
    )
    groups.log.append(TopicPartition("__consumer_offsets", partition), marker)
    groups.coordinator.on_marker(partition, producer_id, commit=commit)
    groups.check()


@pytest.mark.parametrize("committed", [True, False])
def test_s_txn_5_a_marker_shows_or_drops_what_is_pending(
    groups: GroupHarness, committed: bool
) -> None:
    groups.commit(3)
    assert groups.commit_in_transaction(7).reply is ErrorCode.NONE
    assert groups.committed() == 3
    assert groups.is_unstable()
    end(groups, commit=committed)
    assert groups.committed() == (7 if committed else 3)
    assert not groups.is_unstable()
    [*_, batch, _] = groups.log.batches[
        TopicPartition("__consumer_offsets", groups.coordinator.partition_for("g"))
    ]
    header = read_header(batch)
    assert header.is_transactional and header.producer_id == PRODUCER_ID


def test_s_txn_5_two_transactions_do_not_know_each_other(groups: GroupHarness) -> None:
    groups.commit_in_transaction(1)
    groups.commit_in_transaction(2, producer_id=10)
    end(groups, commit=True)
    assert groups.committed() == 1
    assert groups.is_unstable()
    end(groups, commit=True, producer_id=10)
    assert groups.committed() == 2


def test_s_txn_5_a_plain_commit_after_a_pending_one_wins(groups: GroupHarness) -> None:
    groups.commit_in_transaction(7)
    groups.commit(9)
    end(groups, commit=True)
    assert groups.committed() == 9


def test_s_txn_5_each_record_of_a_plain_commit_counts_from_where_it_lies(
    groups: GroupHarness,
) -> None:
    groups.commit_in_transaction(7)  # of partition 0, which the plain commit names last
    request = CommitRequest(
        group_id="g",
        member_id="",
        generation=-1,
        instance_id=None,
        partitions=tuple(
            PartitionCommit(topic="t", partition=partition, offset=9) for partition in (2, 1, 0)
        ),
    )
    assert groups.coordinator.commit_offsets(request).fired
    end(groups, commit=True)
    assert groups.committed() == 9


def test_s_txn_5_a_write_that_fails_leaves_nothing_pending(groups: GroupHarness) -> None:
    groups.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert groups.commit_in_transaction(7).reply is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not groups.is_unstable()
    groups.log.fail_with = ErrorCode.INVALID_PRODUCER_EPOCH
    assert groups.commit_in_transaction(7).reply is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("committed", [True, False])
def test_s_txn_6_pending_offsets_are_loaded(groups: GroupHarness, committed: bool) -> None:
    groups.commit(3)
    groups.commit_in_transaction(7)
    after = GroupHarness(log=groups.log, clock=groups.clock)
    with pytest.raises(KafkaError):
        after.shard()
    partition = after.coordinator.partition_for("g")
    # While the partition loads a marker must wait: it could be missed.
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert after.coordinator.marker_refusal(partition) is loading
    after.load()
    assert after.is_unstable()
    end(after, commit=committed)
    assert after.committed() == (7 if committed else 3)
    again = groups.restarted()
    assert again.committed() == (7 if committed else 3)
    assert not again.is_unstable()


def commit_by(groups: GroupHarness, **member: Any) -> ErrorCode:
    """Commit in a transaction as this member; return the answer."""
    code: ErrorCode = groups.commit_in_transaction(1, **member).reply
    return code


def test_s_txn_5_a_member_is_checked_as_far_as_it_is_named(groups: GroupHarness) -> None:
    generation, [member] = groups.stable_group()
    for member_id, number, code in (
        (member, generation, ErrorCode.NONE),
        (member, generation - 1, ErrorCode.ILLEGAL_GENERATION),
        ("x", generation, ErrorCode.UNKNOWN_MEMBER_ID),
        ("x", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.NONE),  # Before v3 clients named nobody: KIP-447 cannot fence them.
    ):
        assert commit_by(groups, member_id=member_id, generation=number) is code


def test_s_txn_5_static_members_are_fenced(groups: GroupHarness) -> None:
    generation, [member] = groups.stable_group(instance="i")
    for member_id, instance, code in (
        (member, "i", ErrorCode.NONE),
        ("other", "i", ErrorCode.FENCED_INSTANCE_ID),
        (member, "j", ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        found = commit_by(groups, member_id=member_id, generation=generation, instance=instance)
        assert found is code
    # An instance id alone names a member too.
    assert commit_by(groups, instance="i") is ErrorCode.FENCED_INSTANCE_ID
    assert commit_by(groups, instance="j") is ErrorCode.UNKNOWN_MEMBER_ID


def test_s_txn_5_a_group_that_is_not_there(groups: GroupHarness) -> None:
    assert commit_by(groups, member_id="x", generation=3) is ErrorCode.ILLEGAL_GENERATION
    assert commit_by(groups) is ErrorCode.NONE
    groups.advance_ms(8 * 24 * 3_600_000)
    assert groups.shard().group("g") is not None, "it must not vanish under a transaction"
