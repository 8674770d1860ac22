"""Appends transaction markers to partitions of this broker.

Used by the transaction coordinator for its own decisions, and by the WriteTxnMarkers handler for
those of another coordinator or an administrator. Rules

* A marker waits for appends to its partition that run in a thread, and for the in-sync replicas.
* A marker of a transaction of version 2 must carry a higher epoch than the data it ends; otherwise
  a delayed marker could end the producer's next transaction (KIP-890).
* A marker in a coordinator's topic changes the coordinator's state too: committed offsets become
  visible. Such a coordinator is a `MarkerListener`. It may refuse the marker before it is written,
  because it would miss a marker that is written while the partition loads; it is notified
  afterwards.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from broker.coordinator.partition_writer import replicated
from broker.replication.partition import ALL_IN_SYNC, Partition
from broker.replication.replica_manager import ReplicaManager
from broker.world.tasks import Tasks
from protocol.errors import ErrorCode, KafkaError
from protocol.records.control import ControlType, build_end_transaction_marker
from protocol.types import TopicPartition
from storage.clock import Clock
from storage.errors import StorageError
from storage.log.results import AppendInfo, AppendOrigin
from storage.producers.analysis import has_raised_epoch
from storage.waits import Signal

STRICT_SINCE: Final = 2
"""The transaction.version from which markers carry a raised epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """The end of one transaction, as it is written to each of its partitions."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool
    transaction_version: int = 0
    """The version of the transaction that it ends; 0 also if unknown."""


class MarkerWriter(Protocol):
    """Appends markers."""

    async def write(self, tp: TopicPartition, marker: Marker) -> ErrorCode:
        """Append one; return NONE when all in-sync replicas have it, or why it was not written.

        To be begun within a turn (`broker.world.in_turn`), because a marker changes the state of a
        `MarkerListener`, whatever becomes of whoever waits for it.
        """
        ...


class MarkerListener(Protocol):
    """A coordinator whose topic is written to in transactions."""

    def marker_refusal(self, partition: int) -> ErrorCode:
        """Return why a marker cannot be taken now; NONE when it can."""
        ...

    def on_marker(self, partition: int, producer_id: int, *, commit: bool) -> None:
        """A marker has been written to the log of the partition."""
        ...


class ReplicaMarkerWriter:
    """`MarkerWriter` over this broker's replicas."""

    def __init__(
        self,
        replicas: ReplicaManager,
        clock: Clock,
        *,
        timeout_ms: int,
        listeners: Mapping[str, MarkerListener],
        appended: Callable[[TopicPartition, int], object] | None = None,
    ) -> None:
        """`listeners` by topic. `appended` gets the partition and the producer id of each marker
        as soon as it is in the log, in a cluster."""
        self._replicas = replicas
        self._clock = clock
        self._timeout_s = timeout_ms / 1000
        self._listeners = listeners
        self._notify_appended = appended
        self._tasks = Tasks()
        self.run = self._tasks.run
        """Writes the markers that must wait."""
        self._last: tuple[Marker, int, bytes] | None = None
        """The last marker, its timestamp and its batch: many partitions get the same."""

    async def write(self, tp: TopicPartition, marker: Marker) -> ErrorCode:
        """See `MarkerWriter`."""
        listener = self._listeners.get(tp.topic)
        if listener is not None:
            refusal = listener.marker_refusal(tp.partition)
            if refusal is not ErrorCode.NONE:
                return refusal
        batch = self._batch_of(marker)
        try:
            partition = self._replicas.partition(tp)
            if partition.must_wait(len(batch)):
                info = await self._append_in_task(partition, batch, marker)
            else:
                _check_version(partition, marker)
                info = self._replicas.append(
                    tp, batch, required_acks=ALL_IN_SYNC, origin=AppendOrigin.COORDINATOR
                )
        except KafkaError as error:
            return error.code
        if self._notify_appended is not None:
            self._notify_appended(tp, marker.producer_id)
        durable = replicated(self._replicas, partition, info, self._timeout_s)
        code = durable.value if durable.fired else await durable
        if code is ErrorCode.NONE and listener is not None:
            listener.on_marker(tp.partition, marker.producer_id, commit=marker.commit)
        return code

    def _batch_of(self, marker: Marker) -> bytes:
        now, last = self._clock.wall_ms(), self._last
        if last is not None and last[0] is marker and last[1] == now:
            return last[2]
        batch = build_end_transaction_marker(
            ControlType.COMMIT if marker.commit else ControlType.ABORT,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=now,
        )
        self._last = marker, now, batch
        return batch

    async def _append_in_task(
        self, partition: Partition, batch: bytes, marker: Marker
    ) -> AppendInfo:
        """Append when the appends before it, in threads, are done. Raises KafkaError."""
        if not self._tasks.running:  # Stopping: the next start writes the marker.
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        appended: Signal[AppendInfo | KafkaError] = Signal()

        async def append() -> None:
            try:
                info = await partition.append_as_leader(
                    batch,
                    required_acks=ALL_IN_SYNC,
                    origin=AppendOrigin.COORDINATOR,
                    admit=partial(_check_version, partition, marker),
                )
            except KafkaError as error:
                if isinstance(error, StorageError):
                    self._replicas.storage_failed(partition, error)
                appended.fire(error)
            else:
                self._replicas.wake(partition)
                appended.fire(info)

        self._tasks.begin(append)
        outcome = await appended
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome


def _check_version(partition: Partition, marker: Marker) -> None:
    """Check the marker's epoch right before the append. Raises INVALID_PRODUCER_EPOCH."""
    entry = partition.log.producers.entry(marker.producer_id)
    if (
        marker.transaction_version >= STRICT_SINCE
        and entry is not None
        and not has_raised_epoch(entry, marker.producer_epoch)
    ):
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Epoch {marker.producer_epoch} of {marker} is not above that of the transaction",
        )
