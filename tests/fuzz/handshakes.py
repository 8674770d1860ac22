"""Handshakes that no honest client begins: mutated flights, from a seed, against a TLS listener.

A chunk is one server in memory and virtual time, some thousand clients one after the other, and a
good client that asks all the while. A client's hello or its last flight is a real one with bytes
changed, taken away, put in or cut off, is somebody else's, comes in pieces or twice; or it is
anything. Then it goes away, in one of three ways, or stays. After all of them

* nothing was logged as an error or with a traceback;
* the good client was answered every time;
* no handshake is under way any more, and only the connection of the good client is open;
* memory did not grow by more than `MOST_BYTES`.
"""

import logging
import ssl
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Final

import trio
import trio.testing

from broker.network.handshakes import HandshakeBounds
from broker.world.tls_stream import TlsStream
from broker.world.transport import Stream
from tests.fuzz.watch import LogWatch, rss
from tests.support.certificates import client_identity, expired
from tests.support.connection_requests import HEARTBEAT, echo, heartbeat
from tests.support.fake_handlers import Harness, running_server
from tests.support.networks import MemoryNet
from tests.support.tls_network import TlsNet, client_end, shake

MOST_BYTES: Final = 100 << 20
GOOD_EVERY: Final = 20
_AUTHS: Final = ("none", "requested", "required")
_STAYS: Final = 0.05
_BOUNDS: Final = HandshakeBounds(most=32, most_of_address=24, longest_s=5)
"""A chunk reaches them by its clients that stay."""


@dataclass
class HandshakeResult:
    """The result of a chunk."""

    clients: int = 0
    succeeded: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def run_handshakes(seed: int, clients: int) -> HandshakeResult:
    """Send so many handshakes from a seed."""
    random = Random(seed)
    result = HandshakeResult()
    auth = random.choice(_AUTHS)
    net = TlsNet(MemoryNet(), client_identity(), bounds=_BOUNDS, ssl_client_auth=auth)
    handler = LogWatch(logging.WARNING)
    logger = logging.getLogger("broker")
    logger.addHandler(handler)

    async def main() -> None:
        async with running_server(net, {HEARTBEAT: echo}) as harness:
            await _attack(net, harness, random, clients, result)

    try:
        # Not `net.run`, which ends after some virtual seconds.
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    finally:
        logger.removeHandler(handler)
    result.findings += handler.take()
    return result


async def _attack(
    net: TlsNet, harness: Harness, random: Random, clients: int, result: HandshakeResult
) -> None:
    good = await harness.connect()
    await good.call(HEARTBEAT, 4)
    before = rss()
    staying: list[Stream] = []
    for number in range(clients):
        stream = await _one(net, harness.port, random)
        result.clients += 1
        if random.random() < _STAYS:
            staying.append(stream)
        else:
            _leave(net, stream, random)
        if number % GOOD_EVERY == 0:
            with trio.move_on_after(10) as patience:
                await good.call(HEARTBEAT, 4)
            if patience.cancelled_caught:
                result.findings.append(f"the good client waits at {number}")
                return
    await net.clock.sleep(10)
    told = harness.server.statistics()
    assert told.handshakes is not None
    result.succeeded = sum(told.handshakes.succeeded.values())
    result.refused = Counter({kind.name: n for kind, n in told.handshakes.refused.items()})
    for stream in staying:
        stream.close()
    await net.clock.sleep(1)
    told = harness.server.statistics()
    assert told.handshakes is not None
    left = told.handshakes.under_way, told.handshakes.placed, told.connections["PLAINTEXT"]
    if left != (0, 0, 1):
        result.findings.append(f"under way, placed, open: {left}")
    if rss() - before > MOST_BYTES:
        result.findings.append(f"memory grew by {rss() - before} bytes")


def _leave(net: TlsNet, stream: Stream, random: Random) -> None:
    way = random.randrange(3)
    with suppress(OSError):
        if way == 0:
            net.below.reset(stream)
        elif way == 1:
            net.below.send_eof(stream)
    stream.close()


async def _one(net: TlsNet, port: int, random: Random) -> Stream:
    """Begin a handshake, and continue it in the way that is drawn; return the client's stream."""
    below = net.below.connect(port)
    kind = random.randrange(10)
    if kind == 0:
        await _send(below, random.randbytes(random.randrange(1, 2000)), random)
        return below
    if kind == 1:
        await _send(below, b"\x16\x03" + random.randbytes(random.randrange(1, 2000)), random)
        return below
    identity = random.choice((None, client_identity(), expired().client("late")))
    end = client_end(below, identity, version=random.choice((None, "TLSv1.2", "TLSv1.3")))
    if kind == 2:  # an honest one
        with suppress(OSError, trio.TooSlowError), trio.fail_after(1):
            await shake(end)
            await _send(end, heartbeat(1), random)
        return below
    hello = _flight(end)
    if kind < 7:
        await _send(below, _mutated(hello, random), random)
        return below
    await _send(below, hello, random)
    with suppress(OSError):
        while not end.is_shaken:
            try:
                if not end.feed():
                    return below
            except BlockingIOError:
                break
            end.advance()
    await _send(below, _mutated(_flight(end) or hello, random), random)
    return below


def _flight(end: TlsStream) -> bytes:
    """Return the bytes that the client would send now."""
    with suppress(ssl.SSLError):
        end.advance()
    return end._outgoing.read()


def _mutated(flight: bytes, random: Random) -> bytes:
    data = bytearray(flight)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(data) + 1)
        match random.randrange(7):
            case 0 if at < len(data):
                data[at] = random.randrange(256)
            case 1 if at < len(data):
                data[at] ^= 1 << random.randrange(8)
            case 2:
                del data[at : at + random.randrange(1, 40)]
            case 3:
                data[at:at] = random.randbytes(random.randrange(1, 40))
            case 4:
                del data[at:]
            case 5:
                data += flight
            case _ if len(data) > 9:  # where lengths are
                data[random.choice((3, 4, 6, 7, 8))] = random.choice((0, 1, 0x7F, 0xFF))
    return bytes(data)


async def _send(stream: Stream, data: bytes, random: Random) -> None:
    """Send in one piece or in some, as far as the peer takes it."""
    pieces = random.choice((1, 1, 1, 2, 5))
    size = len(data) // pieces + 1
    with suppress(OSError):
        for at in range(0, len(data), size):
            stream.send(data[at : at + size])
            await trio.lowlevel.checkpoint()
    for _ in range(4):
        await trio.lowlevel.checkpoint()
