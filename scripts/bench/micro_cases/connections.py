"""A request from its bytes to its reply."""

import os
import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import trio
import trio.testing
from crc32c import crc32c
from measuring import Run, user_seconds

from broker.api.offset_commit import OffsetCommitHandler
from broker.api.produce import ProduceHandler
from broker.api_facts import Served
from broker.cluster.image import MetadataImage
from broker.coordinator.partition_writer import ReplicaPartitionWriter
from broker.coordinator.transaction.gate import TransactionGate
from broker.network import connection
from broker.network.connection_loop import ConnectionLoop
from broker.network.connection_work import ConnectionWork, DueLine
from broker.network.request_services import RequestServices
from broker.network.sender import DiskReader
from broker.registry import APIS
from broker.request import ConnectionInfo
from broker.security.acl_authorizer import AclAuthorizer
from broker.world.clock import SystemClock
from broker.world.readiness import SocketReadiness
from broker.world.sockets import SocketStream
from broker.world.transport import Address
from micro_cases.handlers import bench_of
from micro_cases.messages import (
    FETCH,
    HEARTBEAT,
    NOW,
    OFFSET_COMMIT,
    PRODUCE,
    Case,
    fetch_response,
    produce_request,
    topics,
)
from protocol.acls.index import RuleIndex
from protocol.acls.rules import Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType
from protocol.api_keys import ApiKey
from protocol.messages import offset_commit
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.records.builder import build_batch
from protocol.records.header import position_of
from protocol.types import OFFSETS_TOPIC
from storage.log.results import FileSlice
from storage.os_filesystem import OsFile, OsFileSystem
from storage.waits import at_once
from tests.support.fake_handlers import FakeHandler, Parking
from tests.support.group_handlers import topic_image
from tests.support.group_harness import GroupHarness
from tests.support.transaction_harness import TransactionHarness
from tests.support.wire_client import request_frame

ADDRESS = Address("127.0.0.1", 9092)
INFO = ConnectionInfo(
    connection_id="bench",
    listener_name="PLAINTEXT",
    local_host="127.0.0.1",
    local_port=9092,
    peer_host="127.0.0.1",
    peer_port=1,
)
SEQUENCE_AT, CRC_AT, CRC_FROM = map(position_of, ("base_sequence", "crc", "attributes"))


def connected(handlers: dict[ApiKey, Any], stream: Any) -> tuple[connection.Connection, Any]:
    """Make a connection and the services that it uses."""
    versions = {key: (0, PRODUCE if key is ApiKey.PRODUCE else FETCH) for key in handlers}
    versions[ApiKey.HEARTBEAT] = (0, HEARTBEAT)
    versions[ApiKey.OFFSET_COMMIT] = (0, OFFSET_COMMIT)
    served = {
        key: Served(replace(APIS[key], versions=versions[key]), handler)
        for key, handler in handlers.items()
    }
    requests = RequestServices(served, clock=SystemClock())
    services = connection.ConnectionServices(
        requests, max_request_bytes=104857600, disk=DiskReader()
    )
    return connection.Connection(stream, INFO, services), requests


async def served(made: connection.Connection, requests: RequestServices) -> float:
    """Serve all requests of the connection; return the user seconds that took."""
    loop = ConnectionLoop(
        SocketReadiness(), requests.driver, requests.channel, requests.clock.monotonic
    )
    has_ended = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(loop.run)
        before = user_seconds()
        made.serve(loop, has_ended.set)
        await has_ended.wait()
        took = user_seconds() - before
        nursery.cancel_scope.cancel()
    return took


class Producer:
    """A stream on which an idempotent producer sends `count` requests, one at a time."""

    def __init__(self, first: int, partitions: int, records: int, size: int, count: int) -> None:
        """Sequences begin at `first`."""
        rows = [(NOW + at // 40, None, os.urandom(size), ()) for at in range(records)]
        batch = bytearray(build_batch(rows, producer_id=7, producer_epoch=0, base_sequence=0))
        request = produce_request(1, partitions, bytes(batch))
        self.frame = bytearray(request_frame(ApiKey.PRODUCE, PRODUCE, request))
        self._positions, at = [], -1  # not by a pattern, which takes a minute to compile and count
        while (at := self.frame.find(batch, at + 1)) >= 0:
            self._positions.append(at)
        heads = []
        for sequence in range(first, first + count * records, records):
            struct.pack_into(">i", batch, SEQUENCE_AT, sequence)
            heads.append((sequence, crc32c(memoryview(batch)[CRC_FROM:])))
        self._left = iter(heads)

    tells_again = False  # so it is never waited for

    def recv_into(self, view: memoryview) -> int:
        head = next(self._left, None)
        if head is None:
            return 0
        for at in self._positions:
            struct.pack_into(">i", self.frame, at + SEQUENCE_AT, head[0])
            struct.pack_into(">I", self.frame, at + CRC_AT, head[1])
        view[: len(self.frame)] = self.frame
        return len(self.frame)

    def send(self, data: bytes) -> int:
        return len(data)


class FixedRules:
    """Rules that nobody changes."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.index = RuleIndex(rules)

    def follow(self, tell: Callable[[], None]) -> None:
        pass


def authorizer(count: int) -> AclAuthorizer:
    """Access rules by which the client of the bench may write, among others."""
    kinds = (
        (f"topic-{n}", PatternType.PREFIXED if n % 2 else PatternType.LITERAL) for n in range(count)
    )
    rules: Any = FixedRules(
        Rule(
            ResourceType.TOPIC,
            name,
            kind,
            INFO.principal,
            "*",
            Operation.WRITE,
            PermissionType.ALLOW,
        )
        for name, kind in kinds
    )
    return AclAuthorizer(rules, frozenset())


def connection_produce(
    partitions: int, records: int, size: int, directory: Path, rules: int = 0
) -> Run:
    bench = bench_of(directory)
    if rules:
        gate = TransactionGate(TransactionHarness().coordinator)
        bench.produce_handler = ProduceHandler(bench.replicas, gate, allowed=authorizer(rules))
    leaders = bench.topic("topic-0", partitions)

    def run(count: int) -> float:
        first = leaders[0].log.log_end_offset
        producer = Producer(first, partitions, records, size, count)
        took = without_writes({ApiKey.PRODUCE: bench.produce_handler}, producer)
        assert leaders[0].log.log_end_offset == first + count * records
        return took

    return run


class Asking:
    """A stream on which a client sends the same request `count` times."""

    def __init__(self, frame: bytes, count: int) -> None:
        self.frame = frame
        self._left = count

    tells_again = False  # so it is never waited for

    def recv_into(self, view: memoryview) -> int:
        if not self._left:
            return 0
        self._left -= 1
        view[: len(self.frame)] = self.frame
        return len(self.frame)

    def send(self, data: bytes) -> int:
        return len(data)


def connection_commit(directory: Path) -> Run:
    bench = bench_of(directory)
    (offsets,) = bench.topic(OFFSETS_TOPIC, 1)
    image = MetadataImage()
    image.set_topic(topic_image("topic-0", bytes(16), 1))
    writer: Any = ReplicaPartitionWriter(bench.replicas, timeout_ms=5_000)
    groups = GroupHarness(writer, bench.clock, partition_count=1)
    groups.coordinator.on_elected(0, 0)
    groups.work()
    one = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    asked = topics(1, offset_commit.OffsetCommitRequestTopic, "partitions", [one], "name")
    request = offset_commit.OffsetCommitRequest(
        group_id="group", generation_id_or_member_epoch=-1, topics=asked
    )
    frame = request_frame(ApiKey.OFFSET_COMMIT, OFFSET_COMMIT, request)
    handlers = {ApiKey.OFFSET_COMMIT: OffsetCommitHandler(groups.coordinator, image)}

    def run(count: int) -> float:
        first = offsets.log.log_end_offset
        took = without_writes(handlers, Asking(frame, count))
        assert offsets.log.log_end_offset == first + count
        return took

    return run


def without_writes(handlers: dict[ApiKey, Any], stream: Any) -> float:
    """Serve all requests of the stream, but write nothing; return the user seconds that took."""
    made, requests = connected(handlers, stream)
    readiness = SocketReadiness()  # it has nothing to tell
    made._loop = ConnectionLoop(
        readiness, requests.driver, requests.channel, requests.clock.monotonic
    )
    # `at_once` takes its steps.
    made._work = ConnectionWork(DueLine(), stream, INFO.client, str, str)
    write = OsFile.pwrite
    OsFile.pwrite = lambda self, data, position: None
    try:
        before = user_seconds()
        at_once(made.run())
        return user_seconds() - before
    finally:
        OsFile.pwrite = write


class Answers:
    """The handlers' answers on a connection with a client on a socket."""

    def __init__(self, kind: str, file: Any, size: int) -> None:
        self.kind = kind
        self.parked: Parking | None = None
        self.has_parked = trio.Event()
        self._slices = [FileSlice(file, n, size) for n in range(4)]

    def heartbeat(self, _: Any, __: Any) -> Any:
        if self.kind == "parked":
            self.parked = Parking()
            self.has_parked.set()
            return self.parked
        return HeartbeatResponse()

    def fetch(self, _: Any, __: Any) -> Any:
        return fetch_response(1, self._slices)

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
        wanted, came = None, 0
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


def connection_case(kind: str, slices: int, pipelined: int, directory: Path) -> Run:
    file = OsFileSystem().open(f"{directory}/segment", create=True)
    file.pwrite(bytes(slices + 4), 0)

    async def serve(count: int) -> float:
        answers = Answers(kind, file, slices)
        key, version = (ApiKey.FETCH, FETCH) if slices else (ApiKey.HEARTBEAT, HEARTBEAT)
        handler = FakeHandler(key, answers.fetch if slices else answers.heartbeat)
        theirs, ours = socket.socketpair()
        for sock in (theirs, ours):
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        made, requests = connected({key: handler}, SocketStream(ours, ADDRESS, ADDRESS))
        frame = request_frame(key, version) * pipelined
        async with trio.open_nursery() as nursery:
            nursery.start_soon(requests.run)
            nursery.start_soon(answers.complete)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(ask, theirs, frame, pipelined, -(-count // pipelined))
            took = await served(made, requests)
            nursery.cancel_scope.cancel()
        return took

    return lambda count: trio.run(serve, count)


CASES: dict[str, Case] = {
    "connection/produce 100 B": partial(connection_produce, 1, 1, 100),
    "connection/produce 100 B by 10,000 rules": partial(
        connection_produce, 1, 1, 100, rules=10_000
    ),
    "connection/produce 4 x 16000 B": partial(connection_produce, 4, 1, 16_000),
    "connection/produce 4 x 160 records of 100 B": partial(connection_produce, 4, 160, 100),
    "connection/commit": connection_commit,
    "connection/heartbeat": partial(connection_case, "heartbeat", 0, 1),
    "connection/heartbeat, 32 in one send": partial(connection_case, "heartbeat", 0, 32),
    "connection/heartbeat that is parked": partial(connection_case, "parked", 0, 1),
    "connection/fetch 4 x 16000 B": partial(connection_case, "fetch", 16_000, 1),
    "connection/fetch 4 x 100000 B": partial(connection_case, "fetch", 100_000, 1),
}
