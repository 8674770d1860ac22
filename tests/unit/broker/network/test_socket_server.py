"""Listeners, limits, idle connections and the end."""

import errno
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from broker.network.connection_limits import ConnectionLimits, Refusal
from broker.network.listening import BindError, bind_listener, host_of
from broker.network.request_channel import RequestChannel
from broker.network.socket_server import SocketServer
from broker.request import Pending, RequestContext
from broker.world.clock import SystemClock
from config.listener import Listener
from protocol.api_keys import ApiKey
from protocol.messages.heartbeat import HeartbeatResponse
from tests.support.fake_handlers import empty_reply, running_server, settings
from tests.support.wire_client import request_frame

HEARTBEAT = ApiKey.HEARTBEAT
ANSWER = {HEARTBEAT: empty_reply(HEARTBEAT)}


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        with trio.fail_after(20):
            await main()

    trio.run(limited)


async def wait_until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(5):
        while not condition():
            await trio.sleep(0.001)


def listener(host: str, port: int = 0) -> Listener:
    return Listener(name="PLAINTEXT", host=host, port=port, protocol="PLAINTEXT")


def test_s_start_3_clients_may_connect_before_the_server_serves() -> None:
    async def main() -> None:
        channel = RequestChannel({}, {}, clock=SystemClock())
        server = SocketServer(settings(), channel)
        (bound,) = server.bind()
        assert bound.port > 0
        client = trio.socket.socket()
        await client.connect(("127.0.0.1", bound.port))
        await client.send(request_frame(HEARTBEAT, 4))
        with trio.move_on_after(0.05) as scope:
            await client.recv(1)
        assert scope.cancelled_caught
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve)
            assert await client.recv(1) == b""  # not served here: closed
            await server.close(1)
        client.close()

    run(main)


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost", "::1"])
def test_every_kind_of_host(host: str) -> None:
    bound, sock = bind_listener(listener(host), backlog=5, receive_buffer=-1)
    with sock:
        target = "127.0.0.1" if host in ("", "localhost") else host
        with socket.create_connection((target, bound.port), 5):
            accepted, address = sock.accept()
            accepted.close()
            assert host_of(address) == target
        assert str(bound).endswith(f":{bound.port}")


def test_the_wildcard_listens_on_ipv6_too() -> None:
    bound, sock = bind_listener(listener(""), backlog=5, receive_buffer=65536)
    with sock, socket.create_connection(("::1", bound.port), 5):
        assert bound.host == "0.0.0.0"
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= 65536


def test_a_port_in_use_is_one_clear_error() -> None:
    bound, sock = bind_listener(listener("127.0.0.1"), backlog=5, receive_buffer=-1)
    with sock, pytest.raises(BindError, match=rf"127.0.0.1:{bound.port}.*in use"):
        bind_listener(listener("127.0.0.1", bound.port), backlog=5, receive_buffer=-1)


def test_an_unknown_host_is_one_clear_error() -> None:
    with pytest.raises(BindError, match="Cannot resolve"):
        bind_listener(listener("no.such.host.invalid"), backlog=5, receive_buffer=-1)


def test_limits_count_by_address_and_in_all() -> None:
    limits = ConnectionLimits(total=4, per_ip=2, overrides={"10.0.0.9": 3})
    assert [limits.admit("10.0.0.1") for _ in range(3)] == [None, None, Refusal.IP_LIMIT]
    assert limits.admit("10.0.0.9") is None
    assert limits.admit("10.0.0.9") is None
    assert limits.admit("10.0.0.9") is Refusal.BROKER_LIMIT
    limits.leave("10.0.0.1")
    assert limits.admit("10.0.0.9") is None
    limits.leave("10.0.0.1")
    assert limits.admit("10.0.0.9") is Refusal.IP_LIMIT
    assert limits.count == 3


@pytest.mark.parametrize("limit", ["max_connections", "max_connections_per_ip"])
def test_connections_over_a_limit_are_closed_at_once(limit: str) -> None:
    async def main() -> None:
        async with running_server(ANSWER, **{limit: 2}) as harness:
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

    run(main)


def test_idle_connections_are_closed_but_parked_requests_are_not_idle() -> None:
    pending = Pending()

    def behave(ctx: RequestContext, request: Any) -> Any:
        return pending if ctx.correlation_id == 7 else HeartbeatResponse()

    async def main() -> None:
        async with running_server({HEARTBEAT: behave}, max_idle_s=0.2) as harness:
            idle, parked = await harness.connect(), await harness.connect()
            await parked.send(request_frame(HEARTBEAT, 4, correlation_id=7))
            await idle.call(HEARTBEAT, 4)
            assert await idle.closed_by_peer()
            assert harness.server.statistics().idle_closed == 1
            pending.complete(HeartbeatResponse())
            await parked.response(HEARTBEAT, 4, 7)

    run(main)


def test_running_out_of_descriptors_pauses_accepting(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket.accept
    failures = [errno.EMFILE, errno.ECONNABORTED, errno.ENOBUFS]

    def accept(self: socket.socket) -> Any:
        if failures:
            number = failures.pop(0)
            raise OSError(number, "injected")
        return real(self)

    monkeypatch.setattr(socket.socket, "accept", accept)

    async def main() -> None:
        async with running_server(ANSWER) as harness:
            client = await harness.connect()
            await client.call(HEARTBEAT, 4)
            assert harness.server.statistics().accept_errors == 2

    run(main)


def test_s_start_5_a_client_that_knocks_while_the_server_closes_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The acceptor was woken by the client; before its turn the port was given back."""
    real = trio.lowlevel.wait_readable
    waiting, knocked, gone = trio.Event(), trio.Event(), trio.Event()

    async def wait_readable(sock: socket.socket) -> None:
        if sock is listening:
            waiting.set()
        await real(sock)
        if sock is listening:
            knocked.set()
            with trio.CancelScope(shield=True):  # Woken already: too late to be cancelled.
                await gone.wait()

    async def main() -> None:
        nonlocal listening
        server = SocketServer(settings(), RequestChannel({}, {}, clock=SystemClock()))
        (bound,) = server.bind()
        listening = server._listening[0][1]
        monkeypatch.setattr(trio.lowlevel, "wait_readable", wait_readable)
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve)
            await waiting.wait()
            with socket.create_connection(("127.0.0.1", bound.port)):
                await knocked.wait()
                nursery.start_soon(server.close, 1)
                await wait_until(lambda: listening is not None and listening.fileno() < 0)
                gone.set()

    listening: socket.socket | None = None
    run(main)


def test_s_start_5_closing_ends_idle_and_parked_and_lets_work_finish() -> None:
    pending = Pending()
    release = trio.Event()

    def behave(ctx: RequestContext, request: Any) -> Any:
        async def work() -> Any:
            await release.wait()
            return HeartbeatResponse(throttle_time_ms=5)

        return pending if ctx.correlation_id == 1 else work()

    async def main() -> None:
        async with running_server({HEARTBEAT: behave}) as harness:
            idle, parked, busy = [await harness.connect() for _ in range(3)]
            await parked.send(request_frame(HEARTBEAT, 4, correlation_id=1))
            await busy.send(request_frame(HEARTBEAT, 4, correlation_id=2))
            await wait_until(lambda: harness.channel.statistics().pool.busy == 1)
            await wait_until(
                lambda: harness.channel.statistics().requests["Heartbeat"].requests == 2
            )
            async with trio.open_nursery() as nursery:
                nursery.start_soon(harness.server.close, 5)
                assert await idle.closed_by_peer()
                assert await parked.closed_by_peer()
                assert pending.abandoned
                release.set()
                assert (await busy.response(HEARTBEAT, 4, 2)).throttle_time_ms == 5
                assert await busy.closed_by_peer()
            with pytest.raises(OSError):
                await harness.connect()

    run(main)


def test_s_start_5_work_beyond_the_deadline_is_cut() -> None:
    def behave(ctx: RequestContext, request: Any) -> Any:
        return trio.sleep_forever()

    async def main() -> None:
        async with running_server({HEARTBEAT: behave}) as harness:
            client = await harness.connect()
            await client.send(request_frame(HEARTBEAT, 4))
            await wait_until(lambda: harness.channel.statistics().pool.busy == 1)
            await harness.server.close(0.05)
            assert await client.closed_by_peer()

    run(main)
