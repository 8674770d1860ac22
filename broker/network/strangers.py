"""Strangers: connections whose clients have not yet proved who they are, how many and for how long.

A stranger's connection bounds the bytes and the requests of that stranger. `Strangers` bounds their
number and their time (decision 95):

* Each has `sasl.authentication.timeout.ms` from the moment when it was accepted.
* There are at most `max.unauthenticated.connections` of them, and at most
  `max.unauthenticated.connections.per.ip` from one address. A new connection is always let in, and
  an older one has to go: the oldest of the same address if that has too many, else the oldest of
  the address that has most. So a client that only holds connections loses them, and a client that
  authenticates at once, as clients do, is served.

Event loop only.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import trio

from broker.network.activity import Ending
from broker.network.connection import Connection
from broker.world.clock import TaskClock


@dataclass(frozen=True, slots=True, kw_only=True)
class StrangerLimits:
    """The largest numbers of strangers, and their longest time."""

    total: int
    per_address: int
    longest_s: float


class Strangers:
    """The connections of a server that have yet to authenticate, in the order they came."""

    def __init__(
        self,
        limits: StrangerLimits,
        clock: TaskClock,
        closed: Callable[[Connection, Ending], object],
    ) -> None:
        """`closed` is called with each connection that is closed, and why."""
        self._limits = limits
        self._clock = clock
        self._closed = closed
        self._came: OrderedDict[Connection, float] = OrderedDict()
        """The end of each connection's time, in monotonic seconds, the earliest first."""
        self._by_address: dict[str, OrderedDict[Connection, None]] = {}
        self._by_count: dict[int, OrderedDict[str, None]] = {}
        """Addresses by the number of their connections."""
        self._most = 0
        """No address has more connections than this; it may be too high."""
        self._some_came = trio.Event()

    def __len__(self) -> int:
        return len(self._came)

    def add(self, connection: Connection) -> None:
        """A client came; make room for it."""
        address = connection.info.peer_host
        own = self._by_address.get(address, ())
        if len(own) >= self._limits.per_address:
            self._push_out(next(iter(own)))
        elif len(self._came) >= self._limits.total:
            self._push_out(self._oldest_of_the_greediest())
        self._count(address, +1)
        self._by_address.setdefault(address, OrderedDict())[connection] = None
        self._came[connection] = self._clock.monotonic() + self._limits.longest_s
        self._some_came.set()

    def remove(self, connection: Connection) -> None:
        """A client has proved who it is, or has gone. Safe to call twice."""
        if self._came.pop(connection, None) is None:
            return
        address = connection.info.peer_host
        self._count(address, -1)
        own = self._by_address[address]
        del own[connection]
        if not own:
            del self._by_address[address]

    async def run(self) -> None:
        """Close the connections whose time is over, until cancelled."""
        while True:
            while not self._came:
                self._some_came = trio.Event()
                await self._some_came.wait()
            connection, over = next(iter(self._came.items()))
            await self._clock.sleep_until(over)
            if self._came.get(connection) == over:
                self._close(connection, Ending.LATE)

    def _push_out(self, connection: Connection) -> None:
        self._close(connection, Ending.PUSHED_OUT)

    def _close(self, connection: Connection, reason: Ending) -> None:
        self.remove(connection)
        self._closed(connection, reason)
        connection.push_out(reason)

    def _oldest_of_the_greediest(self) -> Connection:
        while not self._by_count.get(self._most):
            self._most -= 1
        address = next(iter(self._by_count[self._most]))
        return next(iter(self._by_address[address]))

    def _count(self, address: str, more: int) -> None:
        before = len(self._by_address.get(address, ()))
        if before:
            same = self._by_count[before]
            del same[address]
            if not same:
                del self._by_count[before]
        now = before + more
        if now:
            self._by_count.setdefault(now, OrderedDict())[address] = None
            self._most = max(self._most, now)
