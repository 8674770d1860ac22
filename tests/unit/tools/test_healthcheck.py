"""A health check that finds out by itself where the broker beside it listens."""

import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tools.healthcheck import answers, brokers, listening, main

HEALTHY = struct.pack(">iih", 6, 1, 0)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as made:
        yield made


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reply_once(listener: socket.socket, reply: bytes) -> threading.Thread:
    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(100)
            connection.sendall(reply)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("reply", "healthy"),
    [
        (HEALTHY, True),
        (struct.pack(">iih", 6, 1, 35), False),
        (struct.pack(">iih", 6, 2, 0), False),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", False),
        (b"", False),
    ],
)
def test_healthy_is_what_answers_api_versions(
    listener: socket.socket, reply: bytes, healthy: bool
) -> None:
    thread = reply_once(listener, reply)
    assert answers(address_of(listener)) is healthy
    thread.join()


def test_a_process_listens_where_the_kernel_says(listener: socket.socket) -> None:
    assert address_of(listener) in listening(os.getpid())
    with closing(socket.create_connection(listener.getsockname())) as connection:
        host, port = connection.getsockname()
        assert f"{host}:{port}" not in listening(os.getpid())  # connected, not listening


@pytest.mark.parametrize(
    ("family", "every", "loopback"),
    [(socket.AF_INET, "0.0.0.0", "127.0.0.1"), (socket.AF_INET6, "::", "[::1]")],
)
def test_all_interfaces_are_asked_by_loopback(
    family: socket.AddressFamily, every: str, loopback: str
) -> None:
    with closing(socket.create_server((every, 0), family=family)) as made:
        assert f"{loopback}:{made.getsockname()[1]}" in listening(os.getpid())


def test_an_ipv6_address_is_read_as_it_is_written() -> None:
    with closing(socket.create_server(("::1", 0), family=socket.AF_INET6)) as made:
        assert address_of(made) in listening(os.getpid())


def test_what_another_process_listens_on_is_not_the_brokers(listener: socket.socket) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert address_of(listener) not in listening(other.pid)
        other.communicate(b"\n")


def process(proc: Path, number: int, *words: str) -> None:
    (proc / str(number)).mkdir()
    (proc / str(number) / "cmdline").write_bytes("".join(f"{word}\0" for word in words).encode())


def test_brokers_are_found_below_an_init_and_told_from_what_only_names_them(
    tmp_path: Path,
) -> None:
    process(tmp_path, 1, "/sbin/docker-init", "--", "pykafkalog-broker", "server.properties")
    process(tmp_path, 7, "/opt/bin/python3", "/opt/bin/pykafkalog-broker", "server.properties")
    process(tmp_path, 12, "pykafkalog-broker")
    process(tmp_path, 30, "grep", "-r", "pykafkalog-broker")
    process(tmp_path, 31, "python", "-m", "pykafkalog.tools.healthcheck")
    (tmp_path / "32").mkdir()  # it ends just now
    (tmp_path / "self").mkdir()
    assert list(brokers(tmp_path)) == [7, 12]


def test_an_address_that_is_given_is_the_only_one_that_is_asked(
    listener: socket.socket, capsys: pytest.CaptureFixture[str]
) -> None:
    thread = reply_once(listener, HEALTHY)
    assert main([address_of(listener)]) == 0
    thread.join()
    address = address_of(listener)
    listener.close()
    assert main([address]) == 1
    assert capsys.readouterr().out == f"unhealthy: no answer at {address}\n"
