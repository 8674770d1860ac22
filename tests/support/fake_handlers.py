"""Handlers whose behaviour a test defines, behind a real socket server."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import trio

from broker.api_facts import Served, by_key
from broker.network.connection import Connection
from broker.network.request_services import RequestServices
from broker.network.socket_server import SocketServer, SocketServerSettings
from broker.quotas.quotas import Quotas
from broker.quotas.rate import Windows
from broker.registry import APIS
from broker.request import RequestContext
from broker.world.driver import Driver
from broker.world.streams import receive_some, send_all
from broker.world.transport import Stream
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.registry import SPECS, response_api
from storage.waits import Signal
from tests.support.memory_client import receive_frame
from tests.support.networks import Net
from tests.support.wire_client import read_response, request_frame

Behaviour = Mapping[ApiKey, Callable[[RequestContext, Any], Any]]
"""The test's function for each API."""


class Parking:
    """Requests that are parked together, until they are completed or their clients have gone."""

    def __init__(self) -> None:
        self._signal: Signal[Any] = Signal()
        self.abandoned = False

    @property
    def done(self) -> bool:
        """Whether they were completed."""
        return self._signal.fired

    def complete(self, reply: Any) -> bool:
        """Answer with `reply`; return False if that was done before."""
        return self._signal.fire(reply)

    async def reply(self, ctx: RequestContext) -> Any:
        """Wait for the reply on behalf of a client."""
        ctx.released = True
        try:
            return await self._signal.parked()
        except BaseException:
            self.abandoned = True
            raise


class FakeHandler:
    """Counts calls and answers with the result of `behave`: a message, work, or a `Parking`."""

    def __init__(self, key: ApiKey, behave: Callable[[RequestContext, Any], Any]) -> None:
        self.key = key
        self.behave = behave
        self.calls = 0

    def __call__(self, ctx: RequestContext, request: Any) -> Any:
        self.calls += 1
        reply = self.behave(ctx, request)
        return reply.reply(ctx) if isinstance(reply, Parking) else reply

    def error_response(self, ctx: RequestContext, request: Any, code: ErrorCode) -> Any:
        response = response_api(self.key)()
        response.error_code = int(code)
        return response


def settings(**changes: Any) -> SocketServerSettings:
    """One listener on loopback, any port."""
    values: dict[str, Any] = {
        "listeners": (Listener(name="PLAINTEXT", host="127.0.0.1", port=0, protocol="PLAINTEXT"),),
        "check_buffers": True,
    }
    return SocketServerSettings(**{**values, **changes})


class Harness:
    """A running server and its parts."""

    def __init__(
        self, server: SocketServer, requests: RequestServices, connect: Callable[[int], Stream]
    ) -> None:
        self.server = server
        self.requests = requests
        self.port = server.bound[0].port
        self.clients: list[AsyncClient] = []
        self._connect = connect
        self.shake: Callable[[Any], Awaitable[None]] | None = None
        """Called with the stream of each client first."""

    async def connect(self) -> "AsyncClient":
        await trio.lowlevel.checkpoint()  # lets the server accept, since the backlog is small
        stream = self._connect(self.port)
        self.clients.append(AsyncClient(stream))
        if self.shake is not None:
            await self.shake(stream)
        return self.clients[-1]


class AsyncClient:
    """A raw client inside the test's own event loop."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    async def send(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        await send_all(self.stream, data)

    async def receive_frame(self) -> bytes:
        return await receive_frame(self.stream)

    async def call(
        self, key: ApiKey, version: int, request: Any = None, correlation_id: int = 1
    ) -> Any:
        await self.send(request_frame(key, version, request, correlation_id=correlation_id))
        return await self.response(key, version, correlation_id)

    async def response(self, key: ApiKey, version: int, correlation_id: int = 1) -> Any:
        echoed, response = read_response(key, version, await self.receive_frame())
        assert echoed == correlation_id
        return response

    async def receive_until_closed(self) -> bytes:
        """Return all bytes until the connection ends."""
        received = bytearray()
        buffer = memoryview(bytearray(1 << 16))
        while size := await receive_some(self.stream, buffer):
            received += buffer[:size]
        return bytes(received)

    async def closed_by_peer(self) -> bool:
        """Wait for what comes next; return whether it is the end of the connection."""
        try:
            return await receive_some(self.stream, memoryview(bytearray(1))) == 0
        except ConnectionError:
            return True

    def has_nothing(self) -> bool:
        """Whether neither bytes nor an end have arrived. If a byte has, it is taken."""
        try:
            self.stream.recv_into(memoryview(bytearray(1)))
        except BlockingIOError:
            return True
        return False

    def close(self) -> None:
        self.stream.close()


def empty_reply(key: ApiKey) -> Callable[[RequestContext, Any], Any]:
    """Return a behaviour that always answers with the API's default response."""
    return lambda ctx, request: response_api(key)()


def unsupported_version_reply() -> Any:
    """Return the response of the real ApiVersions handler to an unsupported version."""
    response = response_api(ApiKey.API_VERSIONS)()
    response.error_code = int(ErrorCode.UNSUPPORTED_VERSION)
    return response


def fake(
    key: ApiKey,
    behave: Callable[[RequestContext, Any], Any],
    versions: tuple[int, int] | None = None,
) -> Served:
    """An API with its real facts, in all versions unless said otherwise, whose handler is fake."""
    versions = versions or (SPECS[key].min_version, SPECS[key].max_version)
    return Served(replace(APIS[key], versions=versions), FakeHandler(key, behave))


@asynccontextmanager
async def running_server(
    net: Net,
    handlers: Behaviour,
    *,
    workers: int = 2,
    entrance: Callable[[RequestServices, Connection], object] | None = None,
    windows: Windows | None = None,
    **changes: Any,
) -> AsyncIterator[Harness]:
    """Run a server whose APIs behave as given; it serves no others.

    `windows` are those of quotas, if they are not Kafka's.
    """
    requests = RequestServices(
        by_key(fake(key, behave) for key, behave in handlers.items()),
        clock=net.clock,
        driver=Driver(net.workers, net.clock),
        workers=workers,
        unsupported_version_reply=unsupported_version_reply,
        quotas=None if windows is None else Quotas(net.clock, windows),
    )
    secured = getattr(net, "secured", None)
    if secured is not None:
        listener = Listener(name="PLAINTEXT", host="127.0.0.1", port=0, protocol="SSL")
        changes.setdefault("listeners", (listener,))
    server = SocketServer(
        settings(**changes),
        requests,
        net.transport,
        entrance=None if entrance is None else partial(entrance, requests),
        secured=secured,
    )
    server.bind()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(requests.run)
        nursery.start_soon(requests.driver.run, requests.deadlines.run())
        await nursery.start(server.serve)
        harness = Harness(server, requests, net.connect)
        harness.shake = getattr(net, "shake", None)
        try:
            yield harness
            await server.close(5)
        finally:
            for client in harness.clients:
                client.close()
            net.workers.close()
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def connected(
    net: Net, handlers: Behaviour, **options: Any
) -> AsyncIterator[tuple[Harness, AsyncClient]]:
    """`running_server`, with a client."""
    async with running_server(net, handlers, **options) as harness:
        yield harness, await harness.connect()
