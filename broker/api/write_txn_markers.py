"""WriteTxnMarkers (key 27): append commit and abort markers of transactions to partitions.

Behaviour (S-TXN-2, S-TXN-5)
* Other brokers' coordinators send it, and an administrator who aborts a hanging transaction
  (`kafka-transactions abort`); this broker's own coordinator writes its markers without it.
* Each partition has its own result: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
  INVALID_PRODUCER_EPOCH for an epoch below the one that the partition knows,
  TRANSACTION_COORDINATOR_FENCED for an older coordinator epoch.
* A marker of no producer (a negative id or epoch) is an INVALID_REQUEST. (Kafka: unknown error.)
* A marker without an open transaction is written, too, and raises the producer's epoch.
* A marker in `__consumer_offsets` also makes the transaction's offsets visible, or drops them.

Version notes
* v2: the request has the transaction version; from 2 on the marker's epoch must be above that of
  the transaction's records (INVALID_PRODUCER_EPOCH, KIP-890).
"""

from typing import Final

from broker.api_facts import Api
from broker.coordinator.marker_writer import Marker, MarkerWriter
from broker.quotas.throttle import Charged
from broker.request import RequestContext
from broker.security.access import Access, Operation, Question, ResourceType
from broker.world.in_turn import begin
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.types import TopicPartition
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.WRITE_TXN_MARKERS,
    versions=(0, 2),
    most_elements=20_000,
    charged=Charged.NOTHING,
    # KafkaApis.handleWriteTxnMarkersRequest
    accesses=(
        Access(
            ResourceType.CLUSTER,
            Operation.CLUSTER_ACTION,
            unless=Question(ResourceType.CLUSTER, Operation.ALTER),
        ),
    ),
    make=lambda s: WriteTxnMarkersHandler(s.marker_writer),
)


_OF_COORDINATORS: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)
"""Codes of a partition of offsets. Kafka 3.9's transaction coordinator never repeats a marker that
is refused with one of them, so it gets NOT_LEADER_OR_FOLLOWER (`handleWriteTxnMarkersRequest`)."""


class WriteTxnMarkersHandler:
    """Appends markers to the partitions that are led here, and answers when they are durable."""

    def __init__(self, writer: MarkerWriter) -> None:
        self._writer = writer

    async def __call__(
        self, ctx: RequestContext, request: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse:
        """The response, when all markers are durable."""
        response = _response(request, ErrorCode.NONE)
        writes = []
        for asked, answered in zip(request.markers, response.markers, strict=True):
            marker = Marker(
                producer_id=asked.producer_id,
                producer_epoch=asked.producer_epoch,
                coordinator_epoch=asked.coordinator_epoch,
                commit=asked.transaction_result,
                transaction_version=asked.transaction_version,
            )
            for topic in answered.topics:
                for result in topic.partitions:
                    tp = TopicPartition(topic.name, result.partition_index)
                    writes.append((result, begin(self._write(tp, marker))))
                    await PAUSE
        ctx.released = True
        for result, written in writes:
            result.error_code = await written.parked()
        return response

    async def _write(self, tp: TopicPartition, marker: Marker) -> ErrorCode:
        if marker.producer_id < 0 or marker.producer_epoch < 0:
            return ErrorCode.INVALID_REQUEST
        code = await self._writer.write(tp, marker)
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _OF_COORDINATORS else code

    def error_response(
        self, ctx: RequestContext, request: WriteTxnMarkersRequest, code: ErrorCode
    ) -> WriteTxnMarkersResponse:
        """`code` for every partition."""
        return _response(request, code)


def _response(request: WriteTxnMarkersRequest, code: ErrorCode) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
