"""OffsetCommit over the wire (S-GRP-4)."""

from typing import Any

import pytest

from broker.coordinator.group.checked_commits import COMMITS_PER_BATCH
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.records.batch import read_header
from tests.support.group_handlers import OTHER_ID, TOPIC_ID, GroupApi, topic_image, versions

KEY = ApiKey.OFFSET_COMMIT
IDS = {"t": TOPIC_ID, "nowhere": OTHER_ID}


def request(version: int, topics: dict[str, dict[int, int]], **fields: Any) -> Any:
    metadata = fields.pop("metadata", "md")
    epoch = fields.pop("epoch", 4)
    return OffsetCommitRequest(
        group_id=fields.pop("group", "g"),
        topics=[
            OffsetCommitRequestTopic(
                **({"topic_id": IDS[name]} if version >= 10 else {"name": name}),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_metadata=metadata,
                        **({"committed_leader_epoch": epoch} if version >= 6 else {}),
                    )
                    for partition, offset in partitions.items()
                ],
            )
            for name, partitions in topics.items()
        ],
        **fields,
    )


def codes(response: Any) -> list[int]:
    return [one.error_code for topic in response.topics for one in topic.partitions]


@pytest.mark.parametrize("version", versions(KEY))
def test_a_simple_commit_in_every_version(api: GroupApi, version: int) -> None:
    response = api.call(KEY, version, request(version, {"t": {0: 5, 2: 7}}))
    assert codes(response) == [0, 0]
    assert [one.partition_index for one in response.topics[0].partitions] == [0, 2]
    if version >= 10:
        assert response.topics[0].topic_id == TOPIC_ID
    else:
        assert response.topics[0].name == "t"
    found = api.offset(partition=2)
    assert (found.offset, found.metadata) == (7, "md")
    assert found.leader_epoch == (4 if version >= 6 else -1)
    assert found.expire_timestamp_ms is None


@pytest.mark.parametrize("version", versions(KEY))
def test_s_grp_4_what_does_not_exist_is_not_committed(api: GroupApi, version: int) -> None:
    response = api.call(KEY, version, request(version, {"nowhere": {0: 1}, "t": {0: 5, 9: 1}}))
    missing = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(response) == [missing, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert api.committed("t", 0) == 5
    assert api.statistics().offsets == 1


def test_only_unknown_topics_need_no_group(api: GroupApi) -> None:
    response = api.call(
        KEY, 5, request(5, {"nowhere": {0: 1}}, generation_id_or_member_epoch=3, member_id="m")
    )
    assert codes(response) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_s_grp_4_metadata_that_is_too_large(api: GroupApi) -> None:
    large = request(8, {"t": {0: 1}}, metadata="x" * 4097)
    large.topics[0].partitions.append(
        OffsetCommitRequestPartition(
            partition_index=1, committed_offset=2, committed_metadata="x" * 4096
        )
    )
    assert codes(api.call(KEY, 8, large)) == [ErrorCode.OFFSET_METADATA_TOO_LARGE, 0]
    assert api.committed("t", 0) is None
    assert api.committed("t", 1) == 2


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ("\U0001f600" * 2048, 0),
        ("\U0001f600" * 2049, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("\u00fc" * 4096, 0),
        ("\u00fc" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_s_grp_4_metadata_is_counted_in_utf_16_units(metadata: str, code: int) -> None:
    assert codes(GroupApi().call(KEY, 8, request(8, {"t": {0: 1}}, metadata=metadata))) == [code]


def test_null_metadata_is_empty(api: GroupApi) -> None:
    api.call(KEY, 8, request(8, {"t": {0: 1}}, metadata=None))
    found = api.offset()
    assert found.metadata == ""


@pytest.mark.parametrize("version", [2, 3, 4])
def test_s_grp_4_retention_time(api: GroupApi, version: int) -> None:
    api.call(KEY, version, request(version, {"t": {0: 1}}, retention_time_ms=5_000))
    api.call(KEY, version, request(version, {"t": {1: 1}}, retention_time_ms=-1))
    assert api.offset().expire_timestamp_ms == api.clock.wall_ms() + 5_000
    assert api.offset(partition=1).expire_timestamp_ms is None


@pytest.mark.parametrize("retention_ms", [2**63 - 1, -(2**63)])
def test_s_grp_4_a_retention_time_beyond_all_time(api: GroupApi, retention_ms: int) -> None:
    """Kafka's sum wraps: an offset that was to stay for ever has expired at once."""
    asked = request(2, {"t": {0: 1}}, retention_time_ms=retention_ms)
    response = api.call(KEY, 2, asked)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE
    found = api.offset()
    assert found.expire_timestamp_ms == min(api.clock.wall_ms() + retention_ms, 2**63 - 1)


@pytest.mark.parametrize(
    ("version", "code"),
    [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)],
)
def test_a_member_of_no_group(api: GroupApi, version: int, code: ErrorCode) -> None:
    asked = request(version, {"t": {0: 1}}, generation_id_or_member_epoch=3, member_id="m")
    assert codes(api.call(KEY, version, asked)) == [code]


def test_s_grp_4_the_groups_refusal_is_for_all_partitions_that_exist(api: GroupApi) -> None:
    generation, (member_id,) = api.stable_group()
    asked = request(
        8,
        {"t": {0: 1, 1: 1}, "nowhere": {0: 1}},
        generation_id_or_member_epoch=generation + 1,
        member_id=member_id,
    )
    illegal = ErrorCode.ILLEGAL_GENERATION
    assert codes(api.call(KEY, 8, asked)) == [
        illegal,
        illegal,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    asked.generation_id_or_member_epoch = generation
    assert codes(api.call(KEY, 8, asked))[:2] == [0, 0]


def test_s_grp_4_the_groups_refusal_is_also_for_metadata_that_is_too_large() -> None:
    asked = request(8, {"t": {0: 1}}, metadata="x" * 4097, generation_id_or_member_epoch=3)
    assert codes(GroupApi().call(KEY, 8, asked)) == [ErrorCode.ILLEGAL_GENERATION]


def test_s_grp_4_the_answer_waits_for_the_write(api: GroupApi) -> None:
    api.log.hold = True
    later = api.send(KEY, 8, request(8, {"t": {0: 1, 9: 1}}))
    assert not later.done
    assert later.parked
    api.log.release(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert codes(later.response) == [
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert api.committed("t", 0) is None


MANY = 2 * COMMITS_PER_BATCH + 10


def with_many() -> GroupApi:
    """A broker with a topic "many" of `MANY` partitions."""
    api = GroupApi()
    api.image.set_topic(topic_image("many", OTHER_ID, MANY))
    return api


def test_very_many_offsets_are_written_as_several_batches() -> None:
    api = with_many()
    asked = request(8, {"many": dict.fromkeys(range(MANY), 5), "nowhere": {0: 1}})
    response = api.send(KEY, 8, asked, large=True).response
    assert codes(response) == [0] * MANY + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    (batches,) = api.log.batches.values()
    counts = [read_header(one).record_count for one in batches]
    assert counts == [COMMITS_PER_BATCH, COMMITS_PER_BATCH, 10]
    assert api.committed("many", MANY - 1) == 5


def test_after_a_batch_that_failed_the_later_ones_are_not_written() -> None:
    api = with_many()
    api.log.hold = True
    asked = request(8, {"many": dict.fromkeys(range(MANY), 5)})
    later = api.send(KEY, 8, asked, large=True)
    # All batches are written, even if the client leaves, so the request is not parked.
    assert not later.done
    assert not later.parked
    api.log.release_one()
    assert not later.done
    api.log.release_one(ErrorCode.NOT_ENOUGH_REPLICAS)
    failed = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert codes(later.response) == [0] * COMMITS_PER_BATCH + [failed] * (MANY - COMMITS_PER_BATCH)
    (batches,) = api.log.batches.values()
    assert len(batches) == 2


def test_s_grp_4_the_refusal_of_very_many_offsets_is_for_all_that_exist() -> None:
    api = with_many()
    asked = request(8, {"many": dict.fromkeys(range(MANY), 5)}, generation_id_or_member_epoch=3)
    asked.topics[0].partitions[0].committed_metadata = "x" * 4097
    response = api.send(KEY, 8, asked, large=True).response
    assert codes(response) == [ErrorCode.ILLEGAL_GENERATION] * MANY
    assert api.log.batches == {}
