"""Listeners, limits, idle connections and the end."""

import errno
from typing import Any

import pytest
import trio

from broker.network.connection_limits import ConnectionLimits, ConnectionRefusal, Limits
from broker.network.request_services import RequestServices
from broker.network.socket_server import LAST_REPLY_S, SocketServer
from broker.request import RequestContext
from broker.world.readiness import Readiness
from broker.world.transport import BindError, Listening, Stream, Transport
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.messages.heartbeat import HeartbeatResponse
from storage.waits import Signal, Until
from tests.support.connection_requests import fetch_reply
from tests.support.fake_handlers import (
    AsyncClient,
    Parking,
    connected,
    empty_reply,
    running_server,
    settings,
)
from tests.support.networks import MemoryNet, Net, wait_until
from tests.support.wire_client import request_frame

HEARTBEAT = ApiKey.HEARTBEAT
ANSWER = {HEARTBEAT: empty_reply(HEARTBEAT)}
LARGE = fetch_reply(bytes(20_000_000))


def server_on(transport: Transport, net: Net) -> SocketServer:
    """A server that serves no API."""
    requests = RequestServices({}, clock=net.clock)
    return SocketServer(settings(), requests, transport)


async def test_s_start_3_clients_may_connect_before_the_server_serves(net: Net) -> None:
    server = server_on(net.transport, net)
    (bound,) = server.bind()
    assert bound.port > 0
    client = AsyncClient(net.connect(bound.port))
    await client.send(request_frame(HEARTBEAT, 4))
    await net.settle()
    assert client.has_nothing()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve)
        assert await client.closed_by_peer()  # not served here
        await server.close(1)
    client.close()


async def test_an_address_that_cannot_be_used_is_one_clear_error_and_no_port_is_kept(
    net: Net,
) -> None:
    first = server_on(net.transport, net)
    (taken,) = first.bind()
    free = Listener(name="A", host="127.0.0.1", port=0, protocol="PLAINTEXT")
    other = Listener(name="B", host="127.0.0.1", port=taken.port, protocol="PLAINTEXT")
    second = SocketServer(
        settings(listeners=(free, other)),
        RequestServices({}, clock=net.clock),
        net.transport,
    )
    message = rf"Socket server failed to bind to 127.0.0.1:{taken.port}: .*in use\.$"
    with pytest.raises(BindError, match=message):
        second.bind()
    for bound in second.bound:
        with pytest.raises(ConnectionRefusedError):
            net.connect(bound.port)
    first.unbind()
    first.unbind()
    with pytest.raises(ConnectionRefusedError):
        net.connect(taken.port)


def test_limits_count_by_address_and_in_all() -> None:
    limits = ConnectionLimits(Limits(total=4, per_ip=2, ip_overrides={"10.0.0.9": 3}))
    assert [limits.admit("10.0.0.1") for _ in range(3)] == [None, None, ConnectionRefusal.IP_LIMIT]
    assert limits.admit("10.0.0.9") is None
    assert limits.admit("10.0.0.9") is None
    assert limits.admit("10.0.0.9") is ConnectionRefusal.BROKER_LIMIT
    limits.leave("10.0.0.1")
    assert limits.admit("10.0.0.9") is None
    limits.leave("10.0.0.1")
    assert limits.admit("10.0.0.9") is ConnectionRefusal.IP_LIMIT
    assert limits.count == 3


def test_the_limit_of_an_address_holds_however_a_client_s_address_is_written() -> None:
    limits = ConnectionLimits(Limits(per_ip=1, ip_overrides={"fe80::1": 2, "10.0.0.9": 0}))
    assert [limits.admit("fe80::1%eth0") for _ in range(3)] == [
        None,
        None,
        ConnectionRefusal.IP_LIMIT,
    ]
    assert limits.admit("::ffff:10.0.0.9") is ConnectionRefusal.IP_LIMIT
    assert limits.admit("fe80::2") is None
    assert limits.admit("fe80::2") is ConnectionRefusal.IP_LIMIT


def test_a_listener_has_its_own_limit_and_descriptors_go_before_all() -> None:
    limits = ConnectionLimits(Limits(by_listener={"A": 1}), descriptors=3)
    assert [limits.admit("h", name) for name in ("A", "A", "B", "B", "B")] == [
        None,
        ConnectionRefusal.LISTENER_LIMIT,
        None,
        None,
        ConnectionRefusal.DESCRIPTORS,
    ]
    limits.leave("h", "A")
    assert limits.admit("h", "A") is None


def test_the_listener_between_brokers_has_only_its_own_limit_and_that_of_the_address() -> None:
    limits = ConnectionLimits(Limits(total=1, protected="IN", by_listener={"IN": 3}, per_ip=2))
    assert limits.admit("client", "OUT") is None
    assert limits.admit("client", "OUT") is ConnectionRefusal.BROKER_LIMIT
    assert [limits.admit("broker", "IN") for _ in range(3)] == [
        None,
        None,
        ConnectionRefusal.IP_LIMIT,
    ]
    assert limits.admit("other", "IN") is None
    assert limits.admit("third", "IN") is ConnectionRefusal.LISTENER_LIMIT
    limits.leave("client", "OUT")
    assert limits.admit("client", "OUT") is ConnectionRefusal.BROKER_LIMIT  # brokers count, too


@pytest.mark.parametrize(
    "limits",
    [
        {"limits": Limits(total=2)},
        {"limits": Limits(per_ip=2)},
        {"limits": Limits(by_listener={"PLAINTEXT": 2})},
        {"max_descriptors": 2},
    ],
    ids=["broker", "address", "listener", "descriptors"],
)
async def test_connections_over_a_limit_are_closed_at_once(
    net: Net, limits: dict[str, Any]
) -> None:
    async with running_server(net, ANSWER, **limits) as harness:
        first, second = await harness.connect(), await harness.connect()
        await first.call(HEARTBEAT, 4)
        await second.call(HEARTBEAT, 4)
        third = await harness.connect()
        assert await third.closed_by_peer()
        first.close()
        await wait_until(lambda: harness.server.statistics().connections["PLAINTEXT"] == 1)
        fourth = await harness.connect()
        await fourth.call(HEARTBEAT, 4)
        assert sum(harness.server.statistics().refused.values()) == 1


async def test_idle_connections_are_closed_but_parked_requests_are_not_idle(net: Net) -> None:
    pending = Parking()

    def behave(ctx: RequestContext, request: Any) -> Any:
        return pending if ctx.correlation_id == 7 else HeartbeatResponse()

    async with running_server(net, {HEARTBEAT: behave}, max_idle_s=0.2) as harness:
        idle, parked = await harness.connect(), await harness.connect()
        await parked.send(request_frame(HEARTBEAT, 4, correlation_id=7))
        await idle.call(HEARTBEAT, 4)
        assert await idle.closed_by_peer()
        assert harness.server.statistics().idle_closed == 1
        pending.complete(HeartbeatResponse())
        await parked.response(HEARTBEAT, 4, 7)


class WatchedTransport:
    """Ports of another transport, whose accepting and waiting a test has a hand in."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.dial = inner.dial
        self.failures: list[OSError] = []
        """Raised by `accept`, one after the other, before anybody is accepted."""
        self.waiting = trio.Event()
        self.woken = trio.Event()
        self.may_go_on = trio.Event()
        self.may_go_on.set()
        """Not set: who was woken stays where it is, and it is too late to cancel it."""

    def readiness(self) -> Readiness:
        return self.inner.readiness()

    def listen(self, listener: Listener, **sizes: int) -> "WatchedListening":
        self.listening = WatchedListening(self, self.inner.listen(listener, **sizes))
        return self.listening


class WatchedListening:
    def __init__(self, transport: WatchedTransport, inner: Listening) -> None:
        self.transport = transport
        self.inner = inner
        self.bound = inner.bound

    @property
    def is_open(self) -> bool:
        return self.inner.is_open

    def accept(self) -> Stream:
        if self.transport.failures:
            raise self.transport.failures.pop(0)
        return self.inner.accept()

    async def wait_acceptable(self) -> None:
        self.transport.waiting.set()
        await self.inner.wait_acceptable()
        self.transport.woken.set()
        with trio.CancelScope(shield=True):
            await self.transport.may_go_on.wait()

    def close(self) -> None:
        self.inner.close()


async def test_running_out_of_descriptors_pauses_accepting(net: Net) -> None:
    net.transport = watched = WatchedTransport(net.transport)
    for number in (errno.EMFILE, errno.ECONNABORTED, errno.ENOBUFS):
        watched.failures.append(OSError(number, "injected"))
    began = net.clock.monotonic()
    async with connected(net, ANSWER) as (harness, client):
        await client.call(HEARTBEAT, 4)
        assert harness.server.statistics().accept_errors == 2
        assert net.clock.monotonic() - began >= 0.2


async def test_an_error_of_accepting_that_nobody_foresaw_is_not_hidden(net: Net) -> None:
    watched = WatchedTransport(net.transport)
    watched.failures.append(OSError(errno.EINVAL, "injected"))
    server = server_on(watched, net)
    server.bind()
    with pytest.raises(ExceptionGroup) as caught:
        await server.serve()
    assert "injected" in repr(caught.value.exceptions)


async def test_s_start_5_a_client_that_knocks_while_the_server_closes_is_no_failure(
    net: Net,
) -> None:
    """The acceptor was woken by the client; before its turn the port was given back."""
    watched = WatchedTransport(net.transport)
    watched.may_go_on = trio.Event()
    server = server_on(watched, net)
    (bound,) = server.bind()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve)
        await watched.waiting.wait()
        client = net.connect(bound.port)
        await watched.woken.wait()
        nursery.start_soon(server.close, 1)
        await wait_until(lambda: not watched.listening.is_open)
        watched.may_go_on.set()
    client.close()


async def test_s_start_5_closing_ends_idle_and_parked_and_lets_work_finish(net: Net) -> None:
    pending = Parking()
    release: Signal[None] = Signal()
    begun: list[int] = []

    def behave(ctx: RequestContext, request: Any) -> Any:
        begun.append(ctx.correlation_id)

        async def work() -> Any:
            await release
            return HeartbeatResponse(throttle_time_ms=5)

        return pending if ctx.correlation_id == 1 else work()

    async with running_server(net, {HEARTBEAT: behave}) as harness:
        idle, parked, busy = [await harness.connect() for _ in range(3)]
        await parked.send(request_frame(HEARTBEAT, 4, correlation_id=1))
        await busy.send(request_frame(HEARTBEAT, 4, correlation_id=2))
        await wait_until(lambda: sorted(begun) == [1, 2])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(harness.server.close, 5)
            assert await idle.closed_by_peer()
            assert await parked.closed_by_peer()
            assert pending.abandoned
            release.fire()
            assert (await busy.response(HEARTBEAT, 4, 2)).throttle_time_ms == 5
            assert await busy.closed_by_peer()
        with pytest.raises(OSError):
            await harness.connect()


@pytest.mark.parametrize("within_s", [None, 60])
async def test_s_start_5_closing_lets_the_answer_of_a_parked_request_leave(
    net: Net, within_s: float | None
) -> None:
    answers: list[Signal[None]] = []

    async def work(ctx: RequestContext, request: Any) -> Any:
        answers.append(Signal())
        await Until(answers[-1], within_s, parked=True)
        return HeartbeatResponse(throttle_time_ms=5)

    async with running_server(net, {HEARTBEAT: work}) as harness:
        clients = [await harness.connect() for _ in range(3)]
        for client in clients:
            await client.send(request_frame(HEARTBEAT, 4))
        await net.settle()
        for answer in answers:
            answer.fire()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(harness.server.close, 5)
            for client in clients:
                assert (await client.response(HEARTBEAT, 4)).throttle_time_ms == 5
                assert await client.closed_by_peer()


@pytest.mark.parametrize(("waits_s", "takes_s"), [(0.5, 1.5), (1.5, 0.5), (10, 0)])
async def test_s_start_5_a_client_that_takes_none_of_its_last_reply_is_soon_cut(
    pipes: MemoryNet, waits_s: float, takes_s: float
) -> None:
    async with connected(pipes, {ApiKey.FETCH: lambda c, r: LARGE}) as (harness, client):
        await client.send(request_frame(ApiKey.FETCH, 12))
        await trio.sleep(waits_s)
        began = trio.current_time()
        await harness.server.close(60)
        assert trio.current_time() - began == pytest.approx(takes_s, abs=0.06)


async def test_s_start_5_a_client_that_is_slow_to_take_its_last_reply_has_two_seconds(
    pipes: MemoryNet,
) -> None:
    async def reads(client: AsyncClient) -> None:
        while True:
            client.stream.recv_into(memoryview(bytearray(1000)))
            await trio.sleep(0.01)

    async with connected(pipes, {ApiKey.FETCH: lambda c, r: LARGE}) as (harness, client):
        await client.send(request_frame(ApiKey.FETCH, 12))
        async with trio.open_nursery() as nursery:
            await trio.sleep(5)
            nursery.start_soon(reads, client)
            await trio.sleep(5)
            began = trio.current_time()
            await harness.server.close(60)
            assert trio.current_time() - began == pytest.approx(LAST_REPLY_S, abs=0.06)
            nursery.cancel_scope.cancel()


async def test_s_start_5_a_client_that_takes_its_last_reply_gets_all_of_it(net: Net) -> None:
    async with connected(net, {ApiKey.FETCH: lambda c, r: LARGE}) as (harness, client):
        await client.send(request_frame(ApiKey.FETCH, 12))
        await wait_until(lambda: harness.server.statistics().replying == 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(harness.server.close, 60)
            assert len(await client.receive_frame()) > 20_000_000
            assert await client.closed_by_peer()


async def test_s_start_5_work_beyond_the_deadline_is_cut(net: Net) -> None:
    begun: list[bool] = []

    async def behave(ctx: RequestContext, request: Any) -> Any:
        begun.append(True)
        await Signal()

    async with connected(net, {HEARTBEAT: behave}) as (harness, client):
        await client.send(request_frame(HEARTBEAT, 4))
        await wait_until(lambda: bool(begun))
        await harness.server.close(0.05)
        assert await client.closed_by_peer()
