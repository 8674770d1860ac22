"""A network between brokers, and between brokers and ZooKeeper, that can be cut.

    network.cut(1, 2)              nothing that broker 1 says on connections of its own reaches 2
    network.cut_both(1, 2)         nor the other way round
    network.cut(1, ZOOKEEPER)      broker 1 and ZooKeeper do not hear each other
    network.mute(1, 2)             2 hears 1 and its answers do not come back
    network.delay(1, 2, 0.2)       every piece comes so much later, in both directions
    network.mend(1, 2)             this way is open again
    network.heal()                 all at once; what was held back arrives then

A cut holds bytes back as a network does whose packets are sent again: connections stay open, new
ones are accepted and lead nowhere, and a request may arrive long after it was given up. `hang_up`
closes connections instead.

Every broker has one advertised address for the others, behind which a proxy listens. The proxy
finds the source of a connection by the process that owns the socket, because the first bytes do not
show it. ZooKeeper has an address for each broker. The proxy runs its own event loop in a thread;
its public methods may be called from outside.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, TypeVar

import psutil

T = TypeVar("T")
HOST: Final = "127.0.0.1"
ZOOKEEPER: Final = -1
"""In the place of a broker id."""
UNKNOWN: Final = -2
"""A source that is no broker, such as a tool of a test."""
_PIECE: Final = 1 << 16

Pids = Callable[[], Mapping[int, int]]
"""Broker id to process id, of those that run."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """The treatment of connections from one to another."""

    asks: bool = True
    """Whether bytes of the one that connected pass."""
    answers: bool = True
    delay_s: float = 0.0


_OPEN: Final = _Rule()


@dataclass(slots=True, eq=False)
class _Link:
    source: int
    target: int
    near: asyncio.StreamWriter
    far: asyncio.StreamWriter | None = None

    def hang_up(self) -> None:
        for writer in (self.near, self.far):
            if writer is not None:
                writer.close()


class Network:
    """The proxies. `add` a broker before it starts."""

    def __init__(self, pids: Pids, zookeeper_ports: Sequence[int]) -> None:
        self._pids = pids
        self._zookeeper_ports = zookeeper_ports
        self._rules: dict[tuple[int, int], _Rule] = {}
        self._links: set[_Link] = set()
        self._servers: list[asyncio.Server] = []
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="network", daemon=True)
        self._thread.start()

    # ---- from outside

    def before_broker(self, broker_id: int, port: int) -> int:
        """Return the port by which the others reach the broker that listens on `port`."""
        return self._outside(self._listen(None, broker_id, port))

    def before_zookeeper(self, broker_id: int) -> list[int]:
        """Return the ports by which this broker reaches each server of ZooKeeper."""
        return [
            self._outside(self._listen(broker_id, ZOOKEEPER, port))
            for port in self._zookeeper_ports
        ]

    def cut(self, source: int, target: int) -> None:
        """Hold back everything on the connections that `source` made or makes to `target`."""
        self._set(source, target, _Rule(asks=False, answers=False))

    def cut_both(self, one: int, other: int) -> None:
        """Neither reaches the other."""
        self.cut(one, other)
        self.cut(other, one)

    def isolate(self, broker_id: int, *, also_from_zookeeper: bool = False) -> None:
        """Cut the broker off from all others, and perhaps from ZooKeeper."""
        for other in self._pids():
            if other != broker_id:
                self.cut_both(broker_id, other)
        if also_from_zookeeper:
            self.cut(broker_id, ZOOKEEPER)

    def mute(self, source: int, target: int) -> None:
        """`target` gets what `source` asks, and its answers are held back."""
        self._set(source, target, _Rule(answers=False))

    def delay(self, source: int, target: int, seconds: float) -> None:
        """Every piece of these connections comes so much later."""
        self._set(source, target, _Rule(delay_s=seconds))

    def mend(self, source: int, target: int) -> None:
        """Remove the rule for connections from one to the other."""
        self._set(source, target, _OPEN)

    def heal(self) -> None:
        """Remove all rules; bytes that were held back go on their way."""
        self._outside(self._clear())

    def hang_up(self, source: int, target: int) -> None:
        """Close the connections from one to the other."""
        self._outside(self._hang_up(source, target))

    def close(self) -> None:
        """Hang up on everybody and stop listening."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    # ---- the loop

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for server in self._servers:
            server.close()
        for link in self._links:
            link.hang_up()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    def _outside(self, work: Coroutine[object, object, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(10)

    def _set(self, source: int, target: int, rule: _Rule) -> None:
        async def change() -> None:
            self._rules[source, target] = rule
            self._wake()

        self._outside(change())

    async def _clear(self) -> None:
        self._rules.clear()
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _hang_up(self, source: int, target: int) -> None:
        for link in list(self._links):
            if (link.source, link.target) == (source, target):
                link.hang_up()

    async def _listen(self, source: int | None, target: int, port: int) -> int:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            known = self._owner(writer) if source is None else source
            await self._serve(_Link(known, target, writer), reader, port)

        server = await asyncio.start_server(serve, HOST, 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def _owner(self, writer: asyncio.StreamWriter) -> int:
        """Return the id of the broker at the other end."""
        port = writer.get_extra_info("peername")[1]
        for broker_id, pid in self._pids().items():
            with contextlib.suppress(psutil.Error, OSError):
                for each in psutil.Process(pid).net_connections("tcp"):
                    if each.laddr and each.laddr.port == port:
                        return broker_id
        return UNKNOWN

    async def _serve(self, link: _Link, reader: asyncio.StreamReader, port: int) -> None:
        self._links.add(link)
        back = None
        try:
            await self._passable(link, asks=True)
            far_reader, link.far = await asyncio.open_connection(HOST, port)
            back = asyncio.ensure_future(self._carry(link, far_reader, link.near, asks=False))
            await self._carry(link, reader, link.far, asks=True)
        except OSError:
            pass  # Nobody listens, or one of the two is gone.
        finally:
            if back is not None:
                # An answer may still be under way.
                with contextlib.suppress(TimeoutError, OSError, asyncio.CancelledError):
                    await asyncio.wait_for(back, 1)
            link.hang_up()
            self._links.discard(link)

    async def _carry(
        self,
        link: _Link,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        asks: bool,
    ) -> None:
        try:
            while data := await reader.read(_PIECE):
                delay_s = self._rule(link).delay_s
                if delay_s:
                    await asyncio.sleep(delay_s)
                await self._passable(link, asks=asks)
                writer.write(data)
                await writer.drain()
            await self._passable(link, asks=asks)
        finally:
            with contextlib.suppress(OSError, RuntimeError):
                writer.close()

    def _rule(self, link: _Link) -> _Rule:
        return self._rules.get((link.source, link.target), _OPEN)

    async def _passable(self, link: _Link, *, asks: bool) -> None:
        while not (self._rule(link).asks if asks else self._rule(link).answers):
            await self._changed.wait()
