"""Asks brokers about topics: partitions, offsets, bytes on disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from protocol.messages.metadata import MetadataResponsePartition
from tools.errors import NoSuchTopic
from tools.log_dirs.survey import directories
from tools.log_ends import Place
from tools.wire.brokers import Brokers, Topics
from tools.wire.offsets import EARLIEST, list_offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition. A field is None if there is no leader, or its broker does not say."""

    number: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start: int | None
    end: int | None
    bytes: int | None
    """Size of the leader's log."""
    bytes_everywhere: int
    """Size of the logs of all replicas."""

    @property
    def records(self) -> int | None:
        """An upper bound: transaction markers and records compacted away have offsets too."""
        return None if self.start is None or self.end is None else self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """One topic."""

    name: str
    is_internal: bool
    partitions: tuple[PartitionView, ...]

    @property
    def records(self) -> int:
        """The sum over partitions whose offsets are known."""
        return sum(each.records or 0 for each in self.partitions)

    @property
    def bytes(self) -> int:
        """Size of the leaders' logs of all partitions."""
        return sum(each.bytes or 0 for each in self.partitions)

    @property
    def bytes_everywhere(self) -> int:
        """Size of the logs of all replicas."""
        return sum(each.bytes_everywhere for each in self.partitions)

    @property
    def ends(self) -> int:
        """The sum of all ends, which grows with writes and does not shrink with deletions."""
        return sum(each.end or 0 for each in self.partitions)


def chosen_topics(topics: Topics, names: Sequence[str]) -> list[str]:
    """Return these topics, or all but the internal ones. Raises CommandError."""
    missing = [name for name in names if name not in topics]
    if missing:
        raise NoSuchTopic(missing[0])
    return sorted(names or (name for name in topics if not topics[name].is_internal))


def survey(cluster: Brokers, topics: Topics, names: Sequence[str]) -> list[TopicView]:
    """Return these topics, each with its partitions. Raises CommandError."""
    led = [
        (name, partition.partition_index)
        for name in names
        for partition in topics[name].partitions
        if partition.leader_id in cluster.addresses
    ]
    firsts = list_offsets(cluster, topics, led, EARLIEST, gone_is_fine=True)
    ends = list_offsets(cluster, topics, led, gone_is_fine=True)
    sizes = _sizes(cluster, topics, names)
    return [
        TopicView(
            name=name,
            is_internal=bool(topics[name].is_internal),
            partitions=tuple(
                _view((name, partition.partition_index), partition, firsts, ends, sizes)
                for partition in sorted(topics[name].partitions, key=lambda p: p.partition_index)
            ),
        )
        for name in names
    ]


def _view(
    place: Place,
    partition: MetadataResponsePartition,
    firsts: Mapping[Place, int],
    ends: Mapping[Place, int],
    sizes: Mapping[Place, Mapping[int, int]],
) -> PartitionView:
    by_broker = sizes.get(place, {})
    return PartitionView(
        number=partition.partition_index,
        leader=partition.leader_id if partition.leader_id >= 0 else None,
        replicas=tuple(partition.replica_nodes),
        in_sync=tuple(partition.isr_nodes),
        start=firsts.get(place),
        end=ends.get(place),
        bytes=by_broker.get(partition.leader_id),
        bytes_everywhere=sum(by_broker.values()),
    )


def _sizes(cluster: Brokers, topics: Topics, names: Sequence[str]) -> dict[Place, dict[int, int]]:
    """Return sizes by partition and broker. Future logs, which a move fills, do not count."""
    places = [(name, p.partition_index) for name in names for p in topics[name].partitions]
    found: dict[Place, dict[int, int]] = {}
    if not places:
        return found
    for directory in directories(cluster, sorted(cluster.addresses), places):
        for copy in directory.copies:
            if not copy.is_future:
                found.setdefault(copy.place, {})[copy.broker] = copy.size
    return found
