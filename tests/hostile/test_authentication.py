"""Clients that guess passwords or never authenticate, beside a client that logs in."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from protocol.api_keys import ApiKey
from protocol.sasl.oauthbearer import build_bearer
from protocol.sasl.plain import build_plain
from protocol.sasl.scram_messages import build_client_first
from tests.hostile.squatters import squatting
from tests.hostile.watch import watched
from tests.support.sasl_broker import PASSWORD, USER, SaslBroker, bearer_token, sasl_broker
from tests.support.sasl_probe import Probe

HERE = "127.0.0.66"
"""The address of the hostile clients; the good client has 127.0.0.1."""
ATTACK_S = 5.0
LONGEST_LOGIN_S = 1.0
"""The good client shares its process with the attackers."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[SaslBroker]:
    with sasl_broker(tmp_path) as running:
        yield running


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def shake(mechanism: str, version: int = 0) -> bytes:
    name = mechanism.encode()
    header = struct.pack(">hhih", ApiKey.SASL_HANDSHAKE, version, 1, -1)
    return frame(header + struct.pack(">h", len(name)) + name)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 10, source_address=(HERE, 0))


def guesser(port: int, mechanism: str, message: bytes) -> Callable[[threading.Event], None]:
    """Sends a wrong message and waits until the broker closes the connection."""

    def one(stop: threading.Event) -> None:
        with connected(port) as client:
            client.sendall(shake(mechanism) + frame(message))
            while client.recv(4096):
                pass

    return one


def silent(port: int) -> Callable[[threading.Event], None]:
    """Holds a hundred silent connections."""

    def one(stop: threading.Event) -> None:
        with contextlib.ExitStack() as held:
            for _ in range(100):
                held.enter_context(connected(port))
            stop.wait(1)

    return one


def half(port: int) -> Callable[[threading.Event], None]:
    """Sends half a message of the greatest size on each of twenty connections."""

    def one(stop: threading.Event) -> None:
        with contextlib.ExitStack() as held:
            for _ in range(20):
                client = held.enter_context(connected(port))
                client.sendall(shake("PLAIN") + struct.pack(">i", 524_288) + bytes(262_144))
            stop.wait(1)

    return one


def logins(broker: SaslBroker) -> list[float]:
    """Log in again and again; return how long each took, until the first answer afterwards."""
    took = []
    until = time.monotonic() + ATTACK_S
    while time.monotonic() < until:
        began = time.monotonic()
        client = Probe(broker.port)
        *_, last = client.scram(USER, PASSWORD)
        assert not isinstance(last, str), last
        assert client.answer.error_code == 0
        assert client.call(ApiKey.METADATA, 12) not in ("closed", "silent")
        took.append(time.monotonic() - began)
        client.close()
        time.sleep(0.05)
    return took


ATTACKS: dict[str, tuple[int, Callable[[int], Callable[[threading.Event], None]]]] = {
    "passwords of PLAIN": (30, lambda port: guesser(port, "PLAIN", build_plain(USER, "guess"))),
    "users of SCRAM": (
        30,
        lambda port: guesser(port, "SCRAM-SHA-512", build_client_first("nobody", "x").data),
    ),
    "tokens": (
        30,
        lambda port: guesser(port, "OAUTHBEARER", build_bearer(bearer_token()[:-8] + "AAAAAAAA")),
    ),
    "garbage": (30, lambda port: guesser(port, "SCRAM-SHA-256", bytes(500_000))),
    "silence": (20, silent),
    "halves": (5, half),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_good_client_logs_in_throughout(broker: SaslBroker, name: str) -> None:
    count, attack = ATTACKS[name]
    with watched(broker.process), squatting(count, attack(broker.port)):
        took = logins(broker)
    print(f"{len(took)} logins, the longest {1000 * max(took):.0f} ms")
    assert len(took) > 10
    assert max(took) < LONGEST_LOGIN_S
    assert broker.process.output(10_000_000).count("Failed authentication with") < 500
