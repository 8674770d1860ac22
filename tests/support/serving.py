"""Servers on a loopback port, in a thread of their own for the length of a `with` block."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer


@contextmanager
def serving(serve: Callable[[socket.socket], object]) -> Iterator[tuple[str, int]]:
    """Call `serve` with the listening socket; the block gets its address.

    At the end of the block whoever waits for a connection gets an OSError.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run() -> None:
            with suppress(OSError):
                serve(server)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield server.getsockname()
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(5)


@contextmanager
def serving_http(answer: Callable[[BaseHTTPRequestHandler], object]) -> Iterator[str]:
    """Have `answer` answer each request; the block gets the URL of the server, without a path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
