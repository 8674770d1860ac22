"""Why a partition is under-replicated: replicas not in sync, and what is known of them. Pure.

A replica leaves the in-sync set (ISR) if its broker or log directory is gone, or if it has not
caught up with its leader for `replica.lag.time.max.ms`. The lag is the leader's end of the log less
the replica's, each from its own broker: the `offsetLag` of DescribeLogDirs compares a replica with
the high watermark that it knows itself, so it is 0 for a follower that hears nothing.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from tools.cluster.reassigning import Adding
from tools.log_ends import Place
from tools.tables import count_of
from tools.wire.brokers import Topics

Ends = Mapping[tuple[int, Place], int]
"""The log end of each replica whose broker has answered, by broker and partition."""


class Absence(Enum):
    """Why a replica is not in sync; the value is the text that is shown."""

    AWAY = "its broker is away"
    OFFLINE = "its log directory is offline"
    LAGS = "lags by {}"
    CAUGHT_UP = "has caught up, and joins soon"
    NO_LEADER = "there is no leader to follow"
    UNKNOWN = "its broker does not tell how far it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """One replica that is not in sync."""

    broker_id: int
    absence: Absence
    lag: int | None = None
    """Records that it lacks; None if that is not known."""
    is_added: bool = False
    """Whether a reassignment is adding it, so that it may lag."""

    @property
    def text(self) -> str:
        """`broker 3: lags by 1,234 records`."""
        why = self.absence.value.format(count_of(self.lag or 0, "record"))
        return f"broker {self.broker_id}: {'is being added, ' if self.is_added else ''}{why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition and its replicas."""

    topic: str
    partition: int
    leader: int
    """-1: none."""
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    missing: tuple[Missing, ...]
    """Replicas that are not in sync."""


def out_of_sync(topics: Topics) -> dict[Place, tuple[int, ...]]:
    """Return partitions with replicas that are not in sync, and the brokers of these."""
    return {
        (name, partition.partition_index): missing
        for name, topic in topics.items()
        for partition in topic.partitions
        if (missing := tuple(sorted({*partition.replica_nodes} - {*partition.isr_nodes})))
    }


def partition_views(
    topics: Topics, alive: Collection[int], ends: Ends, adding: Adding | None = None
) -> Iterator[PartitionView]:
    """Yield all partitions by name and number. `alive`: ids of the brokers of the cluster."""
    absent, adding = out_of_sync(topics), adding or {}
    for name, topic in sorted(topics.items()):
        for partition in sorted(topic.partitions, key=lambda each: each.partition_index):
            place = (name, partition.partition_index)
            offline = set(partition.offline_replicas)
            added = adding.get(place, frozenset())
            yield PartitionView(
                topic=name,
                partition=partition.partition_index,
                leader=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                replicas=tuple(partition.replica_nodes),
                in_sync=tuple(partition.isr_nodes),
                missing=tuple(
                    replace(
                        _missing(broker, place, partition.leader_id, alive, offline, ends),
                        is_added=broker in added,
                    )
                    for broker in absent.get(place, ())
                ),
            )


def _missing(
    broker: int,
    place: Place,
    leader: int,
    alive: Collection[int],
    offline: Collection[int],
    ends: Ends,
) -> Missing:
    if broker not in alive:
        return Missing(broker_id=broker, absence=Absence.AWAY)
    if broker in offline:
        return Missing(broker_id=broker, absence=Absence.OFFLINE)
    if leader < 0:
        return Missing(broker_id=broker, absence=Absence.NO_LEADER)
    own, led = ends.get((broker, place)), ends.get((leader, place))
    if own is None or led is None:
        return Missing(broker_id=broker, absence=Absence.UNKNOWN)
    lag = max(led - own, 0)
    absence = Absence.LAGS if lag else Absence.CAUGHT_UP
    return Missing(broker_id=broker, absence=absence, lag=lag)
