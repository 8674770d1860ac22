"""Measures a request in the network room: a connection on a socket, its client in the same loop.

    .venv/bin/python scripts/bench/connection_path.py [--requests 20000] [--rounds 5] [KIND ...]

    heartbeat     one small request at a time        parked        its reply comes a moment later
    pipelined     32 of them in one send             coroutine     a worker of the pool makes it
    fetch-small   four slices of 16 KB (read)        fetch-large   four of 100 KB (sendfile)

Microseconds of user time for both sides together, best of some rounds. On a crowded machine count
instead: `--count` reports byte codes per request, without those of this file, exact on any machine.
Or run a kind twice under `valgrind --tool=callgrind`, with different --requests and --rounds 1: the
difference is exact to 0.1 per cent. Yields by time are turned off for that.
"""

import argparse
import collections
import os
import resource
import socket
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import trio
import trio.testing

from broker.network import connection, connection_state
from broker.network.request_channel import RequestChannel
from broker.network.sender import DiskReader
from broker.request import ConnectionInfo
from broker.world.clock import SystemClock
from broker.world.sockets import SocketStream
from broker.world.transport import Address
from broker.world.workers import InlineWorkers
from protocol.api_keys import ApiKey
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from protocol.messages.heartbeat import HeartbeatResponse
from storage.log.results import FileSlice
from storage.os_filesystem import OsFileSystem
from tests.support.fake_handlers import FakeHandler, Parking
from tests.support.wire_client import request_frame

HEARTBEAT_VERSION, FETCH_VERSION = 4, 12
PIPELINED = 32
PARTITIONS = 4
SLICES = {"fetch-small": 16_000, "fetch-large": 100_000}
KINDS = ("heartbeat", "pipelined", "parked", "coroutine", *SLICES)
ADDRESS = Address("127.0.0.1", 9092)
INFO = ConnectionInfo(
    connection_id="bench",
    listener_name="PLAINTEXT",
    local_host="127.0.0.1",
    local_port=9092,
    peer_host="127.0.0.1",
    peer_port=1,
)


class Behaviour:
    """What the handlers answer for one kind of request."""

    def __init__(self, kind: str, directory: str) -> None:
        self.kind = kind
        self.parked: Parking | None = None
        self.has_parked = trio.Event()
        self.file = OsFileSystem().open(f"{directory}/segment", create=True)
        self.file.pwrite(bytes(SLICES.get(kind, 1) + PARTITIONS), 0)

    def heartbeat(self, _: Any, __: Any) -> Any:
        if self.kind == "parked":
            self.parked = Parking()
            self.has_parked.set()
            return self.parked
        return self._late() if self.kind == "coroutine" else HeartbeatResponse()

    async def _late(self) -> Any:
        return HeartbeatResponse()

    def fetch(self, _: Any, __: Any) -> Any:
        partitions = [
            PartitionData(
                partition_index=index, records=FileSlice(self.file, index, SLICES[self.kind])
            )
            for index in range(PARTITIONS)
        ]
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])

    async def complete(self) -> None:
        """Complete parked replies, each in a turn of its own."""
        while True:
            await self.has_parked.wait()
            self.has_parked = trio.Event()
            if self.parked is not None:
                self.parked.complete(HeartbeatResponse())


async def ask(sock: socket.socket, frame: bytes, replies_per_frame: int, count: int) -> None:
    """Send the frame `count` times, each time after all replies to the last one."""
    buffer = bytearray(1 << 20)
    for _ in range(count):
        sock.send(frame)
        wanted = None
        came = 0
        while wanted is None or came < wanted:
            try:
                size = sock.recv_into(buffer)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(sock)
                continue
            if wanted is None:
                wanted = (int.from_bytes(buffer[:4], "big") + 4) * replies_per_frame
            came += size
    sock.close()


async def serve(kind: str, directory: str, requests: int) -> float:
    """Serve the requests; return the user seconds that took."""
    behaviour = Behaviour(kind, directory)
    channel = RequestChannel(
        {
            ApiKey.HEARTBEAT: FakeHandler(ApiKey.HEARTBEAT, behaviour.heartbeat),
            ApiKey.FETCH: FakeHandler(ApiKey.FETCH, behaviour.fetch),
        },
        {ApiKey.HEARTBEAT: (0, HEARTBEAT_VERSION), ApiKey.FETCH: (0, FETCH_VERSION)},
        clock=SystemClock(),
    )
    services = connection.ConnectionServices(
        channel, max_request_bytes=1 << 20, disk=DiskReader(InlineWorkers())
    )
    theirs, ours = socket.socketpair()
    for sock in (theirs, ours):
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    served = connection.Connection(SocketStream(ours, ADDRESS, ADDRESS), INFO, services)
    asked = (
        (ApiKey.FETCH, FETCH_VERSION) if kind in SLICES else (ApiKey.HEARTBEAT, HEARTBEAT_VERSION)
    )
    batch = PIPELINED if kind == "pipelined" else 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.run)
        nursery.start_soon(behaviour.complete)
        await trio.testing.wait_all_tasks_blocked()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        nursery.start_soon(ask, theirs, request_frame(*asked) * batch, batch, requests // batch)
        await served.run()
        took = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
        nursery.cancel_scope.cancel()
    return took


def counted(kind: str, directory: str, requests: int) -> collections.Counter[str]:
    """Serve the requests; return byte codes by function."""
    counts: collections.Counter[str] = collections.Counter()

    def count(frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if code.co_filename == __file__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            counts[f"{os.path.relpath(code.co_filename)}:{code.co_name}"] += 1
        return count

    sys.settrace(count)
    trio.run(serve, kind, directory, requests)
    sys.settrace(None)
    return counts


def tell_counts(kind: str, directory: str, top: int) -> None:
    """Print the byte codes that 320 further requests add, per request."""
    more, some = counted(kind, directory, 640), counted(kind, directory, 320)
    more.subtract(some)
    for name, number in more.most_common(top):
        print(f"{number / 320:8.1f}  {name}")
    print(f"{kind:<12} {sum(more.values()) / 320:8.1f} byte codes per request")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", action="store_true", help="byte codes instead of time")
    parser.add_argument("--top", type=int, default=0, help="with --count: functions, too")
    parser.add_argument("kinds", nargs="*", default=KINDS, metavar="KIND")
    args = parser.parse_args()
    if not set(args.kinds) <= set(KINDS):
        parser.error(f"a KIND is one of {', '.join(KINDS)}")
    # Yields depend on the time that work took; only none at all is the same number in every run.
    vars(connection_state).update(TURN_S=float("inf"))
    for kind in args.kinds:
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            if args.count:
                tell_counts(kind, directory, args.top)
                continue
            best = min(trio.run(serve, kind, directory, args.requests) for _ in range(args.rounds))
        print(f"{kind:<12} {best / args.requests * 1e6:8.2f} us user per request")
    return 0


if __name__ == "__main__":
    sys.exit(main())
