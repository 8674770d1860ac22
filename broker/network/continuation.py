"""A request that its handler's first step did not finish, and what it waits for.

The connection takes the first step in its own turn; most requests are done then. What the
work waits for decides who goes on with it:

* `Signal.parked`: nobody. The connection waits for the signal, unless its client hangs up, and
  takes the next step in a turn of its own (`broker.network.connection_loop`).
* A call in a thread, or a signal of another part, of an API that producers and consumers use all
  the time (`Route.in_workers`): a handler worker, which gives the work back when it pauses, asks
  for a child process or is parked. So no worker is held by work that takes long.
* Anything else: a task aside (`broker.network.asides`), to its end or until it is parked.

An API that changes something is finished whatever becomes of its client. Work of the others
(`Route.ends_with_client`) ends at its next wait aside when the client disconnects.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from broker.fairness import CLIENT, Client
from broker.world.driver import Driver
from protocol.errors import KafkaError
from storage.clock import Clock
from storage.waits import Call, Pause, Place, Until, Wait, Work

logger = logging.getLogger(__name__)


def is_parked(wait: Wait | None) -> bool:
    """Whether work waits on behalf of its client."""
    return isinstance(wait, Until) and wait.parked


def is_long(wait: Wait) -> bool:
    """Whether work must not hold a handler worker any longer: it takes long, or is parked."""
    if isinstance(wait, Call):
        return wait.place is not Place.THREAD
    return isinstance(wait, Pause) or is_parked(wait)


class Continuation:
    """The rest of a request's work, and its outcome."""

    __slots__ = (
        "_ends",
        "_left",
        "_scope",
        "client",
        "error",
        "reply",
        "started",
        "wait",
        "what",
        "work",
    )

    def __init__(
        self, work: Work[Any], wait: Wait, client: Client, what: Callable[[], str]
    ) -> None:
        self.work = work
        self.wait: Wait | None = wait
        """What it waits for; None once it is done."""
        self.client = client
        self.what = what
        """Names it for the log if it blocks the loop."""
        self.reply: Any = None
        self.error: Exception | None = None
        """What the handler raised, for the connection to answer (decision 7)."""
        self.started = 0.0
        """Monotonic seconds at which somebody last went on with it; 0 before."""
        self._left = self._ends = False
        self._scope: trio.CancelScope | None = None

    def step(self) -> None:
        """Take the next step in the caller's own turn."""
        try:
            self.wait = self.work.send(None)
        except StopIteration as end:
            self.wait, self.reply = None, end.value
        except Exception as error:  # noqa: BLE001 - answered by the connection (decision 7)
            self.wait, self.error = None, error

    async def go_on(
        self,
        driver: Driver,
        clock: Clock,
        gives_back: Callable[[Wait], bool],
        first: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Go on with it in a task of the broker, after `first`, until it is done or given back."""
        assert self.wait is not None
        CLIENT.set(self.client)
        self.started = clock.monotonic()
        wait, self.wait = self.wait, None
        with trio.CancelScope() as self._scope:
            if self._ends:
                self._scope.cancel()
            try:
                if first is not None:
                    await first()
                result = await driver.go_on(self.work, wait, self.what, gives_back)
            except Exception as error:
                self.error = error
                if self._left and not isinstance(error, KafkaError):
                    logger.error("A request whose client had gone failed", exc_info=error)
            else:
                if not isinstance(result, Wait):
                    self.reply = result
                elif self._left:
                    self.close()  # nobody waits for its signal any more
                else:
                    self.wait = result

    def leave(self, *, ends: bool) -> None:
        """The client has gone, and nobody will take the outcome; `ends`: so the work need not be
        finished, and ends at its next wait."""
        self._left, self._ends = True, ends
        if ends and self._scope is not None:
            self._scope.cancel()

    def close(self) -> None:
        """Drop work that nobody goes on with."""
        self.work.close()
