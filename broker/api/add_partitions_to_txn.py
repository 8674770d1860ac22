"""AddPartitionsToTxn (key 24): say which partitions a transaction is going to write to.

Behaviour (S-TXN-4)
* All or nothing in each transaction: if a partition does not exist, its result is
  UNKNOWN_TOPIC_OR_PARTITION, if a client may not write to its topic TOPIC_AUTHORIZATION_FAILED,
  that of the others OPERATION_NOT_ATTEMPTED, and nothing is added. No client may add partitions of
  internal topics (AddOffsetsToTxn does).
* TRANSACTIONAL_ID_AUTHORIZATION_FAILED for a client that may not write with the transactional id.
* Otherwise every partition gets the coordinator's one answer: NONE, INVALID_PRODUCER_ID_MAPPING,
  PRODUCER_FENCED, or CONCURRENT_TRANSACTIONS while the last transaction is being completed.
* v0-3 come from clients and name one transaction. v4+ come from brokers on behalf of Produce
  (KIP-890), name many, and add partitions for clients of `transaction.version` 2. With
  `verify_only` they add nothing: a partition outside the transaction is TRANSACTION_ABORTABLE.

Version notes
* v2+: PRODUCER_FENCED; older versions get INVALID_PRODUCER_EPOCH.
"""

from collections.abc import Collection
from typing import Final

from broker import many
from broker.api_facts import Api
from broker.cluster.image import INTERNAL_TOPICS, MetadataImage
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.decisions import Producer
from broker.coordinator.transaction.errors import FENCED_SINCE_OTHERS, for_version
from broker.coordinator.transaction.state import VERSION_2
from broker.request import RequestContext
from broker.security.access import CLUSTER_NAME, Access, Operation, Question, ResourceType
from broker.security.permissions import Permissions
from broker.world.in_turn import begin
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from protocol.types import TopicPartition
from storage.waits import PAUSE

FIRST_BATCHED_VERSION: Final = 4


def _cluster(ctx: RequestContext, request: AddPartitionsToTxnRequest) -> tuple[str, ...]:
    return () if ctx.api_version < FIRST_BATCHED_VERSION else (CLUSTER_NAME,)


def _transaction(ctx: RequestContext, request: AddPartitionsToTxnRequest) -> tuple[str, ...]:
    if ctx.api_version < FIRST_BATCHED_VERSION:
        return (request.v3_and_below_transactional_id,)
    return ()


API: Final = Api(
    key=ApiKey.ADD_PARTITIONS_TO_TXN,
    versions=(0, 5),
    most_elements=20_000,
    # KafkaApis.handleAddPartitionsToTxnRequest: versions 0-3 come from clients, 4+ from brokers.
    accesses=(
        Access(ResourceType.CLUSTER, Operation.CLUSTER_ACTION, _cluster),
        Access(ResourceType.TRANSACTIONAL_ID, Operation.WRITE, _transaction),
    ),
    asks=(Question(ResourceType.TOPIC, Operation.WRITE),),
    make=lambda s: AddPartitionsToTxnHandler(s.transaction_coordinator, s.image, allowed=s.allowed),
)

_Codes = dict[TopicPartition, ErrorCode]
_Asked = AddPartitionsToTxnTransaction
_Response = AddPartitionsToTxnResponse


class AddPartitionsToTxnHandler:
    """Has the coordinator add partitions to transactions, or verify that they belong to one."""

    def __init__(
        self,
        transactions: TransactionCoordinator,
        image: MetadataImage,
        *,
        allowed: Permissions | None = None,
    ) -> None:
        self._allowed = allowed
        self._transactions = transactions
        self._image = image

    async def __call__(self, ctx: RequestContext, request: AddPartitionsToTxnRequest) -> _Response:
        """The response, when the records of all transactions are durable."""
        version = ctx.api_version
        asked = _batched(version, request)
        answers = []
        for number, transaction in enumerate(asked):
            if number:
                await PAUSE
            denied = await self._denied(ctx, transaction)
            answers.append(begin(self._handle(version, transaction, denied)))
        ctx.released = True
        return _response(version, asked, [await answer.parked() for answer in answers])

    async def _denied(self, ctx: RequestContext, transaction: _Asked) -> Collection[str]:
        """The topics that a client may not write to; a broker is not asked."""
        denied: set[str] = set()
        if ctx.api_version >= FIRST_BATCHED_VERSION:
            return denied
        allowed = self._allowed
        for topic in transaction.topics:
            name = topic.name
            if name in INTERNAL_TOPICS or not (
                allowed is None
                or allowed(ctx, Operation.WRITE, ResourceType.TOPIC, name, len(topic.partitions))
            ):
                denied.add(name)
            if ctx.large:
                await PAUSE
        return denied

    async def _handle(self, version: int, transaction: _Asked, denied: Collection[str]) -> _Codes:
        """Handle one transaction; return the codes of its partitions."""
        partitions = _partitions(transaction)
        codes = {tp: self._code(tp, denied) for tp in partitions}
        if any(code is not ErrorCode.OPERATION_NOT_ATTEMPTED for code in codes.values()):
            return codes
        producer = Producer(transaction.producer_id, transaction.producer_epoch)
        if transaction.verify_only:
            name = transaction.transactional_id
            return {tp: self._verified(name, producer, tp) for tp in partitions}
        try:
            code = await self._transactions.add_partitions(
                transaction.transactional_id,
                producer,
                partitions,
                version=VERSION_2 if version >= FIRST_BATCHED_VERSION else 0,
            )
        except KafkaError as error:
            code = error.code
        return dict.fromkeys(partitions, for_version(code, version, FENCED_SINCE_OTHERS))

    def _code(self, tp: TopicPartition, denied: Collection[str]) -> ErrorCode:
        """The partition's code if nothing is added."""
        if tp.topic in denied:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if self._image.has(tp):
            return ErrorCode.OPERATION_NOT_ATTEMPTED
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _verified(self, transactional_id: str, producer: Producer, tp: TopicPartition) -> ErrorCode:
        try:
            self._transactions.verify_partition(transactional_id, producer, tp)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def error_response(
        self, ctx: RequestContext, request: AddPartitionsToTxnRequest, code: ErrorCode
    ) -> AddPartitionsToTxnResponse:
        """`code` for every partition; from v4 on once, for the whole response."""
        version = ctx.api_version
        if version >= FIRST_BATCHED_VERSION:
            return AddPartitionsToTxnResponse(error_code=code)
        asked = _batched(version, request)
        code = for_version(code, version, FENCED_SINCE_OTHERS)
        return _response(version, asked, [dict.fromkeys(_partitions(asked[0]), code)])


def _batched(version: int, request: AddPartitionsToTxnRequest) -> list[_Asked]:
    """The transactions of a request of any version, in the form of v4+."""
    if version >= FIRST_BATCHED_VERSION:
        return list(request.transactions)
    return [
        AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            verify_only=False,
            topics=request.v3_and_below_topics,
        )
    ]


def _partitions(transaction: _Asked) -> list[TopicPartition]:
    return list(
        dict.fromkeys(
            TopicPartition(topic.name, partition)
            for topic in transaction.topics
            for partition in topic.partitions
        )
    )


def _response(version: int, asked: list[_Asked], results: list[_Codes]) -> _Response:
    if version < FIRST_BATCHED_VERSION:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_topics(asked[0], results[0])
        )

    def result(at: int) -> AddPartitionsToTxnResult:
        return AddPartitionsToTxnResult(
            transactional_id=asked[at].transactional_id,
            topic_results=_topics(asked[at], results[at]),
        )

    return AddPartitionsToTxnResponse(
        results_by_transaction=many.results(range(len(asked)), result)
    )


def _topics(transaction: _Asked, codes: _Codes) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=codes[TopicPartition(topic.name, index)],
                )
                for index in topic.partitions
            ],
        )
        for topic in transaction.topics
    ]
