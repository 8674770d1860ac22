"""A whole broker within a test, by one line: no process, thread, socket, disk or waiting.

    @whole_broker(log__retention__ms="1000")
    async def test_old_records_go(broker: WholeBroker) -> None:
        await broker.create_topic("t")
        ...
        await broker.clock.sleep(3600)

The test is a coroutine in the broker's own loop, in virtual time. It may stop and start the broker,
kill it, or cut the power; disk and network stay. Settings are Kafka's, with `__` for a dot.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any, Final

import trio

from broker.broker_state import BrokerState
from broker.server import BrokerServer
from broker.world.journal_medium import JournalMedia
from broker.world.web import NO_WEB, Web
from broker.world.workers import InlineWorkers, Workers
from broker.world.world import World
from config.broker_config import BrokerConfig
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from storage.filesystem import FileSystem
from storage.waits import Work
from tests.support.faulty_filesystem import FaultyFileSystem, Tear
from tests.support.memory_client import HOST, PORT, MemoryClient
from tests.support.memory_transport import MemoryNetwork, MemoryTransport
from tests.support.virtual_time import Timeline, VirtualClock

LOG_DIR: Final = "/d"
DEFAULTS: Final = {
    "broker.id": "1",
    "listeners": f"PLAINTEXT://{HOST}:{PORT}",
    "log.dirs": LOG_DIR,
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
_LONGEST_RUN_S: Final = 10 * 365 * 86_400.0
_CREATE_TOPICS: Final = 5

Scenario = Callable[["WholeBroker"], Awaitable[None]]


class WholeBroker:
    """One broker over any number of lives."""

    def __init__(
        self,
        timeline: Timeline,
        nursery: trio.Nursery,
        settings: dict[str, str],
        workers: Workers | None = None,
        web: Web = NO_WEB,
    ) -> None:
        self.workers = workers or InlineWorkers()
        self.web = web
        self.timeline = timeline
        self.clock = VirtualClock(timeline)
        self.network = MemoryNetwork()
        self.disk = FaultyFileSystem()
        self.settings = {**DEFAULTS, **settings}
        self.states: list[BrokerState] = []
        """Each state that its servers have entered."""
        self.host = HOST
        """The host of its listeners."""
        self.open_tree: Callable[[Any], Work[Any]] | None = None
        """Opens the tree of the cluster that it is a member of."""
        self._nursery = nursery
        self._life: _Life | None = None

    @property
    def server(self) -> BrokerServer:
        """The server of this life or of the last one."""
        assert self._life is not None
        return self._life.server

    @property
    def has_ended(self) -> bool:
        """Whether this life is over."""
        return self._life is not None and self._life.ended.is_set()

    # ---- life and death

    async def start(self) -> None:
        """Start it and wait until it serves. Raises AssertionError if it does not."""
        self._life = _Life(self)
        self._nursery.start_soon(self._life.run)
        with self.clock.timeout(3600):
            await self._life.started_or_ended.wait()
        assert not self._life.ended.is_set(), self.server.failure

    async def stop(self) -> bool:
        """Stop it as SIGTERM does; return whether that went well."""
        assert self._life is not None
        self.server.request_shutdown()
        return await self.wait_ended()

    async def wait_ended(self) -> bool:
        """Wait until it has ended by itself; return whether that went well."""
        assert self._life is not None
        await self._life.ended.wait()
        self._life.transport.kill()
        self.disk = self.disk.crash(keep_unsynced=True)
        return self._life.went_well

    def kill(self) -> None:
        """Kill it as SIGKILL does: all writes are kept."""
        self._end()
        self.disk = self.disk.crash(keep_unsynced=True)

    def lose_power(self, tear: Tear | None = None) -> None:
        """Cut the power: unsynced writes are lost, or torn as `tear` says."""
        self._end()
        self.disk = self.disk.crash(forget_names=True, tear=tear)

    def _end(self) -> None:
        assert self._life is not None
        self._life.transport.kill()
        self._life.scope.cancel()

    async def restart(self) -> None:
        """Stop it in order, and start it."""
        assert await self.stop()
        await self.start()

    # ---- clients

    def together(self) -> AbstractAsyncContextManager[trio.Nursery]:
        """Open a nursery for clients that act at the same time."""
        return trio.open_nursery()

    def client(self, client_id: str = "client", *, host: str = "127.0.0.1") -> MemoryClient:
        """Return a new client, whose address is `host`."""
        return MemoryClient(
            self.network, self.clock, client_id=client_id, host=host, broker=self.host
        )

    async def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic; `configs` have `__` for a dot. Raises AssertionError if refused."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=1,
                    configs=[
                        CreatableTopicConfig(name=key, value=value)
                        for key, value in dotted(configs).items()
                    ],
                )
            ],
            timeout_ms=30_000,
        )
        client = self.client("admin")
        answer = await client.call(ApiKey.CREATE_TOPICS, _CREATE_TOPICS, request)
        client.close()
        assert answer.topics[0].error_code == ErrorCode.NONE, answer.topics[0].error_message


class _Life:
    """One life of the broker, as of one process."""

    def __init__(self, broker: WholeBroker) -> None:
        self.transport = MemoryTransport(broker.network)
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.started_or_ended = trio.Event()
        self.went_well = False
        fs: FileSystem = broker.disk
        self.server = BrokerServer(
            BrokerConfig.parse(broker.settings),
            World(
                clock=broker.clock,
                fs=fs,
                random=Random(1),
                transport=self.transport,
                media=JournalMedia(fs),
                workers=broker.workers,
                web=broker.web,
                open_tree=broker.open_tree,
            ),
            on_started=self.started_or_ended.set,
        )
        self.server.state.listeners.append(broker.states.append)

    async def run(self) -> None:
        try:
            with self.scope:
                self.went_well = await self.server.run()
        finally:
            self.ended.set()
            self.started_or_ended.set()


def dotted(settings: dict[str, str]) -> dict[str, str]:
    """Return settings with `a__b` as `a.b`."""
    return {key.replace("__", "."): value for key, value in settings.items()}


def run_whole_broker(scenario: Scenario, workers: Workers | None = None, **settings: str) -> None:
    """Start a broker, run `scenario`, and end both."""

    async def main(timeline: Timeline, nursery: trio.Nursery) -> None:
        broker = WholeBroker(timeline, nursery, dotted(settings), workers)
        await broker.start()
        with trio.fail_after(_LONGEST_RUN_S):
            await scenario(broker)

    run_in_nursery(main)


def run_in_nursery(main: Callable[[Timeline, trio.Nursery], Awaitable[None]]) -> None:
    """Run `main` in virtual time, then end what it has left in the nursery; raise its error."""
    timeline = Timeline()
    failures: list[Exception] = []

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            try:
                await main(timeline, nursery)
            except Exception as error:  # noqa: BLE001 - raised below, not in a group
                failures.append(error)
            nursery.cancel_scope.cancel()

    trio.run(run, clock=timeline)
    if failures:
        raise failures[0]


Test = Callable[..., Awaitable[None]]


def whole_broker(**settings: str) -> Callable[[Test], Callable[..., None]]:
    """Make a test of a coroutine that gets a broker with these settings."""

    def decorate(test: Test) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            run_whole_broker(lambda broker: test(broker, **fixtures), **settings)

        # pytest takes parameters for fixtures, but the first one is the broker.
        parameters = list(inspect.signature(test).parameters.values())[1:]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate
