"""Compares the kernel's cost of produced bytes with this broker's and Apache Kafka 4.4.0's.

    .venv/bin/python scripts/bench/floor.py [--rounds 3] [--megabytes 200] [--batches 16000,250000]

The same Produce requests (four partitions with --batches bytes each, five in flight on one
connection) go in turn to three servers: a bare loop that receives a frame, computes its CRC-32C,
writes four files and sends sixty bytes back (`floor`: no broker can cost less on this machine),
this broker, and Apache Kafka. Reports user and system CPU seconds per GB of the server's process,
medians over the rounds.

On virtual machines the floor moves: the first touch of a page that the host has taken back costs
more than copying into it.
"""

import argparse
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import psutil
from crc32c import crc32c
from side_by_side import SETTINGS, create_topic, delete_topic

from protocol.records.builder import build_batch
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess

PARTITIONS, IN_FLIGHT, RECORD = 4, 5, 1000
MB = 1024 * 1024


def sink(directory: str) -> None:
    """The floor: serves one connection after the other."""
    buffer = memoryview(bytearray(8 * MB))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        while True:
            connection, _ = listening.accept()
            with connection:
                take_frames(connection, buffer, directory)


def take_frames(connection: socket.socket, buffer: memoryview, directory: str) -> None:
    names = [f"{directory}/{index}" for index in range(PARTITIONS)]
    files = [os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC) for name in names]
    position = 0
    while len(head := connection.recv(4, socket.MSG_WAITALL)) == 4:
        (size,) = struct.unpack(">i", head)
        connection.recv_into(buffer, size, socket.MSG_WAITALL)
        crc32c(buffer[:size])
        share = size // PARTITIONS
        for index, file in enumerate(files):
            os.pwrite(file, buffer[index * share : (index + 1) * share], position)
        position += share
        connection.send(struct.pack(">i", 56) + bytes(56))
    for file, name in zip(files, names, strict=True):
        os.close(file)
        os.unlink(name)


def request(topic: str, size: int) -> bytes:
    """A Produce v7 frame, acks=all."""
    now = int(time.time() * 1000)
    batch = build_batch(
        [(now, None, os.urandom(RECORD), []) for _ in range(max(size // (RECORD + 8), 1))]
    )
    name = topic.encode()
    body = struct.pack(
        f">hhih5shhii h{len(name)}s i",
        *(0, 7, 5, 5, b"bench", -1, -1, 30000, 1, len(name), name, PARTITIONS),
    )
    for index in range(PARTITIONS):
        body += struct.pack(">ii", index, len(batch)) + batch
    return struct.pack(">i", len(body)) + body


def send_all(port: int, frame: bytes, total: int) -> float:
    """Send the frame until `total` bytes are answered; return the GB that were sent."""
    count = max(total // len(frame), 1)
    sent = 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        replies = connection.makefile("rb")
        for answered in range(count):
            while sent < count and sent - answered < IN_FLIGHT:
                connection.sendall(frame)
                sent += 1
            (size,) = struct.unpack(">i", replies.read(4))
            replies.read(size)
    return count * len(frame) / 1e9


def measure(pid: int, port: int, frame: bytes, total: int) -> tuple[float, float]:
    process = psutil.Process(pid)
    before = process.cpu_times()
    gigabytes = send_all(port, frame, total)
    after = process.cpu_times()
    return (after.user - before.user) / gigabytes, (after.system - before.system) / gigabytes


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--batches", default="16000,250000", help="bytes, comma separated")
    parser.add_argument("--sink", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.sink:
        sink(args.sink)
    sizes = [int(size) for size in args.batches.split(",")]
    figures: dict[tuple[int, str], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        command = [sys.executable, __file__, "--sink", directory]
        floor = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        brokers = {
            "pykafkalog": BrokerProcess(Path(directory) / "ours", SETTINGS),
            "Apache Kafka": ApacheKafka(Path(directory) / "kafka", SETTINGS),
        }
        try:
            assert floor.stdout is not None
            takers = {"floor": (floor.pid, int(floor.stdout.readline()))}
            for name, broker in brokers.items():
                broker.start()
                takers[name] = broker.pid, int(broker.bootstrap.rsplit(":", 1)[1])
            for number in range(-1, args.rounds):  # the first round only warms up
                for size in sizes:
                    topic = f"floor-{size}-{number + 1}"
                    frame = request(topic, size)
                    for name in list(takers)[:: 1 if number % 2 else -1]:
                        if name in brokers:
                            create_topic(brokers[name], topic)
                        measured = measure(*takers[name], frame, args.megabytes * MB)
                        if number >= 0:
                            figures.setdefault((size, name), []).append(measured)
                        if name in brokers:
                            delete_topic(brokers[name], topic)
        finally:
            floor.kill()
            for broker in brokers.values():
                broker.kill()
    for (size, name), values in sorted(figures.items()):
        user, system = (statistics.median(column) for column in zip(*values, strict=True))
        print(
            f"{PARTITIONS} x {size:>7} B  {name:<12}  user {user:5.2f}  system {system:5.2f}  "
            f"CPU s/GB {user + system:5.2f}"
        )
    print("load average", *(f"{load:.1f}" for load in os.getloadavg()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
