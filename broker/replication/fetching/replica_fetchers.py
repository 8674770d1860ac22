"""All fetchers of this broker: a `ReplicaFetcher` per leader and fetcher number.

The table of partitions names the leader that a partition follows (`follow`, `unfollow`); Kafka's
hash of its name chooses which of the leader's `num.replica.fetchers` fetchers copies it. A fetcher
begins with its first partition and ends with its last.

Made by `broker.membership` in cluster mode. After `ReplicaFetcherManager`.
"""

from collections.abc import Callable

from broker.peers.peer import Peer
from broker.replication.fetching.assignment import fetcher_number
from broker.replication.fetching.replica_fetcher import ReplicaFetcher, Surroundings, Table
from broker.replication.fetching.settings import FetchingSettings
from broker.replication.fetching.statistics import FetchingStatistics
from broker.replication.partition import Partition
from broker.replication.throttle import ReplicationThrottle
from broker.world.tasks import Tasks
from protocol.types import TopicPartition
from storage.clock import Clock


class ReplicaFetchers:
    """Copies the partitions that follow others. Event loop only."""

    def __init__(
        self,
        *,
        connect: Callable[[int, int], Peer | None],
        broker_id: int,
        broker_epoch: Callable[[], int],
        settings: FetchingSettings,
        table: Table,
        clock: Clock,
        tasks: Tasks | None = None,
        throttle: ReplicationThrottle | None = None,
    ) -> None:
        """`connect` makes a connection to a leader for a fetcher (its id, the fetcher's number);
        None while the image does not know the broker. `broker_epoch` is this broker's own."""
        self._around = Surroundings(
            connect=connect,
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            table=table,
            clock=clock,
            failed=self._gave_up,
            throttle=throttle,
        )
        self._settings = settings
        self.tasks = Tasks() if tasks is None else tasks
        """Runs the fetchers."""
        self._fetchers: dict[tuple[int, int], ReplicaFetcher] = {}
        self._copied_by: dict[TopicPartition, ReplicaFetcher] = {}
        self._failed: dict[TopicPartition, str] = {}

    def follow(self, partition: Partition, leader: int, leader_epoch: int) -> None:
        """Copy `partition` from broker `leader` from now on, as of `leader_epoch`."""
        tp = partition.topic_partition
        key = leader, fetcher_number(tp, self._settings.fetchers)
        current = self._copied_by.get(tp)
        if current is not None and current is not self._fetchers.get(key):
            current.unfollow(tp)
        self._failed.pop(tp, None)
        fetcher = self._fetchers.get(key)
        if fetcher is None:
            fetcher = self._begin(*key)
        self._copied_by[tp] = fetcher
        fetcher.follow(partition, leader_epoch)

    def unfollow(self, tp: TopicPartition) -> None:
        """Copy it no longer; no error if nobody does."""
        self._failed.pop(tp, None)
        fetcher = self._copied_by.pop(tp, None)
        if fetcher is not None:
            fetcher.unfollow(tp)

    def reconfigure(self, settings: FetchingSettings) -> None:
        """Use other settings; with another number of fetchers partitions may change theirs."""
        self._settings = settings
        for fetcher in self._fetchers.values():
            fetcher.settings = settings
        for tp, fetcher in list(self._copied_by.items()):
            if fetcher.number != fetcher_number(tp, settings.fetchers):
                followed = fetcher.followed[tp]
                self.follow(followed.partition, fetcher.leader, followed.leader_epoch)

    def statistics(self) -> FetchingStatistics:
        """The numbers of all fetchers."""
        return FetchingStatistics(
            fetchers=tuple(fetcher.statistics() for fetcher in self._fetchers.values()),
            failed=dict(self._failed),
        )

    def _begin(self, leader: int, number: int) -> ReplicaFetcher:
        fetcher = ReplicaFetcher(leader, number, self._around, self._settings)
        self._fetchers[leader, number] = fetcher
        self.tasks.begin(lambda: self._run(fetcher))
        return fetcher

    async def _run(self, fetcher: ReplicaFetcher) -> None:
        await fetcher.run()
        # In the turn in which it found nothing left: nobody can have given it a partition since.
        if self._fetchers.get((fetcher.leader, fetcher.number)) is fetcher:
            del self._fetchers[fetcher.leader, fetcher.number]

    def _gave_up(self, partition: Partition, why: str) -> None:
        tp = partition.topic_partition
        self._copied_by.pop(tp, None)
        self._failed[tp] = why
