"""`DirectHandler`: how long it waits for a server."""

import socket
from typing import Any

import pytest

from broker.zookeeper.kazoo_parts import DirectHandler


@pytest.mark.parametrize(
    ("session_s", "wait_s", "first_s"),
    [
        (60.0, 60.0, 20.0),  # a third of the session's timeout,
        (15.0, 15.0, 5.0),
        (14.0, 14.0, 5.0),  # five seconds at least,
        (60.0, 4.0, 4.0),  # and never longer than kazoo asks for
    ],
)
def test_a_server_that_never_opens_the_session_leaves_time_for_another_attempt(
    monkeypatch: pytest.MonkeyPatch, session_s: float, wait_s: float, first_s: float
) -> None:
    waits = []

    def polled(_: DirectHandler, waiting: Any, timeout: float) -> list[tuple[int, int]]:
        waits.append(timeout)
        return list(waiting.poll(0))

    monkeypatch.setattr(DirectHandler, "_polled", polled)
    handler = DirectHandler(None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(2):  # the bound is each connection's own
            with (
                handler.create_connection(listener.getsockname(), "localhost", session_s) as client,
                listener.accept()[0] as server,
            ):
                assert handler.select([], [client], [], wait_s) == ([], [client], [])
                assert handler.select([client], [], [], wait_s) == ([], [], [])
                server.sendall(b"opened")
                assert handler.select([client], [], [], wait_s) == ([client], [], [])
                client.recv(100)
                assert handler.select([client], [], [], wait_s) == ([], [], [])
    assert waits == [wait_s, first_s, first_s, wait_s] * 2
