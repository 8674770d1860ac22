"""Fairness where all clients share one thing: the client that is next, and the client that pays.

A client is a connection, and beyond that the address that it comes from. `Shares` knows the share
of each in the thing: bytes that it holds now, or seconds that it used lately. From that follows

* the next client: the address that has least, and in it the connection that has least
  (`LeastUsed`), or has waited longest where each gets a little at a time (`LeastFirst`); or, where
  crowds wait, the address that has not had its turn for longest (`InTurn`);
* the client that pays: the address that has most, and in it the connection that has most, and the
  youngest if several have as much.

So many connections of one address have together what one connection of another has, and one client
with many requests delays itself. Clients that share an address differ by the shares and the age of
their connections. All lines and locks wait as those of `storage.waits` do.
"""

import math
from collections.abc import Callable, Collection
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, Protocol, TypeVar, final

from storage.waits import Lock, Waiter, Waiters, call

T = TypeVar("T")
Whose = TypeVar("Whose", bound="Addressed")


class Client(NamedTuple):
    """One connection."""

    address: str
    number: int
    """Rises with every connection of the broker: the youngest has the greatest."""


NOBODY: Final = Client("", 0)
CLIENT: Final[ContextVar[Client]] = ContextVar("client", default=NOBODY)
"""The client that a task works for. Tasks that it starts inherit it."""

HALF_LIFE_S: Final = 10.0
"""Seconds after which half of what was used counts no more."""
_NOTHING: Final = 0.001
"""Less than this is forgotten."""
_MANY: Final = 256
_UNKNOWN: Final = (0.0, 0.0)


def _no_time() -> float:
    return 0.0


class Shares:
    """The shares of all clients in one thing."""

    __slots__ = ("_half_life_s", "_many", "_monotonic", "_uses")

    def __init__(
        self, monotonic: Callable[[], float] = _no_time, *, half_life_s: float = math.inf
    ) -> None:
        """With a half-life a share is forgotten; without one it stays until it is given back."""
        self._monotonic = monotonic
        self._half_life_s = half_life_s
        self._uses: dict[str | Client, tuple[float, float]] = {}
        """(amount, time of that amount) of each address and connection."""
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
        """The share of all connections of an address."""
        return self._of(address)

    def rank(self, client: Client) -> tuple[float, float, int]:
        """The rank of a client: the least is next, the greatest pays."""
        return self._of(client.address), self._of(client), client.number


class Addressed(Protocol):
    """A thing that waits for a client."""

    @property
    def address(self) -> str:
        """The client's."""
        ...


@final
class LeastFirst(Waiters[Whose]):
    """Next is the address that has least, and in it the work that has waited longest."""

    __slots__ = ("_shares",)

    def __init__(self, shares: Shares) -> None:
        super().__init__()
        self._shares = shares

    def _group(self, who: Whose) -> Any:
        return who.address

    def _next_group(self) -> Any:
        return min(self._groups, key=self._shares.of_address, default=None)


@final
class InTurn(Waiters[Whose]):
    """The addresses take turns, and in each address the work that came first is next.

    For crowds: calling one costs the same however many wait, of however many addresses, if all may
    go.
    """

    __slots__ = ("_may_go",)

    def __init__(self, may_go: Callable[[str], bool] | None = None) -> None:
        """`may_go`: whether an address may have a turn now; if not, it keeps its place."""
        super().__init__()
        self._may_go = may_go

    @property
    def addresses(self) -> Collection[str]:
        """The addresses of all work that waits."""
        return self._groups.keys()

    def admit(self, waiter: Waiter[Whose]) -> None:
        """Let `waiter` go on; its address has had its turn."""
        super().admit(waiter)
        address = waiter.who.address
        if address in self._groups:
            self._groups.move_to_end(address)

    def _group(self, who: Whose) -> Any:
        return who.address

    def _next_group(self) -> Any:
        may_go = self._may_go
        return next((each for each in self._groups if may_go is None or may_go(each)), None)


@final
class LeastUsed(Waiters[Client]):
    """Next is the address that has least, and in it the connection that has least."""

    __slots__ = ("_shares",)

    def __init__(self, shares: Shares) -> None:
        super().__init__()
        self._shares = shares

    def _group(self, who: Client) -> Any:
        return who

    def _next_group(self) -> Any:
        return min(self._groups, key=self._shares.rank, default=None)


class Lane(Lock):
    """Makes calls in threads, `places` at a time; the addresses of the clients take turns.

    For what is as dear when it is refused, as a wrong password is (decision 95): a client that
    floods the broker delays one of another address by one call.
    """

    __slots__ = ()

    def __init__(self, places: int) -> None:
        super().__init__(places, waiters=InTurn[Client](), parks=True)

    async def call(self, work: Callable[..., T], *values: object) -> T:
        """Return `work(*values)`, made in a thread when it is the turn of the client's address."""
        await self.acquire()
        try:
            return await call(work, *values)
        finally:
            self.release()

    def _who(self) -> object:
        return CLIENT.get()


class FairLock(Lock):
    """Lets one piece of work at a time do what takes long: `async with lock: ...`.

    Next is the work whose client has used the lock for the shortest time lately or, if there are
    `shares`, has least of those. Without a clock no use is noted.
    """

    __slots__ = ("_began", "_client", "_monotonic", "_used")

    def __init__(
        self,
        monotonic: Callable[[], float] = _no_time,
        *,
        shares: Shares | None = None,
        parks: bool = False,
    ) -> None:
        """`parks`: work that waits is parked (`Signal.parked`), so it ends with its client."""
        self._used = Shares(monotonic, half_life_s=HALF_LIFE_S)
        super().__init__(waiters=LeastUsed(shares or self._used), parks=parks)
        self._monotonic = monotonic
        self._client = NOBODY
        """The client that has the turn."""
        self._began = 0.0

    async def acquire(self) -> None:
        """Wait until it is the turn of this work's client, which lasts until `release`."""
        await super().acquire()
        self._client, self._began = CLIENT.get(), self._monotonic()

    def release(self) -> None:
        """Give the turn to the next."""
        self._used.add(self._client, self._monotonic() - self._began)
        super().release()

    def _who(self) -> object:
        return CLIENT.get()
