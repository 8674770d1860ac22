"""DescribeTopicPartitions (key 75): topics and their partitions, a page at a time (KIP-966).

Behaviour
* Topics come in the order of their names, from the cursor on: those named, or all. A topic that is
  named twice comes once.
* A page ends when it has `response_partition_limit` partitions, at least 1 and at most
  `max.request.partition.size.limit`; then `next_cursor` says where the next one begins.
* An unknown name is UNKNOWN_TOPIC_OR_PARTITION, one that no topic can have INVALID_TOPIC_EXCEPTION;
  the limit does not count such topics. A request for all topics leaves out a topic that has gone
  since the cursor was given out.
* INVALID_REQUEST if the request names topics, but not that of the cursor, and for a cursor with a
  negative partition.
* Leader -1 for a leader without an address for the client's listener. There are no eligible leader
  replicas beside the ISR (KIP-966), so both lists of them are empty.
* The answer always has the operations that the client may do with a topic, also with unknown ones.
* Named topics that the client may not describe are TOPIC_AUTHORIZATION_FAILED, whether they exist
  or not, on every page and behind the others. A request for all topics gets those that the client
  may describe.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain, islice
from typing import Final, NamedTuple

from broker import many
from broker.api_facts import Api
from broker.cluster.endpoints import endpoint_for
from broker.cluster.image import INTERNAL_TOPICS, NO_LEADER, MetadataImage, TopicImage
from broker.cluster.topic_names import invalid_name_reason
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.authorized_operations import authorized_operations
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_topic_partitions import (
    DescribedTopic,
    DescribedTopicPartition,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicPartitionsCursor,
    TopicPartitionsTopic,
)
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    versions=(0, 0),
    shows_image=True,
    # DescribeTopicPartitionsRequestHandler.handleDescribeTopicPartitionsRequest
    asks=(Question(ResourceType.TOPIC, Operation.DESCRIBE),),
    make=lambda s: DescribeTopicPartitionsHandler(
        s.image, s.config.max_request_partition_size_limit, allowed=s.allowed
    ),
)

_SORTED_IN_ONE_GO: Final = 1024


class _Part(NamedTuple):
    """The part of one answer that describes one topic."""

    name: str
    topic: TopicImage | None
    operations: int | None = None
    """The operations that the client may do; None: it may not even describe the topic."""
    indexes: range = range(0)


class DescribeTopicPartitionsHandler:
    """Describes topics of the metadata image in the order of their names."""

    def __init__(
        self,
        image: MetadataImage,
        most_partitions: int,
        *,
        allowed: Permissions | None = None,
    ) -> None:
        """`most_partitions`: the most that one answer holds."""
        self._allowed = allowed
        self._image = image
        self._most_partitions = most_partitions

    async def __call__(
        self, ctx: RequestContext, request: DescribeTopicPartitionsRequest
    ) -> DescribeTopicPartitionsResponse:
        """The response, at once. Raises KafkaError INVALID_REQUEST."""
        cursor = request.cursor or TopicPartitionsCursor()
        if cursor.partition_index < 0:
            raise _invalid("the partition of the cursor is negative")
        named: Iterable[TopicPartitionsTopic | TopicImage] = request.topics
        if not request.topics:
            named = list(self._image.topics())
        names: Iterator[str] = (topic.name for topic in named)
        denied: dict[str, None] = {}
        if self._allowed is not None:
            names, denied = await self._judged(ctx, self._allowed, names, cursor, request)
        ordered = await _in_order(names, cursor.topic_name)
        if request.cursor is not None and request.topics:
            first = next(ordered, None)
            if first != cursor.topic_name and cursor.topic_name not in denied:
                raise _invalid("the topics do not include the topic of the cursor")
            ordered = ordered if first is None else chain((first,), ordered)
        room = max(min(request.response_partition_limit, self._most_partitions), 1)
        parts: list[_Part] = []
        next_cursor = None
        last = None
        for name in ordered:
            await PAUSE
            if name == last:
                continue
            last = name
            if not room:
                next_cursor = TopicPartitionsCursor(topic_name=name, partition_index=0)
                break
            topic = self._image.topic(name)
            if topic is None and not request.topics:
                continue
            operations = authorized_operations(self._allowed, ctx, ResourceType.TOPIC, name)
            if topic is None:
                parts.append(_Part(name, None, operations))
                continue
            start = cursor.partition_index if name == cursor.topic_name else 0
            count = _count(topic)
            end = min(count, start + room)
            parts.append(_Part(name, topic, operations, range(start, end)))
            room -= len(parts[-1].indexes)
            if end < count:
                next_cursor = TopicPartitionsCursor(topic_name=name, partition_index=end)
                break
        ctx.large |= sum(len(part.indexes) + 1 for part in parts) + len(denied) > many.MANY
        reachable = frozenset(
            broker.broker_id
            for broker in self._image.brokers()
            if endpoint_for(broker, ctx.connection) is not None
        )
        return DescribeTopicPartitionsResponse(
            topics=many.results(
                parts + [_Part(name, None) for name in denied],
                lambda part: _describe(part, reachable),
            ),
            next_cursor=next_cursor,
        )

    async def _judged(
        self,
        ctx: RequestContext,
        allowed: Permissions,
        names: Iterator[str],
        cursor: TopicPartitionsCursor,
        request: DescribeTopicPartitionsRequest,
    ) -> tuple[Iterator[str], dict[str, None]]:
        """The topics from the cursor on that the client may describe, and named ones it may not."""
        ask = allowed if request.topics else allowed.quietly
        may: dict[str, None] = {}
        denied: dict[str, None] = {}
        for name in names:
            if name >= cursor.topic_name and name not in may and name not in denied:
                if ask(ctx, Operation.DESCRIBE, ResourceType.TOPIC, name):
                    may[name] = None
                elif request.topics:
                    denied[name] = None
            await PAUSE
        return iter(may), denied

    def error_response(
        self, ctx: RequestContext, request: DescribeTopicPartitionsRequest, code: ErrorCode
    ) -> DescribeTopicPartitionsResponse:
        """The code for every topic of the request."""
        return DescribeTopicPartitionsResponse(
            topics=many.results(
                request.topics, lambda topic: DescribedTopic(error_code=code, name=topic.name)
            )
        )


async def _in_order(names: Iterator[str], first: str) -> Iterator[str]:
    """The names from `first` on in their order, merged only as far as the caller takes them."""
    runs = []
    while some := list(islice(names, _SORTED_IN_ONE_GO)):
        runs.append(sorted(name for name in some if name >= first))
        await PAUSE
    return merge(*runs)


def _count(topic: TopicImage) -> int:
    """How many partitions a topic has; a cluster's image lacks those that never had a leader."""
    count = len(topic.partitions)
    return count if count - 1 in topic.partitions else max(topic.partitions) + 1


def _describe(part: _Part, reachable: frozenset[int]) -> DescribedTopic:
    name, topic, operations, indexes = part
    if operations is None:
        return DescribedTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if invalid_name_reason(name) is not None:
            code = ErrorCode.INVALID_TOPIC_EXCEPTION
        return DescribedTopic(
            error_code=code,
            name=name,
            is_internal=name in INTERNAL_TOPICS,
            topic_authorized_operations=operations,
        )
    return DescribedTopic(
        error_code=ErrorCode.NONE,
        name=name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=many.results(
            [index for index in indexes if index in topic.partitions],
            lambda index: _partition(topic, index, reachable),
        ),
        topic_authorized_operations=operations,
    )


def _partition(topic: TopicImage, index: int, reachable: frozenset[int]) -> DescribedTopicPartition:
    partition = topic.partitions[index]
    return DescribedTopicPartition(
        error_code=ErrorCode.NONE,
        partition_index=index,
        leader_id=partition.leader if partition.leader in reachable else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=list(partition.offline_replicas),
    )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"DescribeTopicPartitions: {reason}.")
