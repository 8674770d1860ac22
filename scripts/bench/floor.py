"""The floor: what this machine takes of any broker, by a bare loop that is one side of the bench.

The loop receives frames, computes the CRC-32C of each, writes it to a file and sends the bytes of a
reply back. No broker can cost less. On virtual machines the floor moves with what other machines
do: the first touch of a page that the host has taken back costs more than copying into it. So it is
measured in the same alternation, and a ratio of two brokers near it says little.
"""

import os
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

REPLY = struct.pack(">i", 56) + bytes(56)
MOST = 2 * 1024 * 1024
"""Bytes of the largest frame."""


class Floor:
    """A process of that loop, with the face of a broker."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self.directory = directory
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, __file__, str(self.directory / "written")]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """Give back what was written."""
        yield
        os.truncate(self.directory / "written", 0)


def serve(path: str) -> None:
    from crc32c import crc32c  # the side that starts it does without

    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    ready = select.epoll()
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    ready.register(listening, select.EPOLLIN)
    print(listening.getsockname()[1], flush=True)
    links: dict[int, tuple[socket.socket, memoryview, list[int]]] = {}
    while True:
        for number, _ in ready.poll():
            if number == listening.fileno():
                link, _ = listening.accept()
                link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ready.register(link, select.EPOLLIN)
                links[link.fileno()] = link, memoryview(bytearray(65536)), [0]
                continue
            link, buffer, filled = links[number]
            try:
                came = link.recv_into(buffer[filled[0] :])
            except ConnectionError:
                came = 0
            if not came:
                del links[number]
                link.close()
                continue
            end, at, replies = filled[0] + came, 0, 0
            while end - at >= 4:
                (size,) = struct.unpack_from(">i", buffer, at)
                if size + 4 > len(buffer):
                    grown = memoryview(bytearray(MOST))
                    grown[:end] = buffer[:end]
                    links[number] = link, (buffer := grown), filled
                if end - at < size + 4:
                    break
                frame = buffer[at + 4 : at + 4 + size]
                crc32c(frame)
                os.write(file, frame)
                at += size + 4
                replies += 1
            buffer[: end - at] = buffer[at:end]
            filled[0] = end - at
            if replies:
                link.sendall(REPLY * replies)


if __name__ == "__main__":
    serve(sys.argv[1])
