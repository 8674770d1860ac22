"""`python -m tools.healthcheck [HOST:PORT]`: exit code 0 if a broker answers ApiVersions, else 1.

It uses plain sockets only, because a container runs it every few seconds. Without an address it
takes those that the kernel shows for the broker's process, so that the health check need not change
with `listeners`. A process's sockets are visible to its own user and to root (proc(5)).
"""

import os
import re
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 1, -1)
LISTEN = "0A"
"""The state of a listening socket in /proc/PID/net/tcp."""
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_PROGRAM = re.compile(rb"(?:^|/)pykafkalog-broker$")


def answers(address: str, timeout_s: float = 2.0) -> bool:
    """Return whether a broker at `host:port` answers ApiVersions without an error.

    A broker that speaks TLS gets the request over TLS. Its certificate does not matter here, and if
    it requires one of clients, that counts as an answer.
    """
    host, _, port = address.rpartition(":")
    try:
        place = (host.strip("[]"), int(port))
        with socket.create_connection(place, timeout_s) as connection:
            if asks_versions(connection):
                return True
    except (OSError, ValueError):
        return False
    return speaks_tls(place, timeout_s)


def asks_versions(connection: socket.socket) -> bool:
    """Return whether ApiVersions is answered without an error; the connection may be TLS'.

    Raises OSError.
    """
    connection.sendall(API_VERSIONS_V0)
    reply = b""
    while len(reply) < 10:
        piece = connection.recv(4096)
        if not piece:
            return False
        reply += piece
    _size, correlation, error = struct.unpack_from(">iih", reply)
    return bool(correlation == 1 and error == 0)


def speaks_tls(address: tuple[str, int], timeout_s: float) -> bool:
    """Return whether a broker answers there over TLS, or refuses a client without certificate."""
    import ssl  # seldom

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection(address, timeout_s) as plain,
            context.wrap_socket(plain) as connection,
        ):
            return asks_versions(connection)
    except ssl.SSLError as error:
        return "CERTIFICATE_REQUIRED" in (error.reason or "")
    except OSError:
        return False


def brokers(proc: Path = Path("/proc")) -> Iterator[int]:
    """Yield the ids of the processes that run `pykafkalog-broker`, in ascending order."""
    for number in sorted(int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()):
        try:
            words = (proc / str(number) / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if any(_PROGRAM.search(word) for word in words[:2]):  # [script, …] or [python, script, …]
            yield number


def listening(process: int, proc: Path = Path("/proc")) -> list[str]:
    """Return the addresses that a process listens on; loopback stands for every interface."""
    directory = proc / str(process)
    sockets = set()
    for entry in (directory / "fd").iterdir():
        try:
            found = _SOCKET.fullmatch(os.readlink(entry))
        except OSError:  # closed meanwhile
            continue
        if found is not None:
            sockets.add(found[1])
    return [
        _readable(fields[1])
        for table in ("tcp", "tcp6")
        for fields in map(str.split, _lines(directory / "net" / table))
        if fields[3] == LISTEN and fields[9] in sockets
    ]


def _lines(table: Path) -> list[str]:
    # A kernel without IPv6 has no such table; the first line names the columns.
    return table.read_text().splitlines()[1:] if table.exists() else []


def _readable(address: str) -> str:
    """Return `0100007F:2384` as 127.0.0.1:9092; /proc shows 4-byte words in the machine's order."""
    digits, _, port = address.partition(":")
    words = [int(digits[at : at + 8], 16) for at in range(0, len(digits), 8)]
    raw = b"".join(struct.pack("=I", word) for word in words)
    if not any(raw):
        return f"{'127.0.0.1' if len(raw) == 4 else '[::1]'}:{int(port, 16)}"
    if len(raw) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, raw)}:{int(port, 16)}"
    return f"[{socket.inet_ntop(socket.AF_INET6, raw)}]:{int(port, 16)}"


def main(words: list[str]) -> int:
    """Return 0 if a broker answers; else print one line that says why, and return 1."""
    if words:
        found = words[:1]
    else:
        try:
            found = [address for process in brokers() for address in listening(process)]
        except OSError as error:
            print(f"unhealthy: its sockets cannot be looked up: {error}")
            return 1
    if any(answers(address) for address in found):
        return 0
    where = ", ".join(found)
    print(f"unhealthy: no answer at {where}" if found else "unhealthy: no broker listens here")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
