"""Clients that take a part of a shared thing and keep it, in threads beside the test.

Each comes back at once when the broker closes its connection, with a new one.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator

from protocol.api_keys import ApiKey

PIECE = bytes(1 << 16)
PAUSE_S = 0.1


@contextlib.contextmanager
def squatting(count: int, one: Callable[[threading.Event], None]) -> Iterator[None]:
    """Call `one` again and again, in so many threads, while the block runs."""
    stop = threading.Event()

    def again() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                one(stop)

    threads = [threading.Thread(target=again, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def trickling_frame(port: int, announced: int) -> Callable[[threading.Event], None]:
    """Announces a Produce of so many bytes and sends a piece of it every now and then."""

    def one(stop: threading.Event) -> None:
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            client.sendall(struct.pack(">ihhi", announced, ApiKey.PRODUCE, 9, 1))
            client.settimeout(PAUSE_S)
            while not stop.wait(PAUSE_S):
                with contextlib.suppress(TimeoutError):
                    client.send(PIECE)

    return one


def reader_that_stops(port: int, request: bytes) -> Callable[[threading.Event], None]:
    """Sends `request` and takes the answer a byte at a time."""

    def one(stop: threading.Event) -> None:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            client.settimeout(10)
            client.connect(("127.0.0.1", port))
            client.sendall(request)
            while not stop.wait(PAUSE_S):
                if not client.recv(1):
                    return

    return one
