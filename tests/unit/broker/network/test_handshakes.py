"""Handshakes: who is let in and as whom, what is refused and told, and within which bounds."""

import errno
import logging
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import trio

from broker.network.handshake_refusals import HandshakeRefusal
from broker.network.handshakes import MOST_BYTES, HandshakeBounds, HandshakeStatistics
from broker.request import RequestContext
from broker.world.tls_stream import TlsStream
from protocol.messages.heartbeat import HeartbeatResponse
from tests.support.certificates import client_identity, expired
from tests.support.connection_requests import HEARTBEAT, echo, heartbeat
from tests.support.fake_handlers import AsyncClient, Harness, running_server
from tests.support.networks import Net, SocketNet, wait_until
from tests.support.tls_network import TlsNet, client_end, shake
from tls.authority import Identity

ALICE = client_identity()
PATIENCE_S = 5


def handshakes(harness: Harness) -> HandshakeStatistics:
    found = harness.server.statistics().handshakes
    assert found is not None
    return found


class Seen:
    """A handler that notes who asked."""

    def __init__(self) -> None:
        self.principals: list[str] = []
        self.protocols: list[str] = []

    def __call__(self, ctx: RequestContext, request: Any) -> Any:
        self.principals.append(ctx.connection.principal)
        self.protocols.append(ctx.connection.security_protocol)
        return HeartbeatResponse()


# ---- who is let in, and as whom


@pytest.mark.parametrize(
    ("auth", "identity", "rules", "principal"),
    [
        ("none", ALICE, "DEFAULT", "User:ANONYMOUS"),
        ("requested", None, "DEFAULT", "User:ANONYMOUS"),
        ("requested", ALICE, "DEFAULT", "User:CN=alice,O=pykafkalog trial"),
        ("required", ALICE, "DEFAULT", "User:CN=alice,O=pykafkalog trial"),
        ("required", ALICE, "RULE:^CN=([^,]+),.*$/$1/U", "User:ALICE"),
    ],
)
async def test_s_tls_1_a_client_is_who_its_certificate_says(
    net: Net, auth: str, identity: Identity | None, rules: str, principal: str
) -> None:
    tls = TlsNet(net, identity, ssl_client_auth=auth, ssl_principal_mapping_rules=rules)
    seen = Seen()
    async with running_server(tls, {HEARTBEAT: seen}) as harness:
        for _ in range(2):  # the second is remembered
            client = await harness.connect()
            await client.call(HEARTBEAT, 4)
        assert handshakes(harness).succeeded == {"PLAINTEXT": 2}
        assert handshakes(harness).failed == {}
    assert seen.principals == [principal] * 2
    assert seen.protocols == ["SSL"] * 2


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_requests_that_come_with_the_end_of_a_handshake_are_served(
    net: Net, version: str
) -> None:
    """The broker takes them from below together with the client's last words."""
    tls = TlsNet(net, ALICE, ssl_client_auth="required")
    frames = b"".join(heartbeat(number, number) for number in range(5000))
    assert len(frames) > 2 * MOST_BYTES
    async with running_server(tls, {HEARTBEAT: echo}) as harness:
        client = AsyncClient(client_end(tls.below.connect(harness.port), ALICE, version=version))
        harness.clients.append(client)
        await shake(client.stream)  # type: ignore[arg-type]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, frames)
            for number in range(5000):
                answer = await client.response(HEARTBEAT, 4, number)
                assert answer.throttle_time_ms == number


# ---- what is refused


def plain(frame: bytes) -> Callable[[TlsNet, Harness], Any]:
    async def act(tls: TlsNet, harness: Harness) -> None:
        client = AsyncClient(tls.below.connect(harness.port))
        harness.clients.append(client)
        await client.send(frame)
        with suppress(ConnectionError):
            await client.receive_until_closed()  # perhaps an alert

    return act


def showing(identity: Identity | None, **how: Any) -> Callable[[TlsNet, Harness], Any]:
    async def act(tls: TlsNet, harness: Harness) -> None:
        client = AsyncClient(client_end(tls.below.connect(harness.port), identity, **how))
        harness.clients.append(client)
        assert isinstance(client.stream, TlsStream)
        with pytest.raises(OSError):
            await shake(client.stream)
            await client.call(HEARTBEAT, 4)

    return act


async def distrusting(tls: TlsNet, harness: Harness) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    below = tls.below.connect(harness.port)
    stream = TlsStream(below, context, memoryview(bytearray(65536)), server_name="localhost")
    harness.clients.append(AsyncClient(stream))
    with pytest.raises(ssl.SSLError):
        await shake(stream)
    stream.flush()


async def leaving(tls: TlsNet, harness: Harness) -> None:
    stream = client_end(tls.below.connect(harness.port))
    assert stream.advance() is False
    stream.flush()
    await wait_until(lambda: handshakes(harness).placed == 1)
    stream.below.close()


async def flooding(tls: TlsNet, harness: Harness) -> None:
    """A hello whose end does not come, in records that are allowed."""
    stream = tls.below.connect(harness.port)
    client = AsyncClient(stream)
    harness.clients.append(client)
    hello = b"\x01" + (120_000).to_bytes(3, "big")  # a client's hello of 120,000 bytes
    with suppress(OSError):
        await client.send(b"\x16\x03\x01\x00\x04" + hello)
        for _ in range(20):
            await client.send(b"\x16\x03\x01\x20\x00" + bytes(8192))
    assert await client.closed_by_peer()


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (
            plain(heartbeat(1)),
            "it does not speak TLS: it is a Kafka client without TLS, which",
        ),
        (plain(b"GET / HTTP/1.1\r\n\r\n"), "it asks for a page, by HTTP"),
        (plain(b"\x80\x2e\x01\x03\x01"), "its first bytes are 802e010301"),
        (plain(b"\x16\x03\x01\x00\x05hello"), "it sent what is no handshake"),
        (showing(None), "it shows no certificate (ssl.client.auth=required)"),
        (
            showing(client_identity(name="foreign CA")),
            "its certificate is not accepted: unable to get local issuer certificate",
        ),
        (
            showing(expired().client("late")),
            "its certificate is not accepted: certificate has expired",
        ),
        (showing(client_identity("bob")), "its certificate's name is nobody here"),
        (showing(ALICE, version="TLSv1.2"), "it offers no version of TLS that is enabled"),
        (distrusting, "it does not accept the broker's certificate: unknown ca"),
        (leaving, "it closed the connection during the handshake"),
        (flooding, "it sent too much"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
async def test_what_is_refused_is_told_in_a_line_and_nobody_else_minds(
    net: Net, act: Callable[[TlsNet, Harness], Any], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    tls = TlsNet(
        net,
        ALICE,
        ssl_client_auth="required",
        ssl_enabled_protocols="TLSv1.3",
        ssl_principal_mapping_rules="RULE:^CN=alice,.*$/alice/",
    )
    async with running_server(tls, {HEARTBEAT: echo}) as harness:
        bystander = await harness.connect()
        await bystander.call(HEARTBEAT, 4)
        with trio.fail_after(PATIENCE_S):
            await act(tls, harness)
        await wait_until(lambda: handshakes(harness).failed == {"PLAINTEXT": 1})
        await wait_until(lambda: handshakes(harness).under_way == 0)
        await wait_until(lambda: harness.server.statistics().connections["PLAINTEXT"] == 1)
        await bystander.call(HEARTBEAT, 4)
    (said,) = (r.getMessage() for r in caplog.records if r.levelno >= logging.INFO)
    assert said.startswith("Failed authentication with /127.0.0.1 (SSL handshake failed: ")
    assert text in said
    assert said.endswith("on listener PLAINTEXT (1 times)")


async def test_a_flood_of_failures_is_told_in_one_line(
    tls: TlsNet, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with running_server(tls, {HEARTBEAT: echo}) as harness:
        for _ in range(50):
            await plain(heartbeat(1))(tls, harness)
        await wait_until(lambda: handshakes(harness).failed == {"PLAINTEXT": 50})
    assert len([r for r in caplog.records if r.levelno >= logging.INFO]) == 1


async def test_a_client_that_only_tries_the_port_is_no_failure(
    tls: TlsNet, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with running_server(tls, {HEARTBEAT: echo}) as harness:
        stream = tls.below.connect(harness.port)
        await wait_until(lambda: handshakes(harness).under_way == 1)
        stream.close()
        await wait_until(lambda: handshakes(harness).under_way == 0)
        assert handshakes(harness).failed == {}
    assert caplog.records == []


# ---- bounds


@pytest.mark.parametrize("says_something", [False, True])
async def test_a_handshake_that_does_not_end_is_ended(net: Net, says_something: bool) -> None:
    tls = TlsNet(net, bounds=HandshakeBounds(longest_s=0.5))
    async with running_server(tls, {HEARTBEAT: echo}) as harness:
        client = AsyncClient(tls.below.connect(harness.port))
        harness.clients.append(client)
        if says_something:
            await client.send(b"\x16\x03\x01")
        with trio.fail_after(PATIENCE_S):
            assert await client.closed_by_peer()
        assert handshakes(harness).failed == {"PLAINTEXT": 1}
        assert [refusal.name for refusal in handshakes(harness).refused] == ["SLOW"]
        await (await harness.connect()).call(HEARTBEAT, 4)


async def half_open(tls: TlsNet, harness: Harness, count: int) -> list[AsyncClient]:
    """Clients that begin a handshake and say no more."""
    clients = [AsyncClient(tls.below.connect(harness.port)) for _ in range(count)]
    harness.clients += clients
    for client in clients:
        await client.send(b"\x16\x03\x01")
    return clients


@pytest.mark.parametrize("bound", ["most", "most_of_address"])
async def test_so_many_shake_hands_in_all_and_of_one_address_and_the_others_wait_for_them(
    net: Net, bound: str
) -> None:
    tls = TlsNet(net, bounds=HandshakeBounds(**{bound: 3}))
    async with running_server(tls, {HEARTBEAT: echo}) as harness:
        stalled = await half_open(tls, harness, 6)
        await wait_until(lambda: handshakes(harness).waiting == 3)
        assert handshakes(harness).placed == 3
        stalled.pop(0).close()
        await wait_until(lambda: handshakes(harness).waiting == 2)
        assert handshakes(harness).placed == 3
        # One more, which is well: it is served when those that stall have been ended.
        with trio.fail_after(PATIENCE_S):
            good = await harness.connect()
            await good.call(HEARTBEAT, 4)
        assert handshakes(harness).refused.keys() == {
            HandshakeRefusal.CLOSED,
            HandshakeRefusal.CROWD,
        }
        for client in stalled[:2]:
            assert await client.closed_by_peer()


async def test_without_a_crowd_nobody_is_ended_for_being_slow(net: Net) -> None:
    tls = TlsNet(net, bounds=HandshakeBounds(most=3))
    async with running_server(tls, {HEARTBEAT: echo}) as harness:
        await half_open(tls, harness, 3)
        await wait_until(lambda: handshakes(harness).placed == 3)
        await tls.clock.sleep(2)
        assert handshakes(harness).placed == 3


async def test_a_client_that_sends_no_more_waits_for_no_place(net: Net) -> None:
    tls = TlsNet(net, bounds=HandshakeBounds(most=1))
    async with running_server(tls, {HEARTBEAT: echo}) as harness:
        placed, waiting = await half_open(tls, harness, 2)
        await wait_until(lambda: handshakes(harness).waiting == 1)
        net.send_eof(waiting.stream)
        await wait_until(lambda: handshakes(harness).waiting == 0)
        assert handshakes(harness).placed == 1
        assert handshakes(harness).refused == {HandshakeRefusal.CLOSED: 1}
        placed.close()


async def test_the_loop_serves_others_while_a_handshake_computes(
    sockets: SocketNet, monkeypatch: Any
) -> None:
    """Its dear step is in a thread: here it waits until another client was answered."""
    tls = TlsNet(sockets)
    answered = threading.Event()
    threads: list[str] = []
    advance = TlsStream.advance

    def slow(stream: TlsStream) -> Any:
        if stream.tls.server_side and not threads:
            threads.append(threading.current_thread().name)
            assert answered.wait(PATIENCE_S)
        return advance(stream)

    async with running_server(tls, {HEARTBEAT: echo}) as harness:
        good = await harness.connect()
        await good.call(HEARTBEAT, 4)
        monkeypatch.setattr(TlsStream, "advance", slow)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(harness.connect)
            await wait_until(lambda: bool(threads))
            await good.call(HEARTBEAT, 4)
            answered.set()
    assert threads != [threading.main_thread().name]


async def test_a_server_that_stops_waits_for_no_handshake(tls: TlsNet) -> None:
    async with running_server(tls, {HEARTBEAT: echo}) as harness:
        await half_open(tls, harness, 3)
        await wait_until(lambda: handshakes(harness).placed == 3)
        with trio.fail_after(4):
            await harness.server.close(5)
        assert handshakes(harness).under_way == 0


async def test_a_refused_client_can_read_the_reason_though_its_request_is_unread(net: Net) -> None:
    """Closing over unread bytes would reset the connection, and take the alert away."""
    tls = TlsNet(net, None, ssl_client_auth="required")
    async with running_server(tls, {HEARTBEAT: echo}) as harness:
        stream = client_end(tls.below.connect(harness.port), version="TLSv1.3")
        harness.clients.append(AsyncClient(stream))
        await shake(stream)  # as far as the client knows all is well
        with suppress(OSError):
            await harness.clients[-1].send(heartbeat(1) * 3000)
        with pytest.raises(OSError) as caught, trio.fail_after(PATIENCE_S):
            await harness.clients[-1].receive_until_closed()
        assert caught.value.errno == errno.EPROTO
        assert "certificate required" in str(caught.value).lower().replace("_", " ")


@pytest.mark.parametrize(
    ("version", "auth", "dear"),
    [
        ("TLSv1.3", "none", [True, False]),
        ("TLSv1.3", "requested", [True, True]),
        ("TLSv1.2", "none", [True, True]),
    ],
)
async def test_only_the_end_of_a_handshake_without_a_certificate_is_taken_on_the_loop(
    sockets: SocketNet, version: str, auth: str, dear: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signature, a key or a chain is the client's choice, and may cost milliseconds."""
    tls = TlsNet(sockets, ssl_client_auth=auth)
    in_threads: list[bool] = []
    advance = TlsStream.advance

    def noted(stream: TlsStream) -> Any:
        if stream.tls.server_side:
            in_threads.append(threading.current_thread() is not threading.main_thread())
        return advance(stream)

    monkeypatch.setattr(TlsStream, "advance", noted)
    async with running_server(tls, {HEARTBEAT: echo}) as harness:
        stream = client_end(tls.below.connect(harness.port), ALICE, version=version)
        harness.clients.append(AsyncClient(stream))
        await shake(stream)
        await harness.clients[-1].call(HEARTBEAT, 4)
    assert in_threads == dear
