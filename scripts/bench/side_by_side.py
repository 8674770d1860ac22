"""Compares this broker with Apache Kafka 4.4.0, alternating in one run, by Kafka's own tools.

Both brokers run at the same time, warmed up by the same load, and are measured in turn: for every
round and every setting first the one, then the other, the order changing with each round. Reports
medians over the rounds and the ratio of the medians:

* produce: `kafka-producer-perf-test` (4 partitions, acks=all, idempotent, linger 5 ms): MB/s by the
  tool, CPU seconds of the broker process per GB;
* consume: `kafka-consumer-perf-test` over the produced records (no initial rebalance delay);
* depth 1: one connection, one small Produce request (acks=1) at a time, requests per second;
* start: from starting the process to its first ApiVersions answer, on fresh directories;
* memory: resident set of a fresh broker after 1 GB produced.

The client shares the machine with the broker, so MB/s is bounded by the client; CPU per GB is not.
"""

import argparse
import json
import re
import socket
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from protocol.records.builder import build_batch  # noqa: E402
from tests.support.apache_kafka import ApacheKafka  # noqa: E402
from tests.support.broker_process import BrokerProcess  # noqa: E402
from tests.support.kafka_jars import java  # noqa: E402

console = Console()
MB = 1024 * 1024
Broker = BrokerProcess | ApacheKafka
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "log.segment.delete.delay.ms": "1000"}


def cpu_seconds(broker: Broker) -> float:
    """User and system time of the broker process so far."""
    times = psutil.Process(broker.pid).cpu_times()
    return times.user + times.system


def create_topic(broker: Broker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(30)


def delete_topic(broker: Broker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(30)


def produce(broker: Broker, topic: str, size: int, batch: int, megabytes: int) -> dict[str, float]:
    """One run of the producer tool: MB/s, latencies, broker CPU seconds per GB."""
    create_topic(broker, topic)
    count = megabytes * MB // size
    before = cpu_seconds(broker)
    out = java(
        "org.apache.kafka.tools.ProducerPerformance",
        *(
            "--topic",
            topic,
            "--num-records",
            str(count),
            "--record-size",
            str(size),
            "--throughput",
            "-1",
        ),
        *("--bootstrap-server", broker.bootstrap),
        *("--command-property", f"batch.size={batch}", "linger.ms=5"),
        timeout=600,
    ).stdout.splitlines()[-1]
    cpu = cpu_seconds(broker) - before
    rate = float(re.search(r"\(([\d.]+) MB/sec\)", out).group(1))  # type: ignore[union-attr]
    p99 = float(re.search(r"([\d.]+) ms 99th", out).group(1))  # type: ignore[union-attr]
    return {"MB/s": rate, "CPU s/GB": cpu / (count * size / 1e9), "p99 ms": p99}


def consume(broker: Broker, topic: str, size: int, megabytes: int) -> dict[str, float]:
    """One run of the consumer tool over the topic."""
    count = megabytes * MB // size
    before = cpu_seconds(broker)
    lines = java(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--topic", topic, "--num-records", str(count), "--bootstrap-server", broker.bootstrap),
        *("--timeout", "60000"),
        timeout=600,
    ).stdout.splitlines()
    names = [name.strip() for name in lines[-2].split(",")]
    row = dict(zip(names, (v.strip() for v in lines[-1].split(",")), strict=True))
    cpu = cpu_seconds(broker) - before
    return {
        "consume MB/s": float(row["MB.sec"]),
        "fetch MB/s": float(row["fetch.MB.sec"]),
        "consume CPU s/GB": cpu / (count * size / 1e9),
    }


def depth_one(broker: Broker, topic: str, seconds: float = 4.0) -> dict[str, float]:
    """One connection, one request of one 100-byte record at a time: requests per second."""
    create_topic(broker, topic)
    batch = build_batch([(int(time.time() * 1000), None, b"x" * 100, [])])
    name = topic.encode()
    body = (
        struct.pack(
            f">hhih5shhii h{len(name)}s iii",
            0,
            8,
            7,
            5,
            b"bench",
            -1,
            1,
            30000,
            1,
            len(name),
            name,
            1,
            0,
            len(batch),
        )
        + batch
    )
    frame = struct.pack(">i", len(body)) + body
    host, port = broker.bootstrap.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def once() -> bytes:
            connection.sendall(frame)
            reply = connection.recv(4096)
            while len(reply) < 4 or len(reply) < 4 + struct.unpack(">i", reply[:4])[0]:
                reply += connection.recv(4096)
            return reply

        for _ in range(3000):  # warm the JVM as well as the caches
            reply = once()
        error = struct.unpack_from(">h", reply, 4 + 4 + 4 + 2 + len(name) + 4 + 4)[0]
        if error:
            raise RuntimeError(f"produce was refused with error {error}")
        before, started, count = cpu_seconds(broker), time.perf_counter(), 0
        while time.perf_counter() - started < seconds:
            for _ in range(100):
                once()
            count += 100
        took = time.perf_counter() - started
        return {
            "requests/s": count / took,
            "CPU us/request": (cpu_seconds(broker) - before) / count * 1e6,
        }


def start_time(make: Any) -> float:
    """Seconds from starting the process on a fresh directory to its first ApiVersions answer."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        broker = make(Path(directory))
        started = time.perf_counter()
        broker.start()
        host, port = broker.bootstrap.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(bytes.fromhex("0000000a00120000000000 01ffff".replace(" ", "")))
            connection.recv(4)
        took = time.perf_counter() - started
        broker.stop()
        return took


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=300, help="produced per setting and round")
    parser.add_argument(
        "--settings", default="100:16384,100:262144,1024:16384,1024:262144", help="record:batch,…"
    )
    parser.add_argument("--warm-up", type=int, default=3, help="times 100 MB before measuring")
    parser.add_argument("--skip", default="", help="leave out: produce,depth,start,memory")
    parser.add_argument("--json", type=Path, help="write every single figure there")
    args = parser.parse_args()
    settings = [tuple(map(int, pair.split(":"))) for pair in args.settings.split(",")]
    makers = {"pykafkalog": BrokerProcess, "Apache Kafka": ApacheKafka}
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in makers}

    def note(name: str, what: str, values: dict[str, float]) -> None:
        for key, value in values.items():
            figures[name].setdefault(f"{what} {key}", []).append(value)
        console.print(
            f"  {name:12} {what}: " + ", ".join(f"{k} {v:.2f}" for k, v in values.items())
        )

    def order(number: int) -> list[str]:
        return list(makers) if number % 2 == 0 else list(makers)[::-1]

    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        brokers = {
            name: make(Path(directory) / name.replace(" ", "-"), SETTINGS)
            for name, make in makers.items()
        }
        try:
            for name, broker in brokers.items():
                broker.start()
                console.print(f"warming up {name}")
                for turn in range(args.warm_up):
                    produce(broker, f"warm-{turn}", 1024, 16384, 100)
                    consume(broker, f"warm-{turn}", 1024, 100)
                depth_one(broker, "warm-depth")
            for number in range(args.rounds):
                console.rule(f"round {number + 1} of {args.rounds}")
                for size, batch in settings if "produce" not in args.skip else ():
                    for name in order(number):
                        what, topic = f"{size} B / {batch // 1024} KB", f"t-{size}-{batch}-{number}"
                        note(name, what, produce(brokers[name], topic, size, batch, args.megabytes))
                        note(name, what, consume(brokers[name], topic, size, args.megabytes))
                        delete_topic(brokers[name], topic)
                if "depth" not in args.skip:
                    for name in order(number):
                        note(name, "depth 1", depth_one(brokers[name], f"depth-{number}"))
        finally:
            for broker in brokers.values():
                broker.kill()
    for number in range(args.rounds):
        for name in order(number):
            if "start" not in args.skip:
                note(name, "start", {"s": start_time(makers[name])})
    for name in makers if "memory" not in args.skip else ():
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            broker = makers[name](Path(directory))
            broker.start()
            produce(broker, "memory", 1024, 16384, 1024)
            rss = psutil.Process(broker.pid).memory_info().rss / 1e6
            note(name, "after 1 GB", {"RSS MB": rss})
            broker.kill()
    table = Table("figure (median)", *makers, "ratio", "all, pykafkalog", "all, Apache Kafka")
    for what in figures["pykafkalog"]:
        ours, theirs = (figures[name][what] for name in makers)
        mine, other = statistics.median(ours), statistics.median(theirs)
        table.add_row(
            what,
            f"{mine:.2f}",
            f"{other:.2f}",
            f"{mine / other:.2f}",
            " ".join(f"{v:.1f}" for v in ours),
            " ".join(f"{v:.1f}" for v in theirs),
        )
    Console(width=140).print(table)
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
