"""Which replica a consumer should read: one in its rack, if that keeps up (KIP-392).

`replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector` turns it on. The
leader names the replica in its answer (`preferred_read_replica`), without records, and the consumer
goes there. Only replicas in sync that hold the consumer's offset are candidates; one out of sync
might send it round for ever. If several are in the rack, the one that is furthest wins, then the
one that was caught up last, then the highest id.

After `RackAwareReplicaSelector` and `ReplicaManager.findPreferredReadReplica`.
"""

from typing import TYPE_CHECKING, Final

from broker.replication.partition import Partition
from config.startup_checks import RACK_AWARE

if TYPE_CHECKING:
    from broker.cluster.image import MetadataImage

NO_PREFERENCE: Final = -1


class RackAwareSelector:
    """Knows the racks of live brokers."""

    __slots__ = ("_broker_id", "_image")

    def __init__(self, image: "MetadataImage", broker_id: int) -> None:
        self._image = image
        self._broker_id = broker_id

    def select(self, partition: Partition, rack: str, offset: int) -> int:
        """Return the broker to read `partition` from at `offset`; -1: here."""
        followers = partition.followers
        if not rack or followers is None or self._rack_of(self._broker_id) == rack:
            return NO_PREFERENCE
        in_sync = partition.isr
        candidates = [
            (follower.end_offset, follower.caught_up_at, replica)
            for replica, follower in followers.items()
            if replica in in_sync
            and 0 <= follower.start_offset <= offset <= follower.end_offset
            and self._rack_of(replica) == rack
        ]
        return max(candidates)[2] if candidates else NO_PREFERENCE

    def _rack_of(self, broker_id: int) -> str | None:
        broker = self._image.broker(broker_id)
        return None if broker is None else broker.rack


def selector_for(
    class_name: str | None, image: "MetadataImage", broker_id: int
) -> RackAwareSelector | None:
    """Return the selector that `replica.selector.class` names; None: everybody reads here."""
    return RackAwareSelector(image, broker_id) if class_name == RACK_AWARE else None
