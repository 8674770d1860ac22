"""OffsetFetch over the wire (S-GRP-4)."""

from typing import Any

import pytest

from broker.coordinator.group.data.offsets import CommittedOffset
from broker.many import MANY
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.support.api_calls import context
from tests.support.group_handlers import OTHER_ID, TOPIC_ID, GroupApi, topic_image, versions

KEY = ApiKey.OFFSET_FETCH
IDS = {"t": TOPIC_ID, "u": bytes(15) + b"u", "nowhere": OTHER_ID}


def request(version: int, topics: dict[str, list[int]] | None, **fields: Any) -> Any:
    if version < 8:
        return OffsetFetchRequest(
            group_id="g",
            topics=None
            if topics is None
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                for name, numbers in topics.items()
            ],
            **fields,
        )
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id="g",
                topics=None
                if topics is None
                else [
                    OffsetFetchRequestTopics(
                        **({"topic_id": IDS[name]} if version >= 10 else {"name": name}),
                        partition_indexes=numbers,
                    )
                    for name, numbers in topics.items()
                ],
            )
        ],
        **fields,
    )


def found(response: Any, version: int) -> dict[tuple[str, int], tuple[int, int, str, int]]:
    """(topic, partition) -> (offset, epoch, metadata, error)."""
    names = {topic_id: name for name, topic_id in IDS.items()}
    topics = response.topics if version < 8 else response.groups[0].topics
    return {
        (names[topic.topic_id] if version >= 10 else topic.name, one.partition_index): (
            one.committed_offset,
            one.committed_leader_epoch,
            one.metadata,
            one.error_code,
        )
        for topic in topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", versions(KEY))
def test_offsets_in_every_version(api: GroupApi, version: int) -> None:
    api.commit(5, partition=0, metadata="md", leader_epoch=3)
    response = api.call(KEY, version, request(version, {"t": [0, 1]}))
    assert found(response, version) == {
        ("t", 0): (5, 3 if version >= 5 else -1, "md", 0),
        ("t", 1): (-1, -1, "", 0),
    }


@pytest.mark.parametrize("version", range(2, 11))
def test_s_grp_4_null_topics_are_all_topics(api: GroupApi, version: int) -> None:
    api.commit(5, topic="t", partition=2)
    api.commit(6, topic="u")
    api.commit(7, topic="deleted")
    response = api.call(KEY, version, request(version, None))
    expected = {("t", 2), ("u", 0)} | (set() if version >= 10 else {("deleted", 0)})
    assert set(found(response, version)) == expected
    assert found(response, version)["t", 2][0] == 5


@pytest.mark.parametrize("version", versions(KEY))
def test_a_group_that_is_not_there_has_no_offsets(version: int) -> None:
    response = GroupApi().call(KEY, version, request(version, {"t": [1]}))
    assert found(response, version) == {("t", 1): (-1, -1, "", 0)}


def test_an_unknown_topic_id() -> None:
    response = GroupApi().call(KEY, 10, request(10, {"nowhere": [0]}))
    assert found(response, 10) == {("nowhere", 0): (-1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)}
    assert response.groups[0].error_code == 0


def test_an_offset_of_another_topic_of_the_same_name(api: GroupApi) -> None:
    old = CommittedOffset(offset=9, commit_timestamp_ms=0, topic_id=OTHER_ID)
    api.commit(5, partition=1)
    api.shard().offsets.put(("g", "t", 0), old)
    offsets = found(api.call(KEY, 10, request(10, {"t": [0, 1]})), 10)
    assert [offsets["t", 0][0], offsets["t", 1][0]] == [-1, 5]
    assert found(api.call(KEY, 9, request(9, {"t": [0]})), 9)["t", 0][0] == 9


def test_many_groups_with_errors_of_their_own(
    api: GroupApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.commit(5, group="one")
    find = api.coordinator.fetch_offset

    def fetch_offset(group_id: str) -> Any:
        if group_id == "loading":
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return find(group_id)

    monkeypatch.setattr(api.coordinator, "fetch_offset", fetch_offset)
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    groups = [
        OffsetFetchRequestGroup(group_id=group, topics=topics, member_id=None)
        for group in ("one", "loading", "other")
    ]
    response = api.call(KEY, 9, OffsetFetchRequest(groups=groups))
    assert [(group.group_id, group.error_code) for group in response.groups] == [
        ("one", 0),
        ("loading", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ("other", 0),
    ]
    assert response.groups[0].topics[0].partitions[0].committed_offset == 5
    assert response.groups[1].topics == []
    assert response.groups[2].topics[0].partitions[0].committed_offset == -1


@pytest.mark.parametrize("version", versions(KEY))
def test_a_refusal_of_the_group_in_every_version(api: GroupApi, version: int) -> None:
    api.coordinator.shutdown()
    response = api.call(KEY, version, request(version, {"t": [0]}))
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if version < 2:
        assert found(response, version) == {("t", 0): (-1, -1, "", code)}
    elif version < 8:
        assert response.error_code == code
    else:
        assert response.groups[0].error_code == code
    assert api.refuse(KEY, version, request(version, {"t": [0]}), code) == response


@pytest.mark.parametrize("version", [7, 8, 10])
def test_require_stable(api: GroupApi, version: int) -> None:
    api.commit(5)
    pending = CommittedOffset(offset=9, commit_timestamp_ms=0)
    api.shard().offsets.put_pending(1, ("g", "t", 0), pending)
    asked = request(version, {"t": [0]}, require_stable=True)
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert found(api.call(KEY, version, asked), version) == {("t", 0): (-1, -1, "", unstable)}
    asked.require_stable = False
    assert found(api.call(KEY, version, asked), version)["t", 0][0] == 5


@pytest.mark.parametrize("version", versions(KEY)[2:])
def test_all_offsets_of_a_group_with_very_many_are_encoded_in_turns(
    api: GroupApi, version: int
) -> None:
    api.image.set_topic(topic_image("many", OTHER_ID, MANY + 1))
    for partition in range(MANY + 1):
        api.commit(1, topic="many", partition=partition)
    some = request(version, {"t": [0]})
    assert not api.send(KEY, version, some).large
    later = api.send(KEY, version, request(version, None))
    assert later.large
    assert len(found(later.response, version)) == MANY + 1


def test_a_coordinator_may_resign_while_a_large_answer_is_encoded(api: GroupApi) -> None:
    for partition in range(MANY + 2):
        api.commit(5, partition=partition)
    handler = api.handlers[KEY]
    answer: Any = handler(context(KEY, 9), request(9, None, require_stable=True))
    (group,) = answer.groups
    (topic,) = group.topics
    offsets = []
    for partition in topic.partitions:
        offsets.append(partition.committed_offset)
        api.coordinator.on_resigned(api.coordinator.partition_for("g"))
    assert offsets == [5] * (MANY + 2)


@pytest.mark.parametrize("version", versions(KEY)[8:])
def test_all_offsets_of_groups_that_have_very_many_together_are_encoded_in_turns(
    api: GroupApi, version: int
) -> None:
    """A request of 4 KB may name a group a thousand times."""
    for partition in range(3):
        api.commit(1, partition=partition)
    groups = request(version, None).groups * (MANY // 3)
    assert not api.send(KEY, version, OffsetFetchRequest(groups=groups)).large
    later = api.send(KEY, version, OffsetFetchRequest(groups=[*groups, groups[0]]))
    assert later.large
    assert [len(one.topics[0].partitions) for one in later.response.groups] == [3] * (
        len(groups) + 1
    )
