"""Measures single functions and paths in this process: user microseconds, or byte codes.

    .venv/bin/python scripts/bench/micro.py                              every case
    .venv/bin/python scripts/bench/micro.py codec/ 'handler/fetch*'      those that match
    .venv/bin/python scripts/bench/micro.py connection/ --count --top 20 byte codes, and where
    .venv/bin/python scripts/bench/micro.py handler/ --json before.json  keeps the figures
    .venv/bin/python scripts/bench/micro.py handler/ --compare before.json

records/   functions on a record batch          handler/     codec, handler and log of a request
codec/     generated code for a message         connection/  a request from its bytes to its reply

`connection/produce` counts all of a Produce request but its writes, whose cost is the kernel's. The
other connections are on a socket, with their client in the same loop; no connection yields by time.
On a crowded machine count, or compare two runs in alternation. The compiled form runs if there is
one (scripts/compile), and PYKAFKALOG_PURE=1 has the other one run; byte codes are those of what is
not compiled.
"""

import argparse
import json
import os
import shutil
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from config.form import choose_form

choose_form()

import trio
import trio.testing
from crc32c import crc32c
from measuring import Figure, Run, counted, load, report, timed, user_seconds

from broker.api_facts import Served
from broker.network import connection, connection_state
from broker.network.connection_loop import ConnectionLoop
from broker.network.request_channel import RequestChannel
from broker.network.sender import DiskReader
from broker.registry import APIS
from broker.request import ConnectionInfo
from broker.world.clock import SystemClock
from broker.world.readiness import SocketReadiness
from broker.world.sockets import SocketStream
from broker.world.transport import Address
from protocol.api_keys import ApiKey
from protocol.framing import parse_request_header
from protocol.messages import fetch, metadata, produce
from protocol.messages.heartbeat import HeartbeatResponse
from protocol.records.batch import read_header, verify_crc
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.header import position_of
from protocol.records.payload import payload_of
from protocol.records.record import iter_records
from protocol.records.record_validation import RecordRules, check_batch
from protocol.records.scan import fields_of
from protocol.records.search import first_at_or_after
from protocol.schema import Api
from storage.log.results import FileSlice
from storage.os_filesystem import OsFile, OsFileSystem
from storage.waits import at_once
from tests.support.begun import begin
from tests.support.broker_bench import context
from tests.support.fake_handlers import FakeHandler, Parking
from tests.support.real_bench import RealBench
from tests.support.wire_client import request_frame

NOW = 1_700_000_000_000
PRODUCE, FETCH, METADATA, HEARTBEAT = 12, 12, 12, 4
"""Versions."""

Case = Callable[[Path], Run]
"""Prepares one case in an empty folder of its own."""
CASES: dict[str, Case] = {}


def each(operation: Callable[[], object]) -> Run:
    """One call for each operation."""

    def run(count: int) -> None:
        for _ in range(count):
            operation()

    return run


# ---- records


def records_of(size: int, record: int, codec: CompressionType, mixed: bool) -> bytearray:
    """Build a batch: records of one size without keys, or of mixed sizes with keys."""
    rng = Random(1)
    words = [rng.randbytes(4).hex().encode() for _ in range(500)]

    def value() -> bytes:
        length = rng.randrange(record // 2, record * 3 // 2) if mixed else record
        return b" ".join(rng.choice(words) for _ in range(length // 9 + 1))[:length]

    rows = [
        (NOW + at // 4, b"%08d" % at if mixed else None, value(), ())
        for at in range(max(1, size // (record + 8)))
    ]
    return bytearray(build_batch(rows, codec=codec))


def record_case(name: str, prepare: Callable[[bytearray], Callable[[], object]]) -> None:
    for size, record, codec, mixed in (
        *((16 << 10, 100, codec, mixed) for codec in (0, 3) for mixed in (False, True)),
        *((1 << 20, 1024, codec, False) for codec in (0, 3, 4)),
    ):
        kind = CompressionType(codec)
        shape = f"{size >> 10} KB of {record} B{' mixed' * mixed} {kind.name.lower()}"
        CASES[f"records/{name}, {shape}"] = lambda _, made=(size, record, kind, mixed): each(
            prepare(records_of(*made))
        )


record_case("verify_crc", lambda buf: partial(verify_crc, buf, 0, read_header(buf)))
record_case(
    "check_batch", lambda buf: partial(check_batch, buf, 0, read_header(buf), RecordRules())
)
record_case(
    "fields_of",
    lambda buf: lambda: fields_of(payload_of(buf, 0, read_header(buf)), read_header(buf)),
)
record_case(
    "first_at_or_after",
    lambda buf: partial(first_at_or_after, buf, 0, read_header(buf).max_timestamp),
)
record_case("iter_records", lambda buf: lambda: list(iter_records(buf)))


# ---- codecs


def topics(
    count: int, made: type, partitions: str, ones: list[Any], name: str = "topic"
) -> list[Any]:
    """The topics of a message, all with the same partitions."""
    return [made(**{name: f"topic-{n}", partitions: ones}) for n in range(count)]


def produce_request(count: int, partitions: int, records: Any) -> Any:
    ones = [produce.PartitionProduceData(index=n, records=records) for n in range(partitions)]
    data = topics(count, produce.TopicProduceData, "partition_data", ones, "name")
    return produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data)


def produce_response(count: int, partitions: int) -> Any:
    made = produce.PartitionProduceResponse
    ones = [made(index=n, base_offset=123, log_start_offset=0) for n in range(partitions)]
    answered = topics(count, produce.TopicProduceResponse, "partition_responses", ones, "name")
    return produce.ProduceResponse(responses=answered)


def fetch_request(count: int, offsets: dict[int, int], **fields: Any) -> Any:
    made = partial(fetch.FetchPartition, partition_max_bytes=1 << 20)
    ones = [made(partition=n, fetch_offset=offset) for n, offset in offsets.items()]
    asked = topics(count, fetch.FetchTopic, "partitions", ones)
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}
    return fetch.FetchRequest(**{**limits, **fields}, topics=asked)


def fetch_response(count: int, records: list[Any]) -> Any:
    marks = {"high_watermark": 9, "last_stable_offset": 9, "log_start_offset": 0}
    made = partial(fetch.PartitionData, **marks, aborted_transactions=None)
    ones = [made(partition_index=n, records=data) for n, data in enumerate(records)]
    return fetch.FetchResponse(
        responses=topics(count, fetch.FetchableTopicResponse, "partitions", ones)
    )


def metadata_response(count: int, partitions: int) -> Any:
    made = partial(
        metadata.MetadataResponsePartition, leader_id=1, replica_nodes=[1], isr_nodes=[1]
    )
    ones = [made(partition_index=n) for n in range(partitions)]
    return metadata.MetadataResponse(
        brokers=[metadata.MetadataResponseBroker(node_id=1, host="localhost", port=9092)],
        cluster_id="abcdefghijklmnopqrstuv",
        controller_id=1,
        topics=topics(count, metadata.MetadataResponseTopic, "partitions", ones, "name"),
    )


def parsing(key: ApiKey, version: int, request: Any) -> Run:
    frame = bytearray(request_frame(key, version, request)[4:])
    view, end, parse_at = memoryview(frame), len(frame), type(request).codec(version).parse_at

    def parse() -> Any:
        header = parse_request_header(frame, view, 0, end)
        return parse_at(frame, view, header.body_offset, end)

    return each(parse)


def building(api: Api, version: int, value: Any) -> Run:
    build_into = api.codec(version).build_into
    return each(lambda: build_into(value, [].append))


for _count, _size in ((1, 16_384), (10, 1_024)):
    _shape = f"{_count}x{_count}"
    CASES |= {
        f"codec/parse Produce {_shape}": lambda _, n=_count, size=_size: parsing(
            ApiKey.PRODUCE, PRODUCE, produce_request(n, n, bytes(size))
        ),
        f"codec/build Produce response {_shape}": lambda _, n=_count: building(
            produce.ProduceResponse, PRODUCE, produce_response(n, n)
        ),
        f"codec/parse Fetch {_shape}": lambda _, n=_count: parsing(
            ApiKey.FETCH, FETCH, fetch_request(n, dict.fromkeys(range(n), 7))
        ),
        f"codec/build Fetch response {_shape}": lambda _, n=_count, size=_size: building(
            fetch.FetchResponse, FETCH, fetch_response(n, [bytes(size)] * n)
        ),
        f"codec/build Metadata response {_shape}": lambda _, n=_count: building(
            metadata.MetadataResponse, METADATA, metadata_response(n, n)
        ),
    }


# ---- handlers


def bench_of(directory: Path) -> RealBench:
    return RealBench(str(directory), OsFileSystem())


def handler_produce(size: int, partitions: int, directory: Path) -> Run:
    bench = bench_of(directory)
    bench.topic("topic-0", partitions)
    records = build_batch([(NOW, None, b"x" * size, ())])
    request = produce_request(1, partitions, records)
    frame = bytearray(produce.ProduceRequest.codec(PRODUCE).build(request))
    view, end = memoryview(frame), len(frame)
    parse = produce.ProduceRequest.codec(PRODUCE).parse_at
    build = produce.ProduceResponse.codec(PRODUCE).build_into
    ctx, handler = context(PRODUCE), bench.produce_handler

    def serve() -> Any:
        request, _ = parse(frame, view, 0, end)
        for data in request.topic_data[0].partition_data:
            data.records[:8] = bytes(8)  # as a client sends it
        reply = at_once(handler(ctx, request))
        build(reply, [].append)
        return reply

    answers = serve().responses[0].partition_responses
    assert not any(answer.error_code for answer in answers), answers
    return each(serve)


def handler_fetch(partitions: int, idle: int, session: bool, directory: Path) -> Run:
    bench = bench_of(directory)
    leaders = bench.topic("topic-0", partitions + idle)
    records = build_batch([(NOW, None, b"x" * 1000, ())])
    for leader in leaders[:partitions]:
        for _ in range(20):
            leader.append_as_leader_nowait(bytearray(records))
    ctx, handler = context(FETCH), bench.fetch_handler
    codec, build = fetch.FetchRequest.codec(FETCH), fetch.FetchResponse.codec(FETCH).build_into
    offsets = {n: 5 if n < partitions else 0 for n in range(len(leaders))}
    first = at_once(handler(ctx, fetch_request(1, offsets, session_epoch=0 if session else -1)))
    kept = bench.sessions.get(first.session_id) if session else None
    if session:
        offsets = dict.fromkeys(range(partitions), 5)
    following = {"session_id": first.session_id, "session_epoch": 1 if session else -1}
    frame = bytearray(codec.build(fetch_request(1, offsets, **following)))
    view, parse = memoryview(frame), codec.parse_at

    def serve() -> Any:
        request, _ = parse(frame, view, 0, len(frame))
        for leader in leaders[:partitions]:
            leader.last_read.offset = -1  # nobody else has read there
        if kept is not None:
            kept.epoch = 1
        reply = at_once(handler(ctx, request))
        build(reply, [].append)
        return reply

    answered = [data for topic in serve().responses for data in topic.partitions]
    assert sum(len(data.records) > 0 for data in answered) == partitions, answered
    return each(serve)


def handler_long_poll(partitions: int, directory: Path) -> Run:
    """A fetch that parks, and the append that wakes it."""
    bench = bench_of(directory)
    leaders = bench.topic("topic-0", partitions)
    records = build_batch([(NOW, None, b"x" * 100, ())])
    ctx, handler = context(FETCH), bench.fetch_handler
    asked = fetch_request(1, dict.fromkeys(range(partitions), 0), session_epoch=0)
    first = at_once(handler(ctx, asked))
    session = bench.sessions.get(first.session_id)
    assert session is not None

    def poll() -> None:
        asked = {0: leaders[0].log.log_end_offset}
        fields = {"session_id": session.id, "session_epoch": session.epoch, "max_wait_ms": 500}
        work = begin(handler(ctx, fetch_request(1, asked, **fields)))
        leaders[0].append_as_leader_nowait(bytearray(records))
        bench.replicas.wake(leaders[0])
        assert work.done

    return each(poll)


def handler_followers(followers: int, directory: Path) -> Run:
    """Fetches of one tail, each with a session of its own: parked, woken by one append, answered.

    An operation is one delivery: its share of the append, and its request and reply as bytes.
    """
    bench = bench_of(directory)
    leader = bench.topic("topic-0", 1)[0]
    records = build_batch([(NOW, None, b"x" * 100, ())])
    ctx, handler = context(FETCH), bench.fetch_handler
    codec, build = fetch.FetchRequest.codec(FETCH), fetch.FetchResponse.codec(FETCH).build_into
    sessions = []
    for _ in range(followers):
        first = at_once(handler(ctx, fetch_request(1, {0: 0}, session_epoch=0)))
        sessions.append(bench.sessions.get(first.session_id))

    def poll() -> None:
        asked = {0: leader.log.log_end_offset}
        parked = []
        for session in sessions:
            fields = {"session_id": session.id, "session_epoch": session.epoch, "max_wait_ms": 500}
            frame = bytearray(codec.build(fetch_request(1, asked, **fields)))
            view = memoryview(frame)
            request, _ = codec.parse_at(frame, view, 0, len(frame))
            parked.append(begin(handler(ctx, request)))
        leader.append_as_leader_nowait(bytearray(records))
        bench.replicas.wake(leader)
        for work in parked:
            pieces: list[Any] = []
            build(work.reply, pieces.append)
            for piece in pieces:
                if isinstance(piece, FileSlice) and piece.is_cached():
                    piece.read()

    def run(count: int) -> None:
        for _ in range(-(-count // followers)):
            poll()

    return run


CASES |= {
    "handler/produce 100 B x 1": partial(handler_produce, 100, 1),
    "handler/produce 16000 B x 1": partial(handler_produce, 16_000, 1),
    "handler/produce 1000 B x 10": partial(handler_produce, 1_000, 10),
    "handler/fetch 1 partition": partial(handler_fetch, 1, 0, False),
    "handler/fetch 4 partitions": partial(handler_fetch, 4, 0, False),
    "handler/fetch 4 partitions, session": partial(handler_fetch, 4, 0, True),
    "handler/fetch 1 of 50 partitions, session": partial(handler_fetch, 1, 49, True),
    "handler/long poll, 1 partition": partial(handler_long_poll, 1),
    "handler/long poll, 1 of 50 partitions": partial(handler_long_poll, 50),
    "handler/long poll, 1 of 100 followers": partial(handler_followers, 100),
}


# ---- connections

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
    """Make a connection and the channel that it is served by."""
    versions = {key: (0, PRODUCE if key is ApiKey.PRODUCE else FETCH) for key in handlers}
    versions[ApiKey.HEARTBEAT] = (0, HEARTBEAT)
    served = {
        key: Served(replace(APIS[key], versions=versions[key]), handler)
        for key, handler in handlers.items()
    }
    channel = RequestChannel(served, clock=SystemClock())
    services = connection.ConnectionServices(
        channel, max_request_bytes=104857600, disk=DiskReader()
    )
    return connection.Connection(stream, INFO, services), channel


async def served(made: connection.Connection, channel: RequestChannel) -> float:
    """Serve all requests of the connection; return the user seconds that took."""
    loop = ConnectionLoop(SocketReadiness(), channel.driver, channel.clock.monotonic)
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


def connection_produce(partitions: int, records: int, size: int, directory: Path) -> Run:
    bench = bench_of(directory)
    leaders = bench.topic("topic-0", partitions)
    write = OsFile.pwrite

    def run(count: int) -> float:
        first = leaders[0].log.log_end_offset
        producer = Producer(first, partitions, records, size, count)
        made, _ = connected({ApiKey.PRODUCE: bench.produce_handler}, producer)
        OsFile.pwrite = lambda self, data, position: None
        try:
            before = user_seconds()
            at_once(made.run())
            took = user_seconds() - before
        finally:
            OsFile.pwrite = write
        assert leaders[0].log.log_end_offset == first + count * records
        return took

    return run


class Answers:
    """What the handlers answer on a connection with a client on a socket."""

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
        made, channel = connected({key: handler}, SocketStream(ours, ADDRESS, ADDRESS))
        frame = request_frame(key, version) * pipelined
        async with trio.open_nursery() as nursery:
            nursery.start_soon(channel.run)
            nursery.start_soon(answers.complete)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(ask, theirs, frame, pipelined, -(-count // pipelined))
            took = await served(made, channel)
            nursery.cancel_scope.cancel()
        return took

    return lambda count: trio.run(serve, count)


CASES |= {
    "connection/produce 4 x 16000 B": partial(connection_produce, 4, 1, 16_000),
    "connection/produce 4 x 160 records of 100 B": partial(connection_produce, 4, 160, 100),
    "connection/heartbeat": partial(connection_case, "heartbeat", 0, 1),
    "connection/heartbeat, 32 in one send": partial(connection_case, "heartbeat", 0, 32),
    "connection/heartbeat that is parked": partial(connection_case, "parked", 0, 1),
    "connection/fetch 4 x 16000 B": partial(connection_case, "fetch", 16_000, 1),
    "connection/fetch 4 x 100000 B": partial(connection_case, "fetch", 100_000, 1),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", default=["*"], help="patterns; a room is `codec/`")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operations", type=int, help="in a round; default: what takes a moment")
    parser.add_argument("--count", action="store_true", help="byte codes instead of time")
    parser.add_argument("--top", type=int, default=0, help="with --count: functions, too")
    parser.add_argument("--list", action="store_true", help="only name the cases")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--compare", type=Path, help="show the ratio to figures of --json")
    args = parser.parse_args()
    patterns = [f"{pattern}*" if pattern.endswith("/") else pattern for pattern in args.cases]
    chosen = [name for name in CASES if any(fnmatchcase(name, pattern) for pattern in patterns)]
    if not chosen:
        parser.error("no case matches; --list names them")
    if args.list:
        print(*chosen, sep="\n")
        return 0
    # Yields depend on the time that work took; only none at all is the same number in every run.
    vars(connection_state).update(CONNECTION_TURN_S=float("inf"))

    def figures() -> Iterator[tuple[str, Figure]]:
        for name in chosen:
            directory = Path(tempfile.mkdtemp(prefix="bench-"))
            try:
                run = CASES[name](directory)
                yield (
                    name,
                    counted(run, args.top)
                    if args.count
                    else timed(run, args.rounds, args.operations),
                )
            finally:
                shutil.rmtree(directory)

    kept = report(figures(), load(args.compare))
    if args.json is not None:
        args.json.write_text(json.dumps(kept, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
