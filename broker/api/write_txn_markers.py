"""WriteTxnMarkers (key 27): append commit and abort markers of transactions to partitions.

Versions: 0-2.

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

from functools import partial
from typing import Final

from broker.api.combined_response import CombinedResponse
from broker.coordinator.marker_writer import Marker, MarkerWriter
from broker.request import Pending, RequestContext, Work
from broker.world.turns import Turns
from protocol.errors import ErrorCode
from protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.types import TopicPartition

VERSIONS: Final = (0, 2)

FEW: Final = 16
"""Markers that are written in one go: each takes an append."""

_Reply = WriteTxnMarkersResponse | Pending


class WriteTxnMarkersHandler:
    """Appends markers to the partitions that are led here, and answers when they are durable."""

    def __init__(self, writer: MarkerWriter) -> None:
        self._writer = writer

    def __call__(
        self, ctx: RequestContext, request: WriteTxnMarkersRequest
    ) -> _Reply | Work[_Reply]:
        """The response, or a `Pending` while markers wait for their turn or for followers."""
        response = _response(request, ErrorCode.NONE)
        work = [
            (
                TopicPartition(topic.name, result.partition_index),
                Marker(
                    producer_id=asked.producer_id,
                    producer_epoch=asked.producer_epoch,
                    coordinator_epoch=asked.coordinator_epoch,
                    commit=asked.transaction_result,
                    transaction_version=asked.transaction_version,
                ),
                result,
            )
            for asked, answered in zip(request.markers, response.markers, strict=True)
            for topic in answered.topics
            for result in topic.partitions
        ]
        combined = CombinedResponse(len(work), lambda: response)

        def written(result: WritableTxnMarkerPartitionResult, code: ErrorCode) -> None:
            result.error_code = code
            combined.note_result()

        def write(
            tp: TopicPartition, marker: Marker, result: WritableTxnMarkerPartitionResult
        ) -> None:
            if marker.producer_id < 0 or marker.producer_epoch < 0:
                written(result, ErrorCode.INVALID_REQUEST)
            else:
                self._writer.write(tp, marker, partial(written, result))

        async def write_in_turns() -> _Reply:
            turns = Turns(items=FEW)
            for one in work:
                write(*one)
                await turns.next()
            return combined.handed_over()

        if len(work) > FEW:
            return write_in_turns()
        for one in work:
            write(*one)
        return combined.handed_over()

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
