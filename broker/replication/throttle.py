"""Replication throttles: how much of the network a reassignment may take (KIP-73, S-READ-8).

Tools set them while they move replicas: `leader.replication.throttled.rate` and
`follower.replication.throttled.rate` (bytes per second, of a broker, dynamic), and for a topic the
replicas that they hold for (`leader.` and `follower.replication.throttled.replicas`:
`partition:broker` pairs, or `*`).

A leader gives a throttled replica no records while the rate is exceeded, unless it is in sync; a
follower does not fetch a throttled partition meanwhile, unless it has caught up. The records of a
replica in sync count towards the rate, but are never held back: else a throttle could shrink an
ISR.

The rate is that of the last windows (`replication.quota.window.num`, `.size.seconds`), over the
time that they span and at least over one. After `ReplicationQuotaManager` and `SimpleRate`.
"""

from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from config.key_building import LONG_MAX

if TYPE_CHECKING:
    from broker.replication.partition import Partition
    from config.broker_config import BrokerConfig

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
ALL_REPLICAS: Final = "*"


@lru_cache(maxsize=256)
def _names(replicas: tuple[str, ...], partition: int, broker: int) -> bool:
    return ALL_REPLICAS in replicas or f"{partition}:{broker}" in replicas


class ReplicationThrottle:
    """One of the two rates, and the replicas that it holds for. Event loop only."""

    __slots__ = ("_key", "_known", "_monotonic", "_of_topic", "_rate", "_read", "_windows")

    def __init__(
        self,
        key: str,
        of_topic: Callable[["Partition"], tuple[str, ...]],
        read: Callable[[], "BrokerConfig"],
        monotonic: Callable[[], float],
    ) -> None:
        """`key` names the rate in what `read` returns; `of_topic` gives a topic's replicas."""
        self._key = key
        self._of_topic = of_topic
        self._read = read
        self._monotonic = monotonic
        self._known: BrokerConfig | None = None
        self._rate = LONG_MAX
        self._windows: deque[list[float]] = deque()
        """(begin, bytes), the oldest first."""

    @property
    def is_limited(self) -> bool:
        """Whether a rate is set."""
        config = self._read()
        if config is not self._known:
            self._known = config
            self._rate = int(config.originals.get(self._key, LONG_MAX))
        return self._rate < LONG_MAX

    def holds_for(self, partition: "Partition") -> bool:
        """Whether this broker's replica of `partition` is throttled."""
        replicas = self._of_topic(partition)
        if not replicas:
            return False
        return _names(replicas, partition.topic_partition.partition, partition.broker_id)

    def record(self, size: int) -> None:
        """Count bytes of a throttled replica."""
        now, window_s = self._monotonic(), self._window_s
        windows = self._windows
        if not windows or now - windows[-1][0] >= window_s:
            windows.append([now, 0.0])
        windows[-1][1] += size

    @property
    def is_exceeded(self) -> bool:
        """Whether more was sent than the rate allows."""
        return self.is_limited and self.per_second > self._rate

    @property
    def per_second(self) -> float:
        """The bytes per second of the last windows."""
        now, window_s, windows = self._monotonic(), self._window_s, self._windows
        most = self._read().replication_quota_window_num * window_s
        while windows and now - windows[0][0] >= most:
            windows.popleft()
        if not windows:
            return 0.0
        return sum(size for _, size in windows) / max(now - windows[0][0], window_s)

    @property
    def _window_s(self) -> int:
        return self._read().replication_quota_window_size_seconds


class ReplicationThrottles:
    """Both throttles of a broker."""

    __slots__ = ("follower", "leader")

    def __init__(self, read: Callable[[], "BrokerConfig"], monotonic: Callable[[], float]) -> None:
        """`read` returns the configuration as it is now."""
        self.leader = ReplicationThrottle(LEADER_RATE, _of_leaders, read, monotonic)
        self.follower = ReplicationThrottle(FOLLOWER_RATE, _of_followers, read, monotonic)

    def withholder(self, replica: int) -> "Callable[[Partition], bool] | None":
        """Return what says whether a follower gets nothing of a partition; None: it gets all."""
        throttle = self.leader
        if not throttle.is_limited:
            return None

        def withheld(partition: "Partition") -> bool:
            return (
                replica not in partition.isr
                and throttle.holds_for(partition)
                and throttle.is_exceeded
            )

        return withheld

    def sent(self, partitions: "Iterable[tuple[Partition, int]]") -> None:
        """Count what followers were sent, by partition."""
        throttle = self.leader
        for partition, size in partitions:
            if throttle.holds_for(partition):
                throttle.record(size)


def _of_leaders(partition: "Partition") -> tuple[str, ...]:
    return partition.log.config.leader_replication_throttled_replicas


def _of_followers(partition: "Partition") -> tuple[str, ...]:
    return partition.log.config.follower_replication_throttled_replicas
