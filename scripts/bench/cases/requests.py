"""Produce requests as frames, on many connections or few, small or large; idle connections."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from frames import PRODUCE, SMALL, batch_of, produce_frame
from load import check_reply
from sides import FLOOR, Side

from cases import Bench, Figures, Measure, case, per_request
from protocol.api_keys import ApiKey


def produce(
    bench: Bench,
    side: Side,
    connections: int,
    inflight: int,
    partitions: int,
    value: int,
    seconds: float | None = None,
) -> Iterator[Measure]:
    """Produce requests of one record a partition, acks=all, as many as are answered."""
    seconds = min(seconds or bench.seconds, bench.seconds)

    def measure() -> Figures:
        with bench.topic(side, partitions) as topic:
            frames = [produce_frame(topic, range(partitions), batch_of(value))]
            told = bench.load(side, frames, connections, inflight, seconds)
        if side.name != FLOOR:
            check_reply(told, ApiKey.PRODUCE, PRODUCE)
        return per_request(told)

    yield measure


@contextmanager
def idle_connections(side: Side, count: int) -> Iterator[None]:
    """Connections that have asked once and say no more."""
    asked = bytes.fromhex("0000000a0012000000000001ffff")
    sockets = []
    try:
        for _ in range(count):
            link = socket.create_connection(("127.0.0.1", side.port), 30)
            # Leaves no TIME_WAIT behind, which would use up the ports.
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sockets.append(link)
            link.sendall(asked)
            link.recv(65536)
        yield
    finally:
        for link in sockets:
            link.close()


def beside_idle(bench: Bench, side: Side, count: int) -> Iterator[Measure]:
    """One client with requests of 0.9 KB at depth 1, beside idle connections."""
    (produced,) = produce(bench, side, 1, 1, 1, SMALL)
    before = side.resident_mb()

    def measure() -> Figures:
        # For all sides at once they would be more than one process may have open.
        with idle_connections(side, count):
            held = max(side.resident_mb() - before, 0)
            return {**produced(), "RSS KB/connection": held * 1000 / count}

    yield measure


CASES = {
    **{
        f"requests/0.9 KB, {count} x 1": case(
            produce, count, 1, 1, SMALL, quick=count in (4, 64), floor=True
        )
        for count in (1, 4, 16, 64, 256, 1000)
    },
    "requests/0.9 KB, 2 x 20": case(produce, 2, 20, 1, SMALL, quick=True, floor=True),
    # These times are short, because a second would write more than the memory that is warm.
    "requests/16 KB, 4 x 5": case(produce, 4, 5, 1, 16_000, 1.5, floor=True),
    "requests/4 x 64 KB, 2 x 5": case(produce, 2, 5, 4, 64_000, 1.0, floor=True),
    "requests/1 MB, 2 x 2": case(produce, 2, 2, 1, 1_000_000, 0.7, floor=True),
    **{
        f"requests/0.9 KB, 1 x 1 beside {count} idle": case(beside_idle, count)
        for count in (1000, 10_000)
    },
}
"""`connections x in flight` of each."""
