"""Writes transaction markers to whichever brokers lead the partitions: `MarkerWriter` in a cluster.

    a partition led here           the writer over this broker's replicas
    led by another broker          queued for that broker; a queue goes in one WriteTxnMarkers
    without a leader, or a broker
      that the image does not know NOT_LEADER_OR_FOLLOWER: the caller tries again, and reads the
                                   image again
    not in the image               UNKNOWN_TOPIC_OR_PARTITION: deleted, so it needs no marker

Rules (Kafka's `TransactionMarkerChannelManager` and `TransactionMarkerRequestCompletionHandler`)

* Markers that queue within a turn of the loop, or while `MOST_UNDER_WAY` requests to the broker are
  under way, go out together, grouped by their transaction.
* Another broker that does not know a partition has not heard of it yet: NOT_LEADER_OR_FOLLOWER.
  Only the image says that a partition is gone.
* A request that is not answered may have been carried out: its markers are written again, which
  does no harm (S-TXN-2).
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

from broker.cluster.image import NO_LEADER, MetadataImage
from broker.coordinator.marker_writer import Marker, MarkerWriter
from broker.peers.peer import Peer, PeerError
from broker.world.tasks import Tasks
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.types import TopicPartition
from storage.waits import Signal

logger = logging.getLogger(__name__)

MOST_UNDER_WAY: Final = 5
"""Requests to one broker at the same time."""
MARKERS_PER_REQUEST: Final = 2_000
"""Partitions in one request: some milliseconds of its receiver's time."""

Connect = Callable[[int], Peer | None]
"""The peer of a broker; None while the image does not know it."""


class _Wanted(NamedTuple):
    """A marker for one partition."""

    tp: TopicPartition
    marker: Marker
    written: Signal[ErrorCode]


class _Destination:
    """The markers that wait for one broker."""

    __slots__ = ("queue", "under_way")

    def __init__(self) -> None:
        self.queue: deque[_Wanted] = deque()
        self.under_way = 0


class ClusterMarkerWriter:
    """See the module, and `broker.coordinator.marker_writer.MarkerWriter`."""

    def __init__(
        self,
        here: MarkerWriter,
        image: MetadataImage,
        broker_id: int,
        connect: Connect,
        *,
        timeout_ms: int,
        tasks: Tasks | None = None,
    ) -> None:
        """`here` writes to this broker's replicas; `timeout_ms` is for each request. `tasks` may
        be shared with others: `run` runs them."""
        self._here = here
        self._image = image
        self._broker_id = broker_id
        self._connect = connect
        self._timeout_s = timeout_ms / 1000
        self._tasks = tasks or Tasks()
        self.run = self._tasks.run
        """Sends what queues for other brokers."""
        self._destinations: dict[int, _Destination] = {}

    async def write(self, tp: TopicPartition, marker: Marker) -> ErrorCode:
        """See `MarkerWriter`."""
        topic = self._image.topic(tp.topic)
        partition = None if topic is None else topic.partitions.get(tp.partition)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition.leader == NO_LEADER:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if partition.leader == self._broker_id:
            code = await self._here.write(tp, marker)
        elif self._tasks.running:
            wanted = _Wanted(tp, marker, Signal())
            self._enqueue(partition.leader, wanted)
            code = await wanted.written
        else:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE  # stopping: the next coordinator writes it
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER  # the image has it, so it exists
        return code

    def _enqueue(self, broker_id: int, wanted: _Wanted) -> None:
        destination = self._destinations.setdefault(broker_id, _Destination())
        destination.queue.append(wanted)
        if len(destination.queue) == 1:
            self._begin(broker_id, destination)

    def _begin(self, broker_id: int, destination: _Destination) -> None:
        """Send what queues in a later turn, unless enough is under way."""
        if destination.under_way < MOST_UNDER_WAY:
            destination.under_way += 1
            self._tasks.begin(partial(self._send, broker_id, destination))

    async def _send(self, broker_id: int, destination: _Destination) -> None:
        try:
            while destination.queue:
                queue = destination.queue
                wanted = [queue.popleft() for _ in range(min(len(queue), MARKERS_PER_REQUEST))]
                await self._send_these(broker_id, wanted)
        finally:
            destination.under_way -= 1

    async def _send_these(self, broker_id: int, wanted: list[_Wanted]) -> None:
        codes: dict[tuple[int, TopicPartition], ErrorCode] = {}
        unanswered = ErrorCode.NOT_LEADER_OR_FOLLOWER
        peer = self._connect(broker_id)
        if peer is not None:
            try:
                answer = await peer.ask(
                    ApiKey.WRITE_TXN_MARKERS, _request(wanted), timeout_s=self._timeout_s
                )
                assert isinstance(answer, WriteTxnMarkersResponse)
                codes = _codes(answer)
            except PeerError as error:
                logger.info("Markers are written again later: %s", error)
                unanswered = ErrorCode.NETWORK_EXCEPTION
        for tp, marker, written in wanted:
            written.fire(codes.get((marker.producer_id, tp), unanswered))


def _request(wanted: Iterable[_Wanted]) -> WriteTxnMarkersRequest:
    """One request for all, grouped by transaction and topic."""
    grouped: dict[Marker, dict[str, list[int]]] = {}
    for tp, marker, _ in wanted:
        grouped.setdefault(marker, {}).setdefault(tp.topic, []).append(tp.partition)
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.commit,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
                topics=[
                    WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                    for name, indexes in topics.items()
                ],
            )
            for marker, topics in grouped.items()
        ]
    )


def _codes(answer: WriteTxnMarkersResponse) -> dict[tuple[int, TopicPartition], ErrorCode]:
    """The code for each producer id and partition."""
    return {
        (marker.producer_id, TopicPartition(topic.name, one.partition_index)): _code(one.error_code)
        for marker in answer.markers
        for topic in marker.topics
        for one in topic.partitions
    }


def _code(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
