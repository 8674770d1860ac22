"""Clients that connect, shake hands, ask ApiVersions and close, as fast as that goes.

    python handshakes.py PORT SECONDS THREADS      prints the number of handshakes, and its own CPU

It resumes no sessions and checks no certificate: what is measured is the broker.
"""

import resource
import socket
import ssl
import struct
import sys
import threading
import time

ASKED = struct.pack(">ihhih", 10, 18, 0, 1, -1)
NO_LINGER = struct.pack("ii", 1, 0)
"""Leaves no TIME_WAIT behind, which would use up the ports."""


def run(port: int, until: float, context: ssl.SSLContext, counts: list[int]) -> None:
    count = 0
    while time.monotonic() < until:
        with socket.create_connection(("127.0.0.1", port), 10) as plain:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            with context.wrap_socket(plain) as encrypted:
                encrypted.sendall(ASKED)
                if not encrypted.recv(65536):
                    raise ConnectionError("no answer")
        count += 1
    counts.append(count)


def main() -> None:
    port, seconds, threads = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    counts: list[int] = []
    until = time.monotonic() + seconds
    workers = [
        threading.Thread(target=run, args=(port, until, context, counts)) for _ in range(threads)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    used = resource.getrusage(resource.RUSAGE_SELF)
    if len(counts) != threads:
        sys.exit("a client failed")
    print(sum(counts), used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    main()
