"""Who goes next, and who pays, where all clients share one thing.

A client is a connection, and beyond that the address that it comes from. `Shares` knows what each
has of the thing: bytes that it holds now, or seconds that it used lately. From that follows

* who goes next: the address that has least, and in it the connection that has least, or has waited
  longest where each gets a little at a time (`Line`), or, where crowds wait, whose address has not
  had its turn for longest (`InTurn`);
* who pays: the address that has most, and in it the connection that has most; of equals the
  youngest.

So many connections of one address have together what one connection of another has, and one client
with many requests delays itself. Clients that share an address are told apart by what their
connections have, and by their age. Pure; `FairLock` waits as `storage.waits` say.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from contextvars import ContextVar
from typing import Final, Generic, NamedTuple, TypeVar

from storage.waits import Signal, Until

Item = TypeVar("Item")


class Client(NamedTuple):
    """One connection."""

    address: str
    number: int
    """Rises with every connection of the broker: the youngest has the greatest."""


NOBODY: Final = Client("", 0)
CLIENT: Final[ContextVar[Client]] = ContextVar("client", default=NOBODY)
"""Whom a task works for. Tasks that it starts inherit it."""

HALF_LIFE_S: Final = 10.0
"""Seconds after which half of what was used counts no more."""
_NOTHING: Final = 0.001
"""Less than this is forgotten."""
_MANY: Final = 256
_UNKNOWN: Final = (0.0, 0.0)


def _no_time() -> float:
    return 0.0


class Shares:
    """What clients have of one thing."""

    __slots__ = ("_half_life_s", "_many", "_monotonic", "_uses")

    def __init__(
        self, monotonic: Callable[[], float] = _no_time, *, half_life_s: float = math.inf
    ) -> None:
        """With a half-life what was used is forgotten; without one it is held until given back."""
        self._monotonic = monotonic
        self._half_life_s = half_life_s
        self._uses: dict[str | Client, tuple[float, float]] = {}
        """Of addresses and connections: (amount, when it was that)."""
        self._many = _MANY

    def add(self, client: Client, amount: float) -> None:
        """`client` has so much more, or less."""
        uses = self._uses
        now = self._monotonic()
        for key in (client.address, client):
            left = self._of(key) + amount
            if left < _NOTHING:
                uses.pop(key, None)
            else:
                uses[key] = left, now
        if len(uses) >= self._many:
            for key in [key for key in uses if self._of(key) < _NOTHING]:
                del uses[key]
            self._many = max(_MANY, 2 * len(uses))

    def _of(self, key: "str | Client") -> float:
        amount, then = self._uses.get(key, _UNKNOWN)
        return amount * math.exp2((then - self._monotonic()) / self._half_life_s)

    def of_address(self, address: str) -> float:
        """What all connections of an address have."""
        return self._of(address)

    def rank(self, client: Client) -> tuple[float, float, int]:
        """What decides: the least goes next, the greatest pays."""
        return self._of(client.address), self._of(client), client.number

    def least(self, clients: Iterable[Client]) -> Client:
        """Who goes next; of equals the oldest connection. Raises ValueError if there are none."""
        return min(clients, key=self.rank)


class Line(Generic[Item]):
    """Those that wait: next is the address that has least, in it who has waited longest."""

    __slots__ = ("_addresses", "_shares")

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._addresses: dict[str, dict[Item, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._addresses.values()))

    def __bool__(self) -> bool:
        return bool(self._addresses)

    def add(self, client: Client, item: Item) -> None:
        """`item` waits, behind the others of its address."""
        self._addresses.setdefault(client.address, {})[item] = None

    def remove(self, client: Client, item: Item) -> None:
        """`item` waits no more, if it did."""
        line = self._addresses.get(client.address, {})
        line.pop(item, None)
        if not line:
            self._addresses.pop(client.address, None)

    def next(self) -> Item:
        """Who goes next; stays in the line. Raises ValueError if nobody waits."""
        return next(iter(self._addresses[min(self._addresses, key=self._shares.of_address)]))


class InTurn(Generic[Item]):
    """Those that wait: the addresses take turns, and in each goes who came first.

    For crowds: `next` costs the same however many wait, of however many addresses.
    """

    __slots__ = ("_addresses",)

    def __init__(self) -> None:
        self._addresses: OrderedDict[str, dict[Item, None]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._addresses.values()))

    def __bool__(self) -> bool:
        return bool(self._addresses)

    @property
    def addresses(self) -> Collection[str]:
        """Those of which somebody waits."""
        return self._addresses.keys()

    def add(self, address: str, item: Item) -> None:
        """`item` waits, behind the others of its address."""
        self._addresses.setdefault(address, {})[item] = None

    def remove(self, address: str, item: Item) -> None:
        """`item` waits no more, if it did."""
        line = self._addresses.get(address, {})
        line.pop(item, None)
        if not line:
            self._addresses.pop(address, None)

    def take(self, may_go: Callable[[str], bool] = lambda address: True) -> Item | None:
        """Take out who goes next, of an address that may go; None if nobody may."""
        for address in self._addresses:
            if may_go(address):
                line = self._addresses.pop(address)
                item = next(iter(line))
                del line[item]
                if line:
                    self._addresses[address] = line
                return item
        return None


class FairLock:
    """Lets one piece of work at a time do what takes long: `async with lock: ...`.

    Next is whose client has used it for the shortest time lately or, if there are `shares`, has
    least of those. Without a clock no use is noted.
    """

    __slots__ = (
        "_began",
        "_busy",
        "_client",
        "_monotonic",
        "_parks",
        "_shares",
        "_used",
        "_waiting",
    )

    def __init__(
        self,
        monotonic: Callable[[], float] = _no_time,
        *,
        shares: Shares | None = None,
        parks: bool = False,
    ) -> None:
        """`parks`: work that waits is parked (`Signal.parked`), so it ends with its client."""
        self._monotonic = monotonic
        self._parks = parks
        self._used = Shares(monotonic, half_life_s=HALF_LIFE_S)
        self._shares = shares or self._used
        self._busy = False
        self._client = NOBODY
        """Whose turn it is."""
        self._began = 0.0
        self._waiting: dict[Signal[None], Client] = {}

    @property
    def waiting(self) -> int:
        """How many wait, or are at it."""
        return len(self._waiting) + self._busy

    async def __aenter__(self) -> None:
        """Wait until it is the turn of one's client, which ends with the block."""
        await self.acquire()

    async def __aexit__(self, *_: object) -> None:
        """Give the turn to the next. Does not wait."""
        self.release()

    async def acquire(self) -> None:
        """Wait until it is the turn of one's client, which lasts until `release`."""
        client = CLIENT.get()
        if self._busy:
            await self._wait(client)
        self._busy = True
        self._client, self._began = client, self._monotonic()

    async def _wait(self, client: Client) -> None:
        called: Signal[None] = Signal()
        self._waiting[called] = client
        try:
            await Until(called, parked=self._parks)
        except BaseException:  # ended while it waited
            if self._waiting.pop(called, None) is None:  # called in the same moment
                self._call_next()
            raise

    def release(self) -> None:
        """Give the turn to the next."""
        self._used.add(self._client, self._monotonic() - self._began)
        self._call_next()

    def _call_next(self) -> None:
        waiting = self._waiting
        self._busy = bool(waiting)
        if waiting:
            following = self._shares.least(waiting.values())
            called = next(signal for signal, client in waiting.items() if client == following)
            del waiting[called]
            called.fire()
