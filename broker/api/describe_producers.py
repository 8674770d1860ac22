"""DescribeProducers (key 61): the producer state of partitions.

Behaviour (KIP-664): the answer has every producer that a partition remembers, with the first offset
of its open transaction, which reveals hanging transactions. Each partition has its own result. A
follower answers, too, from its own log, for `kafka-transactions find-hanging --broker-id`. A name
that no topic can have is an INVALID_TOPIC_EXCEPTION, a topic that the client may not read
TOPIC_AUTHORIZATION_FAILED.
"""

from typing import Final

from broker import many
from broker.api_facts import Api
from broker.cluster.topic_names import invalid_name_reason
from broker.replication.replica_manager import ReplicaManager
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from protocol.schema.lazy import Lazy
from protocol.types import TopicPartition
from storage.producers.entry import ProducerStateEntry

API: Final = Api(
    key=ApiKey.DESCRIBE_PRODUCERS,
    versions=(0, 0),
    ends_with_client=True,
    # KafkaApis.handleDescribeProducersRequest
    asks=(Question(ResourceType.TOPIC, Operation.READ),),
    make=lambda s: DescribeProducersHandler(s.replica_manager, allowed=s.allowed),
)


class DescribeProducersHandler:
    """Describes the producer state of partitions that have a replica here."""

    def __init__(self, replicas: ReplicaManager, *, allowed: Permissions | None = None) -> None:
        self._allowed = allowed
        self._replicas = replicas

    def __call__(
        self, ctx: RequestContext, request: DescribeProducersRequest
    ) -> DescribeProducersResponse:
        """The response; partitions are described one at a time, while it is encoded."""

        def described(topic: TopicRequest) -> TopicResponse:
            code = self._refusal(ctx, topic.name)

            def partition(index: int) -> PartitionResponse:
                if code is not ErrorCode.NONE:
                    return _refused(index, code)
                return self._describe(TopicPartition(topic.name, index))

            return TopicResponse(
                name=topic.name, partitions=Lazy(topic.partition_indexes, partition)
            )

        ctx.large = True  # a partition may remember very many producers
        return DescribeProducersResponse(topics=Lazy(request.topics, described))

    def _refusal(self, ctx: RequestContext, topic: str) -> ErrorCode:
        """Why a topic's partitions are not described; NONE if they are."""
        if invalid_name_reason(topic) is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        allowed = self._allowed
        if allowed is None or allowed(ctx, Operation.READ, ResourceType.TOPIC, topic):
            return ErrorCode.NONE
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def _describe(self, tp: TopicPartition) -> PartitionResponse:
        try:
            log = self._replicas.replica(tp).log
        except KafkaError as error:
            return _refused(tp.partition, error.code)
        return PartitionResponse(
            partition_index=tp.partition,
            active_producers=many.results(list(log.producers.producers.values()), _producer),
        )

    def error_response(
        self, ctx: RequestContext, request: DescribeProducersRequest, code: ErrorCode
    ) -> DescribeProducersResponse:
        """`code` for every partition."""
        return DescribeProducersResponse(
            topics=[
                TopicResponse(
                    name=topic.name,
                    partitions=[_refused(index, code) for index in topic.partition_indexes],
                )
                for topic in request.topics
            ]
        )


def _producer(entry: ProducerStateEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.current_txn_first_offset,
    )


def _refused(index: int, code: ErrorCode) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=code.text)
