"""Abuse of a real broker's sockets: it stays up, its memory stays bounded, good clients are served.

The good client here is the raw one: what matters is that it is answered at once, all the time.
"""

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from protocol.api_keys import ApiKey
from protocol.messages.registry import SPECS, request_api
from tests.support.broker_process import BrokerProcess
from tests.support.kernel_queues import unread_bytes
from tests.support.produce_requests import one_batch
from tests.support.socket_reset import reset_socket
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient, request_frame

MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("bad-input")
    with BrokerProcess(directory, python_options=("-X", "dev")) as process:
        yield process
        output = process.output(1_000_000)
        assert "Traceback" not in output, output[-8000:]
        assert "still in use" not in output


class GoodClient:
    """Asks ApiVersions all the time, in a thread; remembers the slowest answer."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.answers = 0
        self.slowest_s = 0.0
        self.error: Exception | None = None

    def _run(self) -> None:
        try:
            with WireClient(self._port) as client:
                while not self._stop.is_set():
                    begin = time.monotonic()
                    client.call(ApiKey.API_VERSIONS, 3, _named())
                    self.slowest_s = max(self.slowest_s, time.monotonic() - begin)
                    self.answers += 1
                    time.sleep(0.005)
        except Exception as error:  # noqa: BLE001 - handed to the test
            self.error = error

    def __enter__(self) -> "GoodClient":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(20)
        assert self.error is None, self.error
        assert self.answers > 0
        assert self.slowest_s < 20


def _named() -> object:
    request = request_api(ApiKey.API_VERSIONS)()
    request.client_software_name = "good"
    request.client_software_version = "1.0"
    return request


def throw(port: int, data: bytes) -> None:
    """Send and hang up; the broker may hang up first."""
    with WireClient(port, timeout_s=2) as client:
        try:
            client.send(data)
            client.socket.shutdown(socket.SHUT_WR)
            while client.socket.recv(65536):
                pass
        except OSError:
            pass


def valid_frames() -> list[bytes]:
    """One request of every declared API and version, with default values."""
    produce = one_batch("bad", bytes(100), acks=1, timeout_ms=10)
    frames = []
    for key, spec in SPECS.items():
        for version in range(spec.min_version, spec.max_version + 1):
            request = produce if key == ApiKey.PRODUCE else None
            frames.append(request_frame(key, version, request))
    return frames


def test_every_api_and_version_with_mutated_bytes_or_cut_short(broker: BrokerProcess) -> None:
    source = random.Random(2)
    with GoodClient(broker.port):
        for frame in valid_frames():
            for _ in range(3):
                mutated = bytearray(frame)
                for _ in range(source.randrange(1, 5)):
                    mutated[source.randrange(8, len(mutated))] = source.randrange(256)
                throw(broker.port, bytes(mutated))
            cut = source.randrange(8, len(frame)) - 4
            throw(broker.port, struct.pack(">i", cut) + frame[4 : 4 + cut])


def test_a_thousand_half_open_connections_cost_little(broker: BrokerProcess) -> None:
    claim = struct.pack(">i", 100_000_000)
    before = broker.resident_bytes()
    clients = []
    try:
        with GoodClient(broker.port):
            for number in range(1000):
                client = socket.create_connection(("127.0.0.1", broker.port), 10)
                clients.append(client)
                client.sendall(claim + bytes((0, 3, 4000)[number % 3]))
            wait_until(lambda: not unread_bytes(broker.port), 10)
            grown = broker.resident_bytes() - before
            assert grown < 40 * MEGABYTE, f"{grown / MEGABYTE:.0f} MB"
    finally:
        for client in clients:
            client.close()


def test_a_frame_of_a_million_tiny_elements_costs_its_own_size_only(broker: BrokerProcess) -> None:
    topics = 20_000_000  # Metadata v0: of no name, two bytes each; as objects they take gigabytes
    body = struct.pack(">i", topics) + bytes(2 * topics)
    header = struct.pack(">hhih", ApiKey.METADATA, 0, 1, -1)
    frame = struct.pack(">i", len(header) + len(body)) + header + body
    before = broker.resident_bytes()
    with GoodClient(broker.port) as good:
        with socket.create_connection(("127.0.0.1", broker.port), timeout=30) as sock:
            sock.sendall(frame)
            assert sock.recv(1) == b""
        with WireClient(broker.port) as client:
            client.call(ApiKey.API_VERSIONS, 3, _named())
    assert good.slowest_s < 10
    assert broker.resident_bytes() - before < 200 * MEGABYTE


def test_connections_reset_in_every_state(broker: BrokerProcess) -> None:
    with GoodClient(broker.port):
        for number in range(200):
            client = socket.create_connection(("127.0.0.1", broker.port), 10)
            client.sendall(request_frame(ApiKey.METADATA, 9)[: number % 40] or b"\0")
            reset_socket(client)
