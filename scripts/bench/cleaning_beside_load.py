"""Measures how a cleaning delays producers, and its cost: the real daemon, one compacted topic.

    .venv/bin/python scripts/bench/cleaning_beside_load.py [--gigabytes 1] [--threads 1]

Each round writes a topic of 1 KB records with 100,000 keys; `min.compaction.lag.ms` holds its
cleaning back. Then a client in a process of its own sends 500 small Produce requests a second to
another topic: first without a cleaning, for as long as one takes, then during the cleaning.

`p50`, `p99`, `max` are milliseconds from the moment that a request was due, also if it was sent
late; `turn` is the longest turn of the event loop by the broker's own measure; `cleaned` the
topic's size before and after and the MB/s of wall time; `child` the largest resident set of a
cleaner's process and its CPU time. Targets: p99 at most 1.5 times that without cleaning, no turn
above 10 ms because of the cleaner, the child within its share of `log.cleaner.dedupe.buffer.size`
plus 50 MB.
"""

import argparse
import json
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from protocol.api_keys import ApiKey
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from tests.support.broker_process import BrokerProcess
from tests.support.wire_client import request_frame

RATE = 500
KEYS = 100_000
VALUE = 1_000
MAP_BYTES = 128 * 1024 * 1024
FOR_EVER = str(2**62)


def probe(port: int, seconds: float) -> list[float]:
    """Return milliseconds of requests at `RATE` a second, from when each was due to its answer."""
    batch = build_batch([(int(time.time() * 1000), None, b"x" * 100, ())])
    request = ProduceRequest(
        acks=1,
        timeout_ms=10_000,
        transactional_id=None,
        topic_data=[
            TopicProduceData(
                name="beside", partition_data=[PartitionProduceData(index=0, records=batch)]
            )
        ],
    )
    frame = request_frame(ApiKey.PRODUCE, 8, request)
    client = socket.create_connection(("127.0.0.1", port), 30)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    took: list[float] = []
    due = time.perf_counter()
    end = due + seconds
    while due < end:
        time.sleep(max(due - time.perf_counter(), 0))
        client.sendall(frame)
        (size,) = struct.unpack(">i", _exactly(client, 4))
        _exactly(client, size)
        took.append((time.perf_counter() - due) * 1000)
        due += 1 / RATE
    return took


def _exactly(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise ConnectionError("the broker hung up")
        data += more
    return data


def start_probe(port: int, seconds: float) -> "subprocess.Popen[str]":
    """Start `probe` in a process of its own, so that the work of this one does not delay it."""
    words = [sys.executable, __file__, "--probe", str(port), str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


class Children:
    """Watches the broker's child processes: largest resident set, CPU."""

    def __init__(self, pid: int) -> None:
        self._parent = psutil.Process(pid)
        self._ended = threading.Event()
        self.largest = 0
        self.cpu_s = 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            cpu = 0.0
            for child in self._parent.children(recursive=True):
                try:
                    self.largest = max(self.largest, child.memory_info().rss)
                    times = child.cpu_times()
                except psutil.NoSuchProcess:
                    continue
                cpu += times.user + times.system
            self.cpu_s = max(self.cpu_s, cpu)

    def stop(self) -> None:
        """Stop watching."""
        self._ended.set()
        self._thread.join()


def fill(broker: BrokerProcess, topic: str, gigabytes: float) -> None:
    """Fill the topic with 1 KB records, as many updates of each key as fit."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "linger.ms": 20,
            "batch.size": 200_000,
            "queue.buffering.max.messages": 100_000,
        }
    )
    value = bytes(range(250)) * (VALUE // 250)
    for number in range(int(gigabytes * 1e9 / (VALUE + 20))):
        while True:
            try:
                producer.produce(topic, value, key=f"key-{number % KEYS}")
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(120)


def set_lag(admin: Any, topic: str, value: str) -> None:
    entry = ConfigEntry("min.compaction.lag.ms", value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)


def size_of(broker: BrokerProcess, topic: str) -> int:
    return sum(path.stat().st_size for path in broker.log_dir.glob(f"{topic}-0/*.log"))


def cleanings(broker: BrokerProcess) -> int:
    """The number of cleanings that the broker has logged."""
    return len(re.findall(r"cleaned log .*-0|Log cleaner thread \d+ cleaned", broker.output(10**8)))


def longest_turn_ms(metrics_port: int) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    (found,) = re.findall(r"^\S*longestturn_seconds (\S+)$", text, re.MULTILINE)
    return float(found) * 1000


def row(name: str, took: list[float], more: str) -> None:
    cuts = statistics.quantiles(took, n=100)
    print(f"  {name:10} {cuts[49]:8.2f} {cuts[98]:8.2f} {max(took):8.2f}   {more}", flush=True)


def measure(
    broker: BrokerProcess, admin: Any, metrics_port: int, gigabytes: float, number: int
) -> float:
    """Run one round; return the p99 during the cleaning over that without."""
    topic = f"compacted-{number}"
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": str(100_000_000),
        "min.cleanable.dirty.ratio": "0.01",
        "min.compaction.lag.ms": FOR_EVER,
        "max.compaction.lag.ms": str(2**63 - 1),
        "file.delete.delay.ms": "0",
    }
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(30)
    fill(broker, topic, gigabytes)
    time.sleep(5)
    before = size_of(broker, topic)
    quiet_s = 15.0
    without = json.loads(start_probe(broker.port, quiet_s).communicate()[0])
    turn = longest_turn_ms(metrics_port)
    row("without", without, f"turn {turn:.1f} ms")
    told = cleanings(broker)
    children = Children(broker.pid)
    running = start_probe(broker.port, 60 if gigabytes > 0.3 else 20)
    time.sleep(0.5)
    begin = time.perf_counter()
    set_lag(admin, topic, "0")
    turns = []
    while cleanings(broker) == told and time.perf_counter() - begin < 300:
        time.sleep(0.2)
        turns.append(longest_turn_ms(metrics_port))
    wall = time.perf_counter() - begin
    children.stop()
    took = json.loads(running.communicate()[0])
    during = took[RATE // 2 : int((wall + 0.5) * RATE)]
    time.sleep(2)
    after = size_of(broker, topic)
    row(
        "cleaning",
        during,
        f"turn {max(turns):.1f} ms; cleaned {before / 1e6:.0f} to {after / 1e6:.0f} MB in "
        f"{wall:.1f} s, {before / 1e6 / wall:.0f} MB/s; child {children.largest / 1e6:.0f} MB, "
        f"{children.cpu_s:.1f} s CPU",
    )
    return statistics.quantiles(during, n=100)[98] / statistics.quantiles(without, n=100)[98]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--probe", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.probe:
        print(json.dumps(probe(int(args.probe[0]), float(args.probe[1]))))
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        metrics_port = free.getsockname()[1]
    settings = {
        "log.cleaner.threads": str(args.threads),
        "log.cleaner.backoff.ms": "500",
        "log.cleaner.dedupe.buffer.size": str(MAP_BYTES),
        "metrics.http.listener": f"127.0.0.1:{metrics_port}",
    }
    with (
        tempfile.TemporaryDirectory(prefix="cleaning-") as where,
        BrokerProcess(Path(where), settings) as broker,
    ):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("beside", 1, 1)])["beside"].result(30)
        print(f"  {'':10} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
        ratios = [
            measure(broker, admin, metrics_port, args.gigabytes, number)
            for number in range(args.rounds)
        ]
    print(f"p99 with a cleaning over p99 without: {statistics.median(ratios):.2f} (median)")


if __name__ == "__main__":
    main()
