"""Three of this broker beside three of Apache Kafka 3.9, on ZooKeeper, replication factor 3.

Both clusters stand at the same time, with the same settings, and are measured in turn, the order
changing with each round; medians are shown. Each cluster has a ZooKeeper of its own.

    produce    kafka-producer-perf-test, acks=all: MB/s, and the processor time of the three brokers
               per GB that clients wrote
    memory     resident memory of the three brokers after that
    partitions kill -9 of the broker that leads so many partitions: until both others name a leader
               for each of them, and until a record was acknowledged in the last

A death is noticed when the session with ZooKeeper ends, so every failover takes at least
`zookeeper.session.timeout.ms`; the time is the same for both clusters and shown beside the figures.

examples:
  scripts/bench/cluster.py --json cluster.json
  scripts/bench/cluster.py --only produce --rounds 3 --megabytes 300
  scripts/bench/cluster.py --only partitions --failing 1 --per-topic 1 --rounds 10
"""

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import confluent_kafka  # noqa: E402

from tests.support.cluster.broker_cluster import BrokerCluster, rotated  # noqa: E402
from tests.support.cluster.member import CLUSTER_KAFKA, Kind  # noqa: E402
from tests.support.kafka_jars import java  # noqa: E402

RECORD_BYTES: Final = 1000
SETTINGS: Final = {
    "replica.lag.time.max.ms": "30000",  # Kafka's default.
    "num.replica.fetchers": "1",
}
Figures = dict[str, float]


class Side:
    """One cluster and what is measured of it."""

    def __init__(self, kind: Kind, directory: Path, args: argparse.Namespace) -> None:
        self.kind = kind
        self.args = args
        own: dict[str, Any] = {}
        if kind is Kind.KAFKA:
            own = {"heap": args.heap, "java_options": ("-XX:+UseG1GC",)}
        elif args.pure:
            own = {"environment": {"PYKAFKALOG_PURE": "1"}}
        settings = SETTINGS | {"zookeeper.session.timeout.ms": str(args.session_ms)}
        self.cluster = BrokerCluster(directory, (kind,) * 3, settings=settings, own=own)
        self._topics = 0

    @property
    def name(self) -> str:
        return self.kind.value

    def topic(self, replicas: list[list[int]]) -> str:
        self._topics += 1
        name = f"bench-{self._topics}"
        self.cluster.create(name, replicas)
        return name

    def drop(self, topic: str) -> None:
        self.cluster.delete(topic)

    def cpu_seconds(self) -> float:
        return sum(member.cpu_seconds() for member in self.cluster)

    # ---- measurements

    def produce(self) -> Figures:
        topic = self.topic(rotated([1, 2, 3], self.args.partitions))
        records = self.args.megabytes * 1_000_000 // RECORD_BYTES
        before = self.cpu_seconds()
        done = java(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", topic, "--num-records", str(records)),
            *("--record-size", str(RECORD_BYTES), "--throughput", "-1", "--producer-props"),
            f"bootstrap.servers={self.cluster.bootstrap}",
            *("acks=all", "linger.ms=5", "batch.size=65536", "buffer.memory=67108864"),
            version=CLUSTER_KAFKA,
            timeout=1800,
        )
        self.cluster.wait_until_whole()
        used = self.cpu_seconds() - before
        last = done.stdout.strip().splitlines()[-1]
        told = re.search(r"\(([\d.]+) MB/sec\), ([\d.]+) ms avg", last)
        assert told is not None, done.stdout
        assert f"{records} records sent" in last, last
        resident = sum(member.resident_bytes() for member in self.cluster)
        self.drop(topic)
        return {
            # The tool's MB are of 2^20 bytes.
            "produce MB/s": float(told[1]) * 1.048576,
            "latency avg ms": float(told[2]),
            "CPU s/GB": used / (self.args.megabytes / 1000),
            "memory MB": resident / 1e6,
        }

    def partitions(self) -> Figures:
        controller = self.cluster.controller()
        leader = next(each for each in (1, 2, 3) if each != controller)
        others = [each for each in (1, 2, 3) if each != leader]
        names = [
            self.topic([[leader, *others]] * self.args.per_topic)
            for _ in range(self.args.failing // self.args.per_topic)
        ]
        self.cluster.wait_until_whole(300)
        began = time.monotonic()
        self.cluster[leader].kill()
        wanted = set(names)
        self.cluster.wait_until(
            lambda view: all(
                each.leader not in (leader, -1)
                for (topic, _), each in view.partitions.items()
                if topic in wanted
            ),
            300,
        )
        elected = time.monotonic() - began
        self._one_record(names[-1], self.args.per_topic - 1)
        written = time.monotonic() - began
        self.cluster[leader].start()
        self.cluster.wait_until_whole(300)
        whole = time.monotonic() - began
        for name in names:
            self.drop(name)
        count = self.args.failing
        return {
            f"{count} partitions: leaders s": elected,
            f"{count} partitions: written s": written,
            f"{count} partitions: whole again s (with the start)": whole,
        }

    def _one_record(self, topic: str, partition: int) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.cluster.bootstrap, "acks": "all", "log_level": 0}
        )
        producer.produce(topic, b"x", partition=partition)
        assert producer.flush(60) == 0


CASES: Final = ("produce", "partitions")


def measure(args: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Side to figure to its values, one for each round."""
    found: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="cluster-bench-") as where:
        sides = [Side(kind, Path(where) / kind.value, args) for kind in Kind]
        try:
            for side in sides:
                side.cluster.start()
            for case in args.only or CASES:
                # The first round of produce warms up the JVMs, and the compiled form's caches.
                for number in range(-1 if case == "produce" else 0, args.rounds):
                    for side in sides[:: 1 if number % 2 else -1]:
                        figures = getattr(side, case)()
                        told = ", ".join(f"{key} {value:.3g}" for key, value in figures.items())
                        print(f"  {case} {number}: {side.name}: {told}", file=sys.stderr)
                        if number >= 0:
                            for key, value in figures.items():
                                found.setdefault(side.name, {}).setdefault(key, []).append(value)
        finally:
            for side in sides:
                side.cluster.close()
    return found


def show(found: dict[str, dict[str, list[float]]], args: argparse.Namespace) -> None:
    """A table of medians, and ours over Kafka's."""
    kafka, ours = found[Kind.KAFKA.value], found[Kind.OURS.value]
    print(f"three brokers each, session timeout {args.session_ms} ms, {os.cpu_count()} cores")
    print(f"{'':46} {'kafka':>10} {'ours':>10} {'ours/kafka':>10}")
    for key in kafka:
        theirs, own = statistics.median(kafka[key]), statistics.median(ours[key])
        print(f"{key:46} {theirs:10.3g} {own:10.3g} {own / theirs:10.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=CASES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=300, help="of one produce measurement")
    parser.add_argument("--partitions", type=int, default=6, help="of its topic")
    parser.add_argument("--failing", type=int, default=1000, help="partitions that fail over")
    parser.add_argument("--per-topic", type=int, default=100)
    parser.add_argument("--session-ms", type=int, default=6000)
    parser.add_argument("--heap", default="1g", help="of each broker of Apache Kafka")
    parser.add_argument("--pure", action="store_true", help="ours uncompiled")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found = measure(args)
    show(found, args)
    if args.json is not None:
        args.json.write_text(
            json.dumps({"session ms": args.session_ms, "figures": found}, indent=1)
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
