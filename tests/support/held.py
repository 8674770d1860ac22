"""Locks, places, bytes, workers and parked requests that the parts of a broker hold."""

import gc
from collections.abc import Callable
from typing import Any, Final

from broker.fairness import FairLock, InTurn, Lane, LeastFirst, LeastUsed
from broker.network.connection_loop import ConnectionLoop
from broker.network.frame_memory import FrameMemory
from broker.network.handler_pool import HandlerPool
from broker.network.large_messages import LargeMessages
from broker.network.request_memory import RequestMemory
from broker.network.socket_server import SocketServer
from broker.replication.partition import Partition
from broker.replication.purgatory import Purgatory
from storage.waits import Lock, Waiters

_HELD: Final[dict[type, Callable[[Any], object]]] = {
    ConnectionLoop: lambda loop: loop.elsewhere,
    **dict.fromkeys((FairLock, Lane, Lock), lambda lock: (lock.busy, lock.waiting)),
    **dict.fromkeys((InTurn, LeastFirst, LeastUsed, Waiters), len),
    FrameMemory: lambda memory: memory.statistics(),
    HandlerPool: lambda pool: (pool.statistics().busy, pool.statistics().queued),
    LargeMessages: lambda large: (large._requests._taken, large._of_brokers._taken, large._unsent),
    Partition: lambda partition: partition.appending,
    Purgatory: lambda purgatory: (purgatory.parked, purgatory.statistics().watchers),
    RequestMemory: lambda memory: memory.statistics(),
    SocketServer: lambda server: server.statistics().buffers.bytes_in_use,
}


class Held:
    """The things that the objects of this process hold now, to compare with later."""

    def __init__(self) -> None:
        gc.collect()  # brokers of other tests would be looked at each time
        self._objects = [found for found in gc.get_objects() if type(found) in _HELD]
        self._before = [self._now(found) for found in self._objects]

    def changes(self) -> list[str]:
        """Return a line for each object that holds something else now."""
        return [
            f"{type(found).__name__}: {then} before, {now} now"
            for found, then in zip(self._objects, self._before, strict=True)
            if then != (now := self._now(found))
        ]

    @staticmethod
    def _now(found: object) -> str:
        return str(_HELD[type(found)](found))
