"""The interface through which the table of partitions starts and stops copying from leaders.

In a cluster `ReplicaFetchers` implements it.
"""

from typing import TYPE_CHECKING, Protocol

from protocol.types import TopicPartition

if TYPE_CHECKING:
    from broker.replication.fetching.statistics import FetchingStatistics
    from broker.replication.partition import Partition


class Followers(Protocol):
    """Those partitions of this broker that follow a leader."""

    def follow(self, partition: "Partition", leader: int, leader_epoch: int) -> None:
        """Copy `partition` from broker `leader` from now on, in `leader_epoch`.

        Nothing changes if it is copied so already.
        """
        ...

    def unfollow(self, tp: TopicPartition) -> None:
        """Stop copying it; no error if it is not copied. An append that has begun is finished."""
        ...

    def statistics(self) -> "FetchingStatistics":
        """The numbers of all fetchers."""
        ...
