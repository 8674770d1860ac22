"""Counts the byte codes of a Produce request in Python, from the received bytes to the reply.

    .venv/bin/python scripts/bench/produce_path.py [--partitions 4] [--batch 16000] [--record 100]

A connection serves requests of an idempotent producer, from a stream that is always readable. Byte
codes per request, by function, are the same on an idle and on a crowded machine, so a change of one
per cent shows. Beside them stand microseconds of user time, best of some runs. Both leave out
writes, whose cost is the kernel's (see `floor.py`).
"""

import argparse
import collections
import os
import resource
import struct
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import trio
from crc32c import crc32c
from handlers import Broker

from broker.network.connection import Connection, ConnectionServices
from broker.network.request_channel import RequestChannel
from broker.network.sender import DiskReader
from broker.request import ConnectionInfo
from broker.world.clock import SystemClock
from broker.world.workers import InlineWorkers
from protocol.api_keys import ApiKey
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from protocol.records.header import position_of
from storage.os_filesystem import OsFile

VERSION = 12
TIME = 1_700_000_000_000
SEQUENCE_AT, CRC_AT, CRC_FROM = map(position_of, ("base_sequence", "crc", "attributes"))
INFO = ConnectionInfo(
    connection_id="bench",
    listener_name="PLAINTEXT",
    local_host="127.0.0.1",
    local_port=9092,
    peer_host="127.0.0.1",
    peer_port=1,
)


class Client:
    """A stream that gives the connection `count` requests, one at a time, and drops replies."""

    def __init__(self, topic: str, partitions: int, size: int, record: int, count: int) -> None:
        value = os.urandom(min(record or size, size))
        records = size // len(value)
        batch = bytearray(
            build_batch(
                [(TIME + at // 40, None, value, ()) for at in range(records)],
                producer_id=7,
                producer_epoch=0,
                base_sequence=0,
            )
        )
        request = ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[
                        PartitionProduceData(index=index, records=bytes(batch))
                        for index in range(partitions)
                    ],
                )
            ],
        )
        body = bytes(ProduceRequest.codec(VERSION).build(request))
        head = struct.pack(">hhih9sB", ApiKey.PRODUCE, VERSION, 5, 9, b"perf-prod", 0)
        self.frame = bytearray(struct.pack(">i", len(head) + len(body)) + head + body)
        self._positions, at = [], self.frame.find(batch)
        while at >= 0:
            self._positions.append(at)
            at = self.frame.find(batch, at + 1)
        self._heads = []
        for sequence in range(0, count * records, records):
            struct.pack_into(">i", batch, SEQUENCE_AT, sequence)
            self._heads.append(crc32c(memoryview(batch)[CRC_FROM:]))
        self._sent = 0
        self._records = records

    def recv_into(self, view: memoryview) -> int:
        if self._sent == len(self._heads):
            return 0
        for at in self._positions:
            struct.pack_into(">I", self.frame, at + CRC_AT, self._heads[self._sent])
            struct.pack_into(">i", self.frame, at + SEQUENCE_AT, self._sent * self._records)
        view[: len(self.frame)] = self.frame
        self._sent += 1
        return len(self.frame)

    def send(self, data: bytes) -> int:
        return len(data)

    def close(self) -> None:
        pass


def serve(broker: Broker, topic: str, args: argparse.Namespace, count: int) -> None:
    """Serve all requests of one client."""
    broker.topic(topic, args.partitions)
    client: Any = Client(topic, args.partitions, args.batch, args.record, count)
    channel = RequestChannel(
        {ApiKey.PRODUCE: broker.produce}, {ApiKey.PRODUCE: (0, VERSION)}, clock=SystemClock()
    )
    services = ConnectionServices(
        channel, max_request_bytes=104857600, disk=DiskReader(InlineWorkers())
    )
    run = Connection(client, INFO, services).run
    counting = args.counter
    if counting is not None:
        sys.settrace(counting)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    trio.run(run)
    sys.settrace(None)
    args.seconds = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16_000, help="bytes, at most 128 KB in all")
    parser.add_argument("--record", type=int, default=0, help="bytes of each; 0: one in a batch")
    parser.add_argument("--top", type=int, default=25)
    args = parser.parse_args()
    args.counter = None
    counts: collections.Counter[str] = collections.Counter()

    def count(frame: FrameType, event: str, _: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            code = frame.f_code
            counts[f"{os.path.relpath(code.co_filename)}:{code.co_name}"] += 1
        return count

    # The kernel's part would outweigh the rest.
    OsFile.pwrite = lambda self, data, position: None  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        broker = Broker(directory)
        times = []
        for number in range(5):
            serve(broker, f"timed-{number}", args, 2000)
            times.append(args.seconds / 2000 * 1e6)
        args.counter = count
        serve(broker, "counted", args, 200)
    ours = {name: number for name, number in counts.items() if not name.startswith("scripts")}
    for name, number in sorted(ours.items(), key=lambda item: -item[1])[: args.top]:
        print(f"{number / 200:8.1f}  {name}")
    print(f"{sum(ours.values()) / 200:8.1f}  byte codes per request, {min(times):.1f} us user")
    return 0


if __name__ == "__main__":
    sys.exit(main())
