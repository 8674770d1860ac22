"""User CPU per produce and fetch request through codec, handler and log; in-process, no sockets.

    .venv/bin/python scripts/bench/handlers.py [rounds]

Each line is the best of several rounds (the machine is shared), in microseconds per request:
`codec` is the cost of parsing the request and building the response, `log` that of Log.append or
Log.read, `all` that of everything, `handler` the rest of it. The files are temporary.
"""

import resource
import shutil
import sys
import tempfile
from pathlib import Path
from random import Random
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from broker.api.fetch import FetchHandler
from broker.api.produce import ProduceHandler
from broker.api.transaction_gate import TransactionGate
from broker.deadlines import Deadlines
from broker.replication.batch_looker import BatchLooker
from broker.replication.down_converter import DownConverter
from broker.replication.fetch_session import FetchSessionCache
from broker.replication.purgatory import Purgatory
from broker.replication.replica_manager import Purgatories, ReplicaManager
from broker.request import RequestContext
from broker.world.clock import SystemClock
from broker.world.workers import InlineWorkers
from config.broker_config import BrokerConfig
from config.topic_config import TopicConfig
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.records.builder import build_batch
from protocol.types import TopicPartition
from storage.log.results import FetchIsolation
from storage.log_manager import LogManager
from storage.os_filesystem import OsFileSystem
from storage.waits import at_once
from tests.support.begun import begin
from tests.support.transaction_harness import TransactionHarness

VERSION_PRODUCE, VERSION_FETCH = 9, 12
REQUESTS = 10_000
"""Requests per round: many, because CPU time is counted in ticks of some milliseconds."""


class Broker:
    """The replication room and handlers over a real log directory."""

    def __init__(self, directory):
        config = BrokerConfig.parse({"log.dirs": directory, "broker.id": "1"})
        clock = SystemClock()
        self.logs = LogManager(config, clock, OsFileSystem(), random=Random(), on_offline=print)
        self.logs.startup(lambda _: TopicConfig())
        self.deadlines = Deadlines(clock)
        purgatories = Purgatories(
            Purgatory("Produce", self.deadlines), Purgatory("Fetch", self.deadlines)
        )
        image = SimpleNamespace(topic=lambda _: None, topic_by_id=lambda _: None)
        self.replicas = ReplicaManager(
            self.logs, image, clock, config, purgatories, InlineWorkers()
        )
        self.produce = ProduceHandler(
            self.replicas, TransactionGate(TransactionHarness().coordinator)
        )
        self.sessions = FetchSessionCache(clock, 1000, random=Random(1))
        self.fetch = FetchHandler(
            self.replicas,
            self.sessions,
            57671680,
            converter=DownConverter(BatchLooker(), self.replicas.storage_failed),
            clock=clock,
        )

    def topic(self, name, partitions):
        return [
            self.replicas.make_leader(
                TopicPartition(name, index), name.encode().ljust(16, b"."), 0, TopicConfig(), True
            )
            for index in range(partitions)
        ]


def user_seconds():
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def best(rounds, run, requests):
    """Least microseconds of user CPU per request over `rounds`."""
    measured = []
    for _ in range(rounds):
        before = user_seconds()
        run(requests)
        measured.append((user_seconds() - before) / requests * 1e6)
    return min(measured)


def context(version):
    return RequestContext(0, version, 1, "bench", None, 0.0)


def produce(broker, rounds, name, size, partitions):
    leaders = broker.topic(name, partitions)
    records = build_batch([(1_700_000_000_000, None, b"x" * size, ())])
    message = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=name,
                partition_data=[
                    PartitionProduceData(index=index, records=records)
                    for index in range(partitions)
                ],
            )
        ],
    )
    frame = bytearray(ProduceRequest.codec(VERSION_PRODUCE).build(message))
    view = memoryview(frame)
    parse = ProduceRequest.codec(VERSION_PRODUCE).parse_at
    build = ProduceResponse.codec(VERSION_PRODUCE).build_into
    ctx, handler = context(VERSION_PRODUCE), broker.produce

    def unpatch(request):
        for topic in request.topic_data:  # a client's frame has base offset 0
            for data in topic.partition_data:
                data.records[:8] = bytes(8)

    def everything(count):
        for _ in range(count):
            request, _ = parse(frame, view, 0, len(frame))
            unpatch(request)
            build(at_once(handler(ctx, request)), [].append)

    def log_only(count):
        request, _ = parse(frame, view, 0, len(frame))
        for _ in range(count):
            unpatch(request)
            for leader, data in zip(leaders, request.topic_data[0].partition_data, strict=True):
                leader.log.append_as_leader(
                    data.records, leader_epoch=0, request_version=VERSION_PRODUCE
                )

    reply = at_once(handler(ctx, parse(frame, view, 0, len(frame))[0]))
    assert all(not r.error_code for r in reply.responses[0].partition_responses), reply

    def codec_only(count):
        for _ in range(count):
            parse(frame, view, 0, len(frame))
            build(reply, [].append)

    name = f"produce {size:>6} B x {partitions}"
    requests = min(REQUESTS, 50_000_000 // (size * partitions))
    show(name, rounds, everything, codec_only, log_only, requests)


def fetch(broker, rounds, name, partitions, idle, *, session):
    leaders = broker.topic(name, partitions + idle)
    records = build_batch([(1_700_000_000_000, None, b"x" * 1000, ())])
    for leader in leaders[:partitions]:
        for _ in range(20):
            leader.append_as_leader_nowait(bytearray(records))

    def request(session_id, epoch, indexes):
        return FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=session_id,
            session_epoch=epoch,
            topics=[
                FetchTopic(
                    topic=name,
                    partitions=[
                        FetchPartition(
                            partition=index,
                            fetch_offset=5 if index < partitions else 0,
                            partition_max_bytes=1 << 20,
                        )
                        for index in indexes
                    ],
                )
            ]
            if indexes
            else [],
        )

    ctx, handler = context(VERSION_FETCH), broker.fetch
    codec = FetchRequest.codec(VERSION_FETCH)
    parse = codec.parse_at
    build = FetchResponse.codec(VERSION_FETCH).build_into
    everyone = range(partitions + idle)
    opened = at_once(handler(ctx, request(0, 0 if session else -1, everyone)))
    message = request(
        opened.session_id, 1 if session else -1, range(partitions if session else len(leaders))
    )
    frame = bytearray(codec.build(message))
    view = memoryview(frame)
    kept = broker.sessions.get(opened.session_id) if session else None

    def everything(count):
        for _ in range(count):
            asked, _ = parse(frame, view, 0, len(frame))
            if kept is not None:
                kept.epoch = 1
            build(at_once(handler(ctx, asked)), [].append)

    def log_only(count):
        for _ in range(count):
            for leader in leaders[:partitions]:
                leader.log.read(5, 1 << 20, FetchIsolation.HIGH_WATERMARK, True)

    if kept is not None:
        kept.epoch = 1
    reply = at_once(handler(ctx, parse(frame, view, 0, len(frame))[0]))
    told = [p for t in reply.responses for p in t.partitions]
    assert sum(len(p.records) > 0 for p in told) == partitions, reply

    def codec_only(count):
        for _ in range(count):
            parse(frame, view, 0, len(frame))
            build(reply, [].append)

    kind = "session" if session else "full"
    show(f"fetch {kind} {partitions} of {len(leaders)}", rounds, everything, codec_only, log_only)


def long_poll(broker, rounds, name, partitions):
    """Measure a fetch that parks and the produce request that wakes it, together."""
    leaders = broker.topic(name, partitions)
    records = build_batch([(1_700_000_000_000, None, b"x" * 100, ())])
    ctx, handler = context(VERSION_FETCH), broker.fetch

    def request(session_id, epoch, offsets):
        return FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=session_id,
            session_epoch=epoch,
            topics=[
                FetchTopic(
                    topic=name,
                    partitions=[
                        FetchPartition(
                            partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
                        )
                        for index, offset in offsets.items()
                    ],
                )
            ],
        )

    message = request(0, 0, dict.fromkeys(range(partitions), 0))
    message.max_wait_ms = 0
    session = broker.sessions.get(at_once(handler(ctx, message)).session_id)

    def everything(count):
        for _ in range(count):
            asked = request(session.id, session.epoch, {0: leaders[0].log.log_end_offset})
            work = begin(handler(ctx, asked))
            leaders[0].append_as_leader_nowait(bytearray(records))
            broker.replicas.wake(leaders[0])
            assert work.done

    def others(count):
        for _ in range(count):
            request(session.id, session.epoch, {0: leaders[0].log.log_end_offset})
            leaders[0].append_as_leader_nowait(bytearray(records))

    whole, rest = (best(rounds, run, REQUESTS // 2) for run in (everything, others))
    print(
        f"long poll, 1 of {partitions:>3} woken: {whole - rest:6.1f} us  (park, wake, read, answer)"
    )


def show(name, rounds, everything, codec_only, log_only, requests=REQUESTS):
    runs = (everything, codec_only, log_only)
    whole, codec, log = (best(rounds, run, requests) for run in runs)
    between = whole - codec - log
    print(
        f"{name:<24} all {whole:6.1f}  codec {codec:6.1f}  log {log:6.1f}  handler {between:6.1f}"
    )


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    directory = tempfile.mkdtemp(prefix="handlers-bench-")
    try:
        broker = Broker(directory)
        produce(broker, rounds, "small", 100, 1)
        produce(broker, rounds, "medium", 16_000, 1)
        produce(broker, rounds, "wide", 1_000, 10)
        fetch(broker, rounds, "one", 1, 0, session=False)
        fetch(broker, rounds, "few", 4, 0, session=False)
        fetch(broker, rounds, "fews", 4, 0, session=True)
        fetch(broker, rounds, "many", 1, 49, session=True)
        long_poll(broker, rounds, "poll1", 1)
        long_poll(broker, rounds, "poll50", 50)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
