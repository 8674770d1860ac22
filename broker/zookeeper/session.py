"""The connection to ZooKeeper: its states, and the hand-over from kazoo's threads to the loop.

    CONNECTED   requests are answered
    SUSPENDED   the connection is lost; ephemeral nodes live on until ZooKeeper ends the session
    EXPIRED     ZooKeeper has ended the session: its ephemeral nodes are gone, its watches too
    CLOSED      closed from here

Only ZooKeeper knows whether a session has ended, so EXPIRED is seen when it answers again, just
before a new session is CONNECTED. As Kafka does, the client tries for ever.

kazoo calls back in a thread of its own. Its news goes to the loop through `soon`, in order. That
thread touches nothing else here.
"""

import logging
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Any, Final

from broker.zookeeper.encryption import client_context_of
from broker.zookeeper.settings import ZooKeeperSettings
from storage.waits import Signal, call

logger = logging.getLogger(__name__)

Soon = Callable[[Callable[[], None]], None]
"""Runs a function on the loop, soon; may be called in any thread. Functions keep their order."""

_RETRY: Final = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 1.0, "max_jitter": 0.4}
"""Rests between attempts to connect, in seconds."""


class SessionState(Enum):
    """The states of the session, as far as this broker knows."""

    CONNECTED = auto()
    SUSPENDED = auto()
    EXPIRED = auto()
    CLOSED = auto()


_STATES: Final = {
    "CONNECTED": SessionState.CONNECTED,
    "SUSPENDED": SessionState.SUSPENDED,
    "LOST": SessionState.EXPIRED,
}
"""kazoo's names (`KazooState`)."""

SessionWatcher = Callable[[SessionState], None]


class Session:
    """One client of ZooKeeper; one session after the other. Loop only."""

    def __init__(self, settings: ZooKeeperSettings, soon: Soon) -> None:
        self.state = SessionState.SUSPENDED
        self.session_id = 0
        """The id of the newest session; 0 before the first."""
        self.ended: set[int] = set()
        """Ids of earlier sessions of this object."""
        self.times_connected = 0
        self.times_suspended = 0
        self.times_expired = 0
        self.client: Any = None
        self._settings = settings
        self._soon = soon
        self._first: Signal[None] = Signal()
        self._handed: deque[Callable[[], None]] = deque()
        self._is_draining_asked = False
        self._watchers: list[SessionWatcher] = []

    @property
    def is_connected(self) -> bool:
        """Whether requests are answered, as far as this broker knows."""
        return self.state is SessionState.CONNECTED

    def watch(self, watcher: SessionWatcher) -> Callable[[], None]:
        """Call `watcher` with each new state, until the result is called."""
        self._watchers.append(watcher)

        def unwatch() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

        return unwatch

    async def connect(self) -> bool:
        """Begin the first session; return whether it is there within the connection timeout."""
        self.client = await call(_new_client, self._settings, self._listen)
        await call(self.client.start_async)
        return await self._first.within(self._settings.connection_timeout_s)

    @property
    def problem(self) -> str:
        """Why the last attempt to connect has failed; empty if that is not known."""
        problem = getattr(getattr(self.client, "handler", None), "problem", None)
        return "" if problem is None else str(problem.strerror or problem)

    async def close(self) -> None:
        """End the session, which removes its ephemeral nodes. Safe to call twice."""
        if self.state is SessionState.CLOSED:
            return
        self._change(SessionState.CLOSED)
        client, self.client = self.client, None
        if client is not None:
            await call(_end, client)

    def hand_over(self, work: Callable[[], None]) -> None:
        """Run `work` on the loop. Called in any thread."""
        self._handed.append(work)
        # The loop is woken once for all work that comes until it looks. It clears the mark before
        # it looks, so work that is appended after its last look finds the mark cleared.
        if not self._is_draining_asked:
            self._is_draining_asked = True
            self._soon(self._drain)

    def _drain(self) -> None:
        self._is_draining_asked = False
        while self._handed:
            self._handed.popleft()()

    def _listen(self, state: str) -> None:
        # In kazoo's thread, while it holds the state.
        client = self.client
        found = client.client_id if client is not None and state == "CONNECTED" else None
        self.hand_over(partial(self._heard, _STATES[state], 0 if found is None else found[0]))

    def _heard(self, state: SessionState, session_id: int) -> None:
        if self.state is SessionState.CLOSED:
            return
        if state is SessionState.CONNECTED:
            if session_id != self.session_id:
                if self.session_id:
                    self.ended.add(self.session_id)
                logger.info("ZooKeeper session 0x%x established", session_id)
                self.session_id = session_id
            else:
                logger.info("Connected to ZooKeeper again, session 0x%x", session_id)
            self.times_connected += 1
            self._first.fire()
        elif state is SessionState.EXPIRED:
            logger.warning("ZooKeeper session 0x%x expired", self.session_id)
            self.times_expired += 1
        else:
            logger.warning("The connection to ZooKeeper is lost; trying to connect again")
            self.times_suspended += 1
        self._change(state)

    def _change(self, state: SessionState) -> None:
        if state is not self.state or state is SessionState.CONNECTED:
            self.state = state
            for watcher in tuple(self._watchers):
                watcher(state)


def _new_client(settings: ZooKeeperSettings, listen: Callable[[str], None]) -> Any:
    from kazoo.client import KazooClient

    from broker.zookeeper.kazoo_parts import DirectHandler

    encryption = settings.encryption
    context = None if encryption is None else client_context_of(encryption)
    address = settings.address
    client = KazooClient(
        hosts=str(address._replace(chroot="")),  # paths are whole: see `operations`
        timeout=settings.session_timeout_s,
        connection_retry=_RETRY,
        handler=DirectHandler(context),
        logger=_quiet(logging.getLogger(f"{__name__}.kazoo")),
    )
    client.add_listener(listen)
    return client


def _quiet(client_logger: logging.Logger) -> logging.Logger:
    """Silence kazoo's lines, which this module has its own for, unless a level was set for them."""
    if client_logger.level == logging.NOTSET:
        client_logger.setLevel(logging.ERROR)
    return client_logger


def _end(client: Any) -> None:
    from kazoo.exceptions import KazooException

    try:
        client.stop()
        client.close()
    except KazooException as error:  # it waits for a server that does not answer; let it
        logger.warning("The connection to ZooKeeper was left as it is: %s", error)
