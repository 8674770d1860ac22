"""Pages of topics and partitions (KIP-966)."""

from dataclasses import replace
from typing import Any

import pytest

from broker.api.describe_topic_partitions import DescribeTopicPartitionsHandler
from broker.cluster.image import NO_LEADER, BrokerImage, MetadataImage
from broker.security.authorized_operations import EVERYTHING, NOT_ASKED
from config.listener import Listener
from protocol.acls.vocabulary import Operation, ResourceType
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicPartitionsCursor,
    TopicPartitionsTopic,
)
from tests.support.acl_stores import NotedPermissions
from tests.support.api_calls import call
from tests.support.group_handlers import topic_image

KEY = ApiKey.DESCRIBE_TOPIC_PARTITIONS
MOST = 7
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def made(
    *topics: tuple[str, int], most: int = MOST, allowed: NotedPermissions | None = None
) -> DescribeTopicPartitionsHandler:
    image = MetadataImage()
    image.set_broker(BrokerImage(broker_id=1, endpoints=()))
    for number, (name, count) in enumerate(topics):
        image.set_topic(topic_image(name, (number + 1).to_bytes(16), count))
    return DescribeTopicPartitionsHandler(image, most, allowed=allowed)


def page(
    handler: DescribeTopicPartitionsHandler,
    *names: str,
    limit: int = 100,
    cursor: tuple[str, int] | None = None,
) -> tuple[list[tuple[str, list[int]]], tuple[str, int] | None, Any]:
    """The partitions by topic, the next cursor, and the answer."""
    answer = call(
        handler,
        KEY,
        0,
        DescribeTopicPartitionsRequest(
            topics=[TopicPartitionsTopic(name=name) for name in names],
            response_partition_limit=limit,
            cursor=None
            if cursor is None
            else TopicPartitionsCursor(topic_name=cursor[0], partition_index=cursor[1]),
        ),
    )
    found = [(topic.name, [p.partition_index for p in topic.partitions]) for topic in answer.topics]
    following = answer.next_cursor
    return found, following and (following.topic_name, following.partition_index), answer


def test_all_topics_in_the_order_of_their_names() -> None:
    handler = made(("c", 1), ("a", 2), ("b", 1))
    assert page(handler)[:2] == ([("a", [0, 1]), ("b", [0]), ("c", [0])], None)


def test_named_topics_once_each_with_those_that_there_are_not() -> None:
    handler = made(("c", 1), ("a", 2), ("b", 1))
    found, following, answer = page(handler, "c", "no", "a", "c", "a b")
    assert (found, following) == ([("a", [0, 1]), ("a b", []), ("c", [0]), ("no", [])], None)
    codes = [topic.error_code for topic in answer.topics]
    assert codes == [0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0, UNKNOWN]
    assert [any(topic.topic_id) for topic in answer.topics] == [True, False, True, False]
    operations = {topic.topic_authorized_operations for topic in answer.topics}
    assert operations == {EVERYTHING[ResourceType.TOPIC]}


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 100, 0, -3])
@pytest.mark.parametrize("named", [False, True])
def test_pages_together_tell_everything_once(limit: int, named: bool) -> None:
    sizes = {"a": 3, "b": 1, "c": 5, "d": 2}
    handler = made(*sizes.items())
    names = sizes if named else ()
    told: list[tuple[str, int]] = []
    cursor = None
    for _ in range(20):
        found, cursor, _ = page(handler, *names, limit=limit, cursor=cursor)
        count = sum(len(indexes) for _, indexes in found)
        assert 0 < count <= min(max(limit, 1), MOST)
        assert cursor is None or count == min(max(limit, 1), MOST)
        told += [(name, index) for name, indexes in found for index in indexes]
        if cursor is None:
            break
    assert told == [(name, index) for name, count in sizes.items() for index in range(count)]


def test_a_page_that_ends_with_a_topic_goes_on_with_the_next() -> None:
    handler = made(("a", 2), ("b", 2))
    assert page(handler, limit=2)[1] == ("b", 0)
    assert page(handler, "a", "aa", "b", limit=2)[1] == ("aa", 0)  # found out on the next page
    assert page(handler, "a", limit=2)[1] is None


def test_a_cursor_begins_in_the_middle_or_behind_the_end() -> None:
    handler = made(("a", 2), ("b", 2))
    assert page(handler, cursor=("a", 1))[0] == [("a", [1]), ("b", [0, 1])]
    assert page(handler, cursor=("a", 9))[0] == [("a", []), ("b", [0, 1])]
    assert page(handler, cursor=("aa", 5))[0] == [("b", [0, 1])]  # it has been deleted
    assert page(handler, "b", "aa", cursor=("aa", 5))[0] == [("aa", []), ("b", [0, 1])]


def test_cursors_that_make_no_sense() -> None:
    handler = made(("a", 2), ("b", 2))
    for names, cursor in ((("b",), ("a", 0)), (("a",), ("b", 0)), ((), ("a", -1))):
        answer = page(handler, *names, cursor=cursor)[2]
        assert [one.error_code for one in answer.topics] == [ErrorCode.INVALID_REQUEST] * len(names)


def test_more_names_than_are_sorted_in_one_go() -> None:
    names = [f"t{number:05}" for number in range(3_000)]
    handler = made(*((name, 1) for name in reversed(names)), most=10_000)
    assert [name for name, _ in page(handler, limit=10_000)[0]] == names
    assert page(handler, limit=2, cursor=(names[1_500], 0))[1] == (names[1_502], 0)


def test_partitions_as_the_image_has_them() -> None:
    listener = Listener(name="OTHER", host="elsewhere", port=1, protocol="PLAINTEXT")
    image = MetadataImage()
    image.set_broker(BrokerImage(broker_id=1, endpoints=()))
    image.set_broker(BrokerImage(broker_id=2, endpoints=(listener,)))
    topic = topic_image("__consumer_offsets", b"x" * 16, 2)
    first = replace(topic.partitions[0], leader_epoch=3, replicas=(1, 2), offline_replicas=(2,))
    partitions = {0: first, 1: replace(first, leader=2)}
    image.set_topic(replace(topic, partitions=partitions))
    (told,) = page(DescribeTopicPartitionsHandler(image, MOST))[2].topics
    assert told.is_internal
    assert told.topic_id == b"x" * 16
    zero, one = told.partitions
    assert (zero.leader_id, zero.leader_epoch) == (1, 3)
    assert (zero.replica_nodes, zero.isr_nodes, zero.offline_replicas) == ([1, 2], [1], [2])
    assert (zero.eligible_leader_replicas, zero.last_known_elr) == ([], [])
    assert (one.leader_id, one.error_code) == (NO_LEADER, 0)  # no address for this listener


def denying(*names: str) -> NotedPermissions:
    return NotedPermissions([(ResourceType.TOPIC, Operation.DESCRIBE, name) for name in names])


def test_s_acl_1_named_topics_that_are_denied_are_told_last_on_every_page_and_of_nothing() -> None:
    allowed = denying("a", "no")
    handler = made(("a", 1), ("b", 1), ("c", 1), allowed=allowed)
    found, following, answer = page(handler, "c", "no", "b", "a", "a", limit=1)
    assert (found, following) == ([("b", [0]), ("no", []), ("a", [])], ("c", 0))
    denied = answer.topics[1:]
    assert {topic.error_code for topic in denied} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert {topic.topic_id for topic in denied} == {bytes(16)}
    assert {topic.topic_authorized_operations for topic in denied} == {NOT_ASKED}
    describe = Operation.DESCRIBE
    assert allowed.asked == [(ResourceType.TOPIC, describe, name) for name in ("c", "no", "b", "a")]
    found, following, _ = page(handler, "c", "no", "b", "a", cursor=("c", 0))
    assert (found, following) == ([("c", [0]), ("no", [])], None)


def test_s_acl_1_all_topics_are_those_that_may_be_described() -> None:
    allowed = denying("b")
    handler = made(("a", 1), ("b", 1), ("c", 1), allowed=allowed)
    assert page(handler)[:2] == ([("a", [0]), ("c", [0])], None)
    assert page(handler, limit=1)[:2] == ([("a", [0])], ("c", 0))
    assert page(handler, cursor=("b", 3))[:2] == ([("c", [0])], None)
    assert not allowed.asked  # what a listing leaves out is no news for the audit log


def test_s_acl_1_a_denied_topic_of_the_cursor_is_no_wrong_request() -> None:
    handler = made(("a", 3), ("b", 2), allowed=denying("a"))
    found, _, answer = page(handler, "a", "b", cursor=("a", 1))
    assert found == [("b", [0, 1]), ("a", [])]
    assert answer.topics[1].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    found, _, answer = page(handler, "a", cursor=("a", 1))
    assert found == [("a", [])]
    answer = page(handler, "b", cursor=("a", 1))[2]
    assert [one.error_code for one in answer.topics] == [ErrorCode.INVALID_REQUEST]


def test_s_acl_10_the_operations_of_each_topic_are_told() -> None:
    allowed = NotedPermissions([(ResourceType.TOPIC, Operation.DELETE, "a")])
    handler = made(("a", 1), ("b", 1), allowed=allowed)
    told = [topic.topic_authorized_operations for topic in page(handler)[2].topics]
    everything = EVERYTHING[ResourceType.TOPIC]
    assert [bits & everything for bits in told] == [
        everything & ~(1 << Operation.DELETE),
        everything,
    ]
