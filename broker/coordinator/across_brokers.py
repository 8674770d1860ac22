"""The parts of the coordinators that only a cluster needs. `broker.components` makes them of the
image and of connections to the other brokers."""

from collections.abc import Callable
from typing import Final

from broker.cluster.image import MetadataImage
from broker.coordinator.cluster_markers import ClusterMarkerWriter
from broker.coordinator.marker_writer import MarkerWriter
from broker.coordinator.transaction.verification import Guards, RemoteCoordinators
from broker.peers.peer import Peer
from broker.world.tasks import Tasks


class AcrossBrokers:
    """Markers to other brokers, transactions that others coordinate, sizes of the topics."""

    def __init__(
        self, image: MetadataImage, broker_id: int, connect: Callable[[int, str], Peer | None]
    ) -> None:
        """`connect` gives the peer of a broker, a connection for each purpose; None while the image
        does not know it. Markers wait for followers, and questions would wait behind them."""
        self.guards: Final = Guards()
        self._image: Final = image
        self._broker_id: Final = broker_id
        self._connect: Final = connect
        self._tasks: Final = Tasks()
        """The requests to other brokers; the markers' writer runs them."""

    def markers(self, here: MarkerWriter, timeout_ms: int) -> ClusterMarkerWriter:
        """The transaction coordinator's writer; `here` writes to this broker's replicas."""
        return ClusterMarkerWriter(
            here,
            self._image,
            self._broker_id,
            lambda broker_id: self._connect(broker_id, "markers"),
            timeout_ms=timeout_ms,
            tasks=self._tasks,
        )

    def remote_coordinators(self, partition_for: Callable[[str], int]) -> RemoteCoordinators:
        """The transaction coordinators of other brokers; see there."""
        return RemoteCoordinators(
            self._image,
            self._broker_id,
            partition_for,
            lambda broker_id: self._connect(broker_id, "transactions"),
            self.guards,
            self._tasks.begin,
        )

    def size_of(self, topic: str) -> Callable[[], int | None]:
        """The function that counts the partitions of a coordinator's topic; None: no topic."""

        def size() -> int | None:
            found = self._image.topic(topic)
            return None if found is None else len(found.partitions)

        return size
