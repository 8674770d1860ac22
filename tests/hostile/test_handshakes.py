"""A flood of TLS handshakes, honest and broken, with the dearest key: RSA of 4096 bits."""

import socket
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from tests.hostile.attacks import create_topic
from tests.hostile.watch import TOPIC, watched
from tests.support.broker_process import BrokerProcess
from tests.support.certificates import write_rsa
from tests.support.tls_brokers import encrypt, tls_port

THREADS = 12
SECONDS = 5


def flood(port: int, act: Callable[[socket.socket], None]) -> int:
    """So many threads that connect and do that, again and again; how often it was done."""
    until = time.monotonic() + SECONDS

    def run(_: int) -> int:
        count = 0
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 10) as link:
                link.settimeout(5)
                act(link)
            count += 1
        return count

    with ThreadPoolExecutor(THREADS) as threads:
        return sum(threads.map(run, range(THREADS)))


def client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def test_floods_of_handshakes_delay_nobody_else(tmp_path: Path) -> None:
    context = client_context()

    def honest(link: socket.socket) -> None:
        context.wrap_socket(link).close()

    def only_hello(link: socket.socket) -> None:
        """The broker signs, and nobody reads it."""
        with context.wrap_socket(link, do_handshake_on_connect=False) as end:
            end.setblocking(False)
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()

    def nonsense(link: socket.socket) -> None:
        link.sendall(b"\x16\x03\x01\x00\x05hello")
        link.recv(100)

    broker = BrokerProcess(tmp_path / "broker")
    files = encrypt(broker, tmp_path / "tls")
    write_rsa(Path(files["broker"]), 4096)
    with broker:
        create_topic(broker.port, TOPIC)
        port = tls_port(broker)
        with watched(broker):
            done = [flood(port, act) for act in (honest, only_hello, nonsense)]
        assert min(done) > 100, done


def test_hundreds_of_halves_of_a_handshake_keep_nobody_out(tmp_path: Path) -> None:
    """From one address, more than it has places for: another one of it comes in all the same."""
    broker = BrokerProcess(tmp_path / "broker")
    encrypt(broker, tmp_path / "tls")
    links = []
    with broker:
        create_topic(broker.port, TOPIC)
        try:
            with watched(broker):
                for _ in range(600):
                    links.append(socket.create_connection(("127.0.0.1", tls_port(broker)), 10))
                    links[-1].sendall(b"\x16\x03\x01")
                began = time.monotonic()
                with socket.create_connection(("127.0.0.1", tls_port(broker)), 10) as link:
                    client_context().wrap_socket(link).close()
                assert time.monotonic() - began < 6
        finally:
            for link in links:
                link.close()
