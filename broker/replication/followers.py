"""Who copies from leaders, as the table of partitions sees it: `ReplicaFetchers`, in a cluster."""

from typing import TYPE_CHECKING, Protocol

from protocol.types import TopicPartition

if TYPE_CHECKING:
    from broker.replication.fetching.statistics import FetchingStatistics
    from broker.replication.partition import Partition


class Followers(Protocol):
    """Those partitions of this broker that follow a leader."""

    def follow(self, partition: "Partition", leader: int, leader_epoch: int) -> None:
        """Copy `partition` from broker `leader` from now on, as of `leader_epoch`.

        Nothing changes if that is what is done already.
        """
        ...

    def unfollow(self, tp: TopicPartition) -> None:
        """Copy it no longer; no error if nobody does. An append that has begun is finished."""
        ...

    def statistics(self) -> "FetchingStatistics":
        """The numbers of all that copies."""
        ...
