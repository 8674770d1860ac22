"""Healthy is what answers ApiVersions: `python -m tools.healthcheck HOST:PORT` ends with 0 or 1.

Plain sockets and nothing else, because it runs every few seconds in a container.
"""

import socket
import struct
import sys

API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def answers(address: str, timeout_s: float = 2.0) -> bool:
    """True when a broker at `host:port` answers ApiVersions without an error."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(API_VERSIONS_V0)
            reply = b""
            while len(reply) < 10:
                piece = connection.recv(4096)
                if not piece:
                    return False
                reply += piece
    except (OSError, ValueError):
        return False
    _size, correlation, error = struct.unpack_from(">iih", reply)
    return bool(correlation == 1 and error == 0)


if __name__ == "__main__":
    sys.exit(0 if answers(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092") else 1)
