"""The line of those whose authentication takes a thread: bounded, fair by address (decision 95).

A wrong password or token costs the broker as much as a right one. So of all attempts `places` are
in threads at a time, the others wait, and the addresses take turns: whoever floods the broker from
one address delays another by one attempt, however many its own are. Passing a turn on costs the
same however many wait.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from broker.fairness import CLIENT, InTurn
from storage.waits import Signal, call

T = TypeVar("T")

CHECKS: Final = 8
"""Checks of passwords by functions of others, which may wait, at the same time."""
SIGNATURES: Final = 1
"""Hashes and signatures, which keep a processor busy, at the same time."""


class Lane:
    """Makes calls in threads, `places` at a time."""

    __slots__ = ("_free", "_waiting")

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: InTurn[Signal[None]] = InTurn()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    async def call(self, work: Callable[..., T], *values: object) -> T:
        """Return `work(*values)`, made in a thread when it is the turn of the client's address."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(CLIENT.get().address)  # whose turn ends hands its place over
        try:
            return await call(work, *values)
        finally:
            self._pass_on()

    async def _wait(self, address: str) -> None:
        called: Signal[None] = Signal()
        self._waiting.add(address, called)
        try:
            await called.parked()
        except BaseException:  # the client has gone
            if called.fired:
                self._pass_on()
            else:
                self._waiting.remove(address, called)
            raise

    def _pass_on(self) -> None:
        following = self._waiting.take()
        if following is None:
            self._free += 1
        else:
            following.fire()
