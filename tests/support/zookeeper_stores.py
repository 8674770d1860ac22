"""Runs work with a `ZooKeeperStore` on trio's loop, and watchers for which such work can wait."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import trio

from broker.cluster.metadata_store import NodeChange, NodeEvent
from broker.world.clock import SystemClock
from broker.world.driver import Driver
from broker.world.machine import MachineWorkers
from broker.zookeeper.encryption import EncryptionSettings
from broker.zookeeper.session import SessionState
from broker.zookeeper.settings import ZooKeeperSettings
from broker.zookeeper.zookeeper_store import ZooKeeperStore
from config.zookeeper_connect import parse_connect
from storage.waits import Signal, Work

T = TypeVar("T")
LONGEST_S = 30.0
"""Until a test that waits for something gives up."""


def run_on_loop(work: Work[T]) -> T:
    """Run `work`, with threads, on a loop of its own."""

    async def main() -> T:
        workers = MachineWorkers()
        try:
            with trio.fail_after(120):
                return await Driver(workers, SystemClock()).run(work)
        finally:
            workers.close()

    return trio.run(main)


async def open_zookeeper_store(
    connect: str,
    *,
    session_timeout_s: float = 10.0,
    connection_timeout_s: float = 20.0,
    most_in_flight: int = 10,
    encryption: EncryptionSettings | None = None,
) -> ZooKeeperStore:
    """Open a store; called in work that `run_on_loop` runs."""
    settings = ZooKeeperSettings(
        address=parse_connect(connect),
        session_timeout_s=session_timeout_s,
        connection_timeout_s=connection_timeout_s,
        most_in_flight=most_in_flight,
        encryption=encryption,
    )
    return await ZooKeeperStore.open(settings, trio.lowlevel.current_trio_token().run_sync_soon)


async def with_store(
    connect: str, scenario: Callable[[ZooKeeperStore], Work[T]], session_timeout_s: float = 10.0
) -> T:
    """Run `scenario` with a store that is closed after it."""
    store = await open_zookeeper_store(connect, session_timeout_s=session_timeout_s)
    try:
        return await scenario(store)
    finally:
        await store.close()


class Hearing:
    """A watcher that keeps the events, and lets a test wait for them."""

    def __init__(self) -> None:
        self.events: list[tuple[str, NodeChange]] = []
        self.states: list[SessionState] = []
        self._changed: Signal[None] = Signal()

    def __call__(self, events: Sequence[NodeEvent]) -> None:
        self.events += [(event.path, event.change) for event in events]
        self._changed.fire()

    def session(self, state: SessionState) -> None:
        """A watcher of sessions."""
        self.states.append(state)
        self._changed.fire()

    async def until(self, condition: Callable[["Hearing"], bool]) -> None:
        """Wait until `condition` holds. Raises AssertionError after a long time."""
        while not condition(self):
            self._changed = Signal()
            if not await self._changed.within(LONGEST_S):
                raise AssertionError(f"not told: {self.events}, {self.states}")

    async def until_told(self, *events: tuple[str, NodeChange]) -> None:
        """Wait until these events have come, among others perhaps; then forget all."""
        await self.until(lambda heard: set(events) <= set(heard.events))
        self.events.clear()


def expire(store: ZooKeeperStore) -> None:
    """Let ZooKeeper end the session of a store, by closing it as another client."""
    from kazoo.client import KazooClient

    client = store._session.client
    other = KazooClient(
        hosts=",".join(f"{h}:{p}" for h, p in client.hosts), client_id=client.client_id
    )
    other.start(20)
    other.stop()
    other.close()
