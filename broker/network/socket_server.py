"""Listeners and the life of connections.

In this order (S-START-3): `bind` before the logs load, so that the port is known and clients queue
in the backlog; `serve` when all other components run; `close` before they stop: it accepts no new
connections, ends idle and parked ones at once, and gives requests in work a deadline.

* One task per listener, one for all connections (`connection_loop`), and one that ends those that
  are idle or stuck (`sweeper`).
* Connections are swept and closed in the order in which they came, so that a simulation is
  repeatable.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import trio

from broker.network.activity import State
from broker.network.buffers import BufferPool, BufferStatistics
from broker.network.connection import INCOMPLETE_BYTES, Connection, ConnectionServices
from broker.network.connection_limits import (
    NO_LIMIT,
    UNLIMITED,
    ConnectionLimits,
    ConnectionRefusal,
    Limits,
)
from broker.network.connection_loop import ConnectionLoop
from broker.network.frame_memory import FrameMemory, FrameMemoryStatistics
from broker.network.late_closes import LateCloses
from broker.network.request_memory import RequestMemory, RequestMemoryStatistics
from broker.network.request_services import RequestServices
from broker.network.sender import DiskReader
from broker.network.sweeper import Sweeper
from broker.request import ConnectionInfo
from broker.world.streams import accept_streams
from broker.world.transport import (
    SYSTEM_DEFAULT,
    BindError,
    BoundListener,
    Listening,
    Stream,
    Transport,
)
from config.listener import Listener
from storage.logging_limit import LoggingLimit

if TYPE_CHECKING:
    from broker.network.handshakes import HandshakeStatistics
    from broker.network.strangers import Strangers
    from broker.network.tls_listeners import TlsListeners

logger = logging.getLogger(__name__)

_MOST_LATE_CLOSES = 1000
LAST_REPLY_S = 2.0
"""Seconds that a client has, at the stop, to take its last reply."""
_LOOK_AT_REPLIES_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketServerSettings:
    """The configuration of connections; sizes in bytes.

    `send_buffer` and `receive_buffer` may be `SYSTEM_DEFAULT`.
    """

    listeners: tuple[Listener, ...]
    backlog: int = 50
    send_buffer: int = SYSTEM_DEFAULT
    receive_buffer: int = SYSTEM_DEFAULT
    max_request_bytes: int = 104857600
    queued_bytes: int = -1
    """Limit for requests in memory; 0 or less: none."""
    incomplete_bytes: int = INCOMPLETE_BYTES
    """Limit for incomplete requests."""
    limits: Limits = UNLIMITED
    max_descriptors: int = NO_LIMIT
    """Connections that the process has descriptors for."""
    max_idle_s: float | None = 600.0
    """None: connections are never closed as idle."""
    check_buffers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketServerStatistics:
    """Numbers for metrics and tests."""

    connections: Mapping[str, int]
    """Open connections, by listener."""
    replying: int
    """Connections whose replies wait for a slow client, or for the disk."""
    accepted: Mapping[str, int]
    """Since the start, by listener."""
    closed: Mapping[str, int]
    """Those of `accepted` that have ended."""
    refused: Mapping[ConnectionRefusal, int]
    idle_closed: int
    accept_errors: int
    cold_reads: int
    """Slices that had to be read from the disk before they were sent."""
    buffers: BufferStatistics
    memory: RequestMemoryStatistics | None
    """None if no limit is set."""
    frames: FrameMemoryStatistics
    overdue_closed: int
    """Connections closed because others waited for the memory of their unfinished requests."""
    unread_closed: int
    """Connections closed because their clients took no reply (`backlog`)."""
    backlog_bytes: int
    """Bytes that connections keep while they cannot go on."""
    strangers: int = 0
    """Connections that have yet to authenticate."""
    handshakes: "HandshakeStatistics | None" = None
    """None if no listener speaks TLS."""


class SocketServer:
    """Owns the ports and connections of a broker. Named after Kafka's; a broker in memory has one
    too, without sockets."""

    def __init__(
        self,
        settings: SocketServerSettings,
        requests: RequestServices,
        transport: Transport,
        *,
        entrance: Callable[[Connection], object] | None = None,
        strangers: "Strangers | None" = None,
        secured: "TlsListeners | None" = None,
    ) -> None:
        """`entrance` is called with every connection before it is served; depending on the listener
        it may have it authenticate (`Connection.guard`). `strangers` bounds those that have yet to.
        """
        self._entrance = entrance
        self._strangers = strangers
        self._secured = secured
        self._settings = settings
        self._transport = transport
        self._clock = requests.clock
        self._services = ConnectionServices(
            requests,
            max_request_bytes=settings.max_request_bytes,
            disk=DiskReader(),
            memory=RequestMemory(settings.queued_bytes) if settings.queued_bytes > 0 else None,
            buffers=BufferPool(check=settings.check_buffers),
            frames=FrameMemory(settings.incomplete_bytes),
        )
        self._limits = ConnectionLimits(settings.limits, descriptors=settings.max_descriptors)
        self._quotas = requests.quotas
        most = min(_MOST_LATE_CLOSES, settings.max_descriptors // 16)
        self._late_closes = LateCloses(requests.deadlines, most)
        self._telling_refusals = LoggingLimit(self._clock)
        self._telling_errors = LoggingLimit(self._clock)
        self._driver = requests.driver
        self._ended: trio.Event | None = None
        """Set when `serve` has ended; None before `serve`."""
        self._loop = ConnectionLoop(
            transport.readiness(), requests.driver, requests.channel, requests.clock.monotonic
        )
        self._listening: list[Listening] = []
        self._connections: dict[Connection, None] = {}
        self._sweeper = Sweeper(self._connections, self._services, settings.max_idle_s)
        self._accepting = trio.CancelScope()
        self._last_one_gone = trio.Event()
        self._number = 0
        self._accepted: Counter[str] = Counter()
        self._refused = dict.fromkeys(ConnectionRefusal, 0)
        self._accept_errors = 0

    @property
    def limits(self) -> ConnectionLimits:
        """The limits on the number of connections, and the count."""
        return self._limits

    @property
    def bound(self) -> list[BoundListener]:
        """The bound listeners, in the order of the configuration."""
        return [listening.bound for listening in self._listening]

    def bind(self) -> list[BoundListener]:
        """Bind all listeners. Raises BindError, with none bound."""
        try:
            for listener in self._settings.listeners:
                self._listening.append(self._listen(listener))
        except Exception:
            self.unbind()
            raise
        return self.bound

    def _listen(self, listener: Listener) -> Listening:
        try:
            return self._transport.listen(
                listener,
                backlog=self._settings.backlog,
                send_buffer=self._settings.send_buffer,
                receive_buffer=self._settings.receive_buffer,
            )
        except BindError as error:
            raise BindError(
                f"Socket server failed to bind to {listener.host or '0.0.0.0'}:{listener.port}: "
                f"{error}.",
                errno=error.errno,
            ) from error

    def unbind(self) -> None:
        """Close the listeners; also for a server that never served. Safe to call twice."""
        for listening in self._listening:
            listening.close()

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Accept and serve until `close` is called or the task is cancelled."""
        self._ended = trio.Event()
        try:
            await self._serve(task_status)
        finally:
            self._ended.set()

    async def _serve(self, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._loop.run)
            if self._secured is not None:
                nursery.start_soon(self._driver.run, self._secured.run())
            try:
                with self._accepting:
                    async with trio.open_nursery() as acceptors:
                        for listening in self._listening:
                            acceptors.start_soon(self._accept, listening)
                        acceptors.start_soon(self._sweeper.run)
                        if self._strangers is not None:
                            acceptors.start_soon(self._strangers.run)
                        task_status.started()
            finally:
                self.unbind()
                self._late_closes.close_all()
                for connection in self._connections:
                    connection.close()
            await self._all_gone()
            nursery.cancel_scope.cancel()

    async def close(self, deadline_s: float) -> None:
        """Stop accepting, let requests in work finish for `deadline_s`, then cut the rest.

        A client has `LAST_REPLY_S` to take its last reply, so a slow one does not hold up the stop;
        one that has taken nothing for so long already has no more.
        """
        self._accepting.cancel()
        self.unbind()
        for connection in list(self._connections):
            connection.close()
        with self._clock.timeout(deadline_s):
            await self._let_read()
        if self._connections:
            logger.warning("%d connections had to be cut at shutdown", len(self._connections))
        for connection in list(self._connections):
            connection.cut()
        await self._all_gone()
        if self._ended is not None:  # work whose client has gone may still be ended
            await self._ended.wait()

    async def _let_read(self) -> None:
        """End connections whose clients do not take their last reply, until all are gone."""
        since: dict[Connection, float] = {}
        while self._connections:
            now = self._clock.monotonic()
            sending = [c for c in self._connections if c.state is State.SENDING]
            since = {connection: since.get(connection, now) for connection in sending}
            for connection, began in since.items():
                if now - began >= LAST_REPLY_S or connection.is_unread(now, LAST_REPLY_S):
                    connection.abort()
            with self._clock.timeout(_LOOK_AT_REPLIES_S):
                await self._all_gone()

    async def _all_gone(self) -> None:
        while self._connections:
            await self._last_one_gone.wait()

    def statistics(self) -> SocketServerStatistics:
        """A snapshot."""
        memory = self._services.memory
        names = [listener.name for listener in self.bound]
        connections = dict.fromkeys(names, 0)
        replying = 0
        for connection in self._connections:
            connections[connection.info.listener_name] += 1
            replying += connection.state is State.SENDING
        return SocketServerStatistics(
            connections=connections,
            replying=replying,
            accepted={name: self._accepted[name] for name in names},
            closed={name: self._accepted[name] - connections[name] for name in names},
            refused=dict(self._refused),
            idle_closed=self._sweeper.idle_closed,
            accept_errors=self._accept_errors,
            cold_reads=self._services.disk.cold_reads,
            buffers=self._services.buffers.statistics(),
            memory=None if memory is None else memory.statistics(),
            frames=self._services.frames.statistics(),
            overdue_closed=self._sweeper.overdue_closed,
            unread_closed=self._sweeper.unread_closed,
            backlog_bytes=self._services.backlog.bytes,
            strangers=0 if self._strangers is None else len(self._strangers),
            handshakes=None if self._secured is None else self._secured.statistics(),
        )

    # ---- accepting

    async def _accept(self, listening: Listening) -> None:
        await accept_streams(
            listening,
            self._clock,
            partial(self._welcome, listening.bound),
            partial(self._note_no_capacity, listening.bound),
            partial(self._hold_s, listening.bound.name),
        )

    def _hold_s(self, listener: str) -> float:
        """How long the connection that comes now must wait, and those behind it with it."""
        accepting = self._quotas.accepting
        return 0.0 if accepting is None else accepting.wait_ms(listener) / 1000

    def _note_no_capacity(self, bound: BoundListener, error: OSError) -> None:
        self._accept_errors += 1
        events = self._telling_errors.count_event()
        if events:
            logger.error("Cannot accept connections on %s: %s (%d times)", bound, error, events)

    def _welcome(self, bound: BoundListener, stream: Stream) -> None:
        local, peer = stream.local, stream.peer
        accepting = self._quotas.accepting
        if accepting is not None:
            refused_ms = accepting.refuse_ms(bound.name, peer.host)
            if refused_ms:
                self._refused[ConnectionRefusal.IP_RATE] += 1
                self._late_closes.close_in(refused_ms / 1000, stream)
                return
        refusal = self._limits.admit(peer.host, bound.name)
        if refusal is not None:
            self._refused[refusal] += 1
            events = self._telling_refusals.count_event()
            if events:
                logger.warning(
                    "Rejected %d connections, the last from %s: the limit of %s is reached (%d are "
                    "open)",
                    events,
                    peer.host,
                    refusal.value,
                    self._limits.count,
                )
            stream.close()
            return
        self._accepted[bound.name] += 1
        self._number += 1
        info = ConnectionInfo(
            connection_id=f"{local.host}:{local.port}-{peer.host}:{peer.port}-{self._number}",
            listener_name=bound.name,
            local_host=local.host,
            local_port=local.port,
            peer_host=peer.host,
            peer_port=peer.port,
            number=self._number,
            security_protocol=bound.protocol,
        )
        connection = self._connection(stream, info)
        if self._entrance is not None:
            self._entrance(connection)
        if not self._connections:
            self._last_one_gone = trio.Event()
        self._connections[connection] = None
        ended = partial(self._note_end, connection)
        if self._strangers is not None and connection.is_stranger:
            self._strangers.add(connection)
            connection.serve(self._loop, ended, partial(self._strangers.remove, connection))
        else:
            connection.serve(self._loop, ended)

    def _connection(self, stream: Stream, info: ConnectionInfo) -> Connection:
        if self._secured is not None:
            encrypted = self._secured.secure(info.listener_name, stream)
            if encrypted is not None:
                return Connection(encrypted, info, self._services, self._secured.open)
        return Connection(stream, info, self._services)

    def _note_end(self, connection: Connection) -> None:
        del self._connections[connection]
        if self._strangers is not None:
            self._strangers.remove(connection)
        self._limits.leave(connection.info.peer_host, connection.info.listener_name)
        if not self._connections:
            self._last_one_gone.set()
