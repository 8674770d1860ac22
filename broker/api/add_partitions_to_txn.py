"""AddPartitionsToTxn (key 24): say which partitions a transaction is going to write to.

Versions: 0-3 (4 and 5 are for brokers that verify with each other, KIP-890).

Behaviour (S-TXN-4)
* All or nothing: when one partition does not exist it is UNKNOWN_TOPIC_OR_PARTITION, the others
  OPERATION_NOT_ATTEMPTED, and nothing is added.
* Otherwise the coordinator's word is repeated for every partition: INVALID_PRODUCER_ID_MAPPING,
  PRODUCER_FENCED, CONCURRENT_TRANSACTIONS while the last transaction is being completed.

Version notes
* v2+: PRODUCER_FENCED, before INVALID_PRODUCER_EPOCH.
"""

from typing import Any, Final

from broker.api.transaction_errors import FENCED_SINCE_OTHERS, for_version
from broker.cluster.image import MetadataImage
from broker.coordinator.answers import ParkedAnswer
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.request import RequestContext
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from protocol.types import TopicPartition

VERSIONS: Final = (0, 3)


class AddPartitionsToTxnHandler:
    """See the module."""

    def __init__(self, transactions: TransactionCoordinator, image: MetadataImage) -> None:
        self._transactions = transactions
        self._image = image

    def __call__(self, ctx: RequestContext, request: Any) -> Any:
        """The response, or a `Pending` when followers have to have the record first."""
        asked = [
            TopicPartition(topic.name, partition)
            for topic in request.v3_and_below_topics
            for partition in topic.partitions
        ]
        unknown = {tp for tp in asked if not self._exists(tp)}
        if unknown:
            return _response(
                request,
                lambda tp: (
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    if tp in unknown
                    else ErrorCode.OPERATION_NOT_ATTEMPTED
                ),
            )
        producer = Producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        answer = ParkedAnswer(lambda code: self.error_response(ctx, request, code))
        try:
            self._transactions.add_partitions(
                request.v3_and_below_transactional_id, producer, asked, answer
            )
        except KafkaError as error:
            return self.error_response(ctx, request, error.code)
        return answer.handed_over()

    def _exists(self, tp: TopicPartition) -> bool:
        topic = self._image.topic(tp.topic)
        return topic is not None and tp.partition in topic.partitions

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        """`code` for every partition."""
        code = for_version(code, ctx.api_version, FENCED_SINCE_OTHERS)
        return _response(request, lambda tp: code)


def _response(request: Any, code_of: Any) -> Any:
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=partition,
                        partition_error_code=code_of(TopicPartition(topic.name, partition)),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
    )
