"""OffsetDelete over the wire (S-GRP-6)."""

from typing import Any

from broker.api.offset_delete import TOMBSTONES_PER_BATCH
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.records.batch import read_header
from tests.support.group_handlers import OTHER_ID, GroupApi, topic_image, versions

KEY = ApiKey.OFFSET_DELETE


def request(topics: dict[str, list[int]], group: str = "g") -> Any:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=one) for one in numbers],
            )
            for name, numbers in topics.items()
        ],
    )


def results(response: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.name, one.partition_index): one.error_code
        for topic in response.topics
        for one in topic.partitions
    }


def test_partition_by_partition() -> None:
    assert list(versions(KEY)) == [0]
    api = GroupApi()
    generation, (member_id,) = api.stable_group()
    for topic in ("t", "u"):
        api.commit(1, topic=topic, member_id=member_id, generation=generation)
    response = api.call(KEY, 0, request({"t": [0], "u": [0, 5], "nowhere": [0]}))
    assert response.error_code == 0
    assert results(response) == {
        ("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("u", 0): 0,
        ("u", 5): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert api.committed("u") is None


def test_the_groups_refusal(api: GroupApi) -> None:
    response = api.call(KEY, 0, request({"t": [0]}))
    assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert list(response.topics) == []
    assert api.call(KEY, 0, request({}, group="")).error_code == ErrorCode.INVALID_GROUP_ID


def test_a_failed_write(api: GroupApi) -> None:
    api.commit(1)
    api.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    response = api.call(KEY, 0, request({"t": [0]}))
    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert api.committed() == 1


def test_offsets_are_deleted_and_counted_even_if_the_client_has_left(api: GroupApi) -> None:
    api.commit(1)
    api.log.hold = True
    later = api.send(KEY, 0, request({"t": [0]}))
    assert later.parked
    later.leave()
    api.log.release()
    assert api.committed() is None
    assert api.statistics().counters.deleted_offsets == 1


def test_very_many_tombstones_are_written_as_several_batches(api: GroupApi) -> None:
    many = 2 * TOMBSTONES_PER_BATCH + 10
    api.image.set_topic(topic_image("many", OTHER_ID, many))
    for partition in range(many):
        api.commit(5, topic="many", partition=partition)
    (batches,) = api.log.batches.values()
    batches.clear()
    api.log.hold = True
    later = api.send(KEY, 0, request({"many": list(range(many))}), large=True)
    for written in range(1, 4):
        # All batches are written, even if the client leaves, so the request is not parked.
        assert not later.done
        assert not later.parked
        assert len(batches) == written
        api.log.release_one()
    assert set(results(later.response).values()) == {ErrorCode.NONE}
    counts = [read_header(one).record_count for one in batches]
    assert counts == [TOMBSTONES_PER_BATCH, TOMBSTONES_PER_BATCH, 10]
    missing = request({"many": [0]}, group="none")
    assert api.send(KEY, 0, missing, large=True).response.error_code == (
        ErrorCode.GROUP_ID_NOT_FOUND
    )
