"""Compares transactions here and on Apache Kafka 4.4.0, alternating in one run.

Both brokers run at the same time, warmed up by the same load, and are measured in turn: for every
round and every figure first the one, then the other, the order changing with each round. Reports
medians over the rounds, and the ratio (ours / Kafka's) of the medians:

* perf, N B: `kafka-producer-perf-test --transaction-duration-ms 100` with records of N bytes, one
  transactional producer: MB/s by the tool (more is better), CPU seconds of the broker process per
  GB (less is better);
* commit: begin, one record of 100 bytes, commit, one transaction after another: milliseconds of a
  transaction, p50, p95 and p99 of a round (less is better), and broker CPU;
* copy: the same, and the transaction also commits the offset of a record that was consumed before
  (consume-transform-produce);
* visible: from the call of commit until a waiting read_committed consumer has the record.

The last three are measured with confluent-kafka (librdkafka) and with Kafka's own Java client.

examples:
  scripts/bench/transactions.py                        everything, about ten minutes
  scripts/bench/transactions.py --rounds 1 --skip perf a quick look at latencies
  scripts/bench/transactions.py --sizes 100 --skip commit,copy,visible --rounds 5
"""

import argparse
import json
import re
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import confluent_kafka  # noqa: E402
import numpy  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from side_by_side import Broker, cpu_seconds, delete_topic  # noqa: E402

from tests.support.apache_kafka import ApacheKafka  # noqa: E402
from tests.support.broker_process import BrokerProcess  # noqa: E402
from tests.support.kafka_jars import java  # noqa: E402

console = Console()
MB = 1024 * 1024
MAKERS = {"pykafkalog": BrokerProcess, "Apache Kafka": ApacheKafka}
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "log.segment.delete.delay.ms": "1000"}
PATIENCE_S = 30
VALUE = b"x" * 100
JAVA_PROGRAM = str(ROOT / "scripts/bench/SmallTransactions.java")
WHAT = ("commit", "copy", "visible")


def create_topic(broker: Broker, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(PATIENCE_S)


def perf(broker: Broker, topic: str, size: int, megabytes: int) -> dict[str, float]:
    """One run of the producer tool in transactions of 100 ms."""
    create_topic(broker, topic, 4)
    count = megabytes * MB // size
    before = cpu_seconds(broker)
    out = java(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(count), "--record-size", str(size)),
        *("--throughput", "-1", "--bootstrap-server", broker.bootstrap),
        *("--transaction-duration-ms", "100", "--transactional-id", f"{topic}-id"),
        timeout=600,
    ).stdout.splitlines()[-1]
    cpu = cpu_seconds(broker) - before
    rate = re.search(r"\(([\d.]+) MB/sec\)", out)
    if rate is None:
        raise RuntimeError(f"the tool says: {out}")
    return {"MB/s": float(rate.group(1)), "CPU s/GB": cpu / (count * size / 1e9)}


def with_java(broker: Broker, topic: str, what: str, count: int, warm: int) -> list[float]:
    """Milliseconds of each transaction, by Kafka's own client."""
    arguments = (broker.bootstrap, topic, str(count), str(warm), what)
    return [float(line) for line in java(JAVA_PROGRAM, *arguments, timeout=300).stdout.split()]


def with_librdkafka(broker: Broker, topic: str, what: str, count: int, warm: int) -> list[float]:
    """Milliseconds of each transaction, by confluent-kafka."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": f"{topic}-c-{what}",
            "linger.ms": 0,
            "log_level": 0,
        }
    )
    producer.init_transactions(PATIENCE_S)
    run = {"commit": _commits, "copy": _copies, "visible": _until_visible}[what]
    taken = []
    for number, seconds in enumerate(run(broker, producer, topic)):
        if number >= warm:
            taken.append(seconds * 1000)
        if len(taken) == count:
            break
    return taken


def _commits(broker: Broker, producer: confluent_kafka.Producer, topic: str) -> Iterator[float]:
    while True:
        began = time.perf_counter()
        producer.begin_transaction()
        producer.produce(topic, VALUE, partition=0)
        producer.commit_transaction(PATIENCE_S)
        yield time.perf_counter() - began


def _copies(broker: Broker, producer: confluent_kafka.Producer, topic: str) -> Iterator[float]:
    consumer = _consumer(broker, f"{topic}-c-copy")
    consumer.subscribe([f"{topic}-in"])
    try:
        while True:
            message = consumer.poll(PATIENCE_S)
            if message is None or message.error():
                raise RuntimeError(f"nothing to read: {message and message.error()}")
            began = time.perf_counter()
            producer.begin_transaction()
            producer.produce(topic, VALUE, partition=0)
            place = confluent_kafka.TopicPartition(f"{topic}-in", 0, message.offset() + 1)
            producer.send_offsets_to_transaction(
                [place], consumer.consumer_group_metadata(), PATIENCE_S
            )
            producer.commit_transaction(PATIENCE_S)
            yield time.perf_counter() - began
    finally:
        consumer.close()


def _until_visible(
    broker: Broker, producer: confluent_kafka.Producer, topic: str
) -> Iterator[float]:
    consumer = _consumer(broker, "unused")
    end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), PATIENCE_S)[1]
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, end)])
    arrivals: Queue[float] = Queue()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            message = consumer.poll(0.5)
            if message is not None and not message.error():
                arrivals.put(time.perf_counter())
        consumer.close()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        while True:
            producer.begin_transaction()
            producer.produce(topic, VALUE, partition=0)
            producer.flush(PATIENCE_S)
            began = time.perf_counter()
            producer.commit_transaction(PATIENCE_S)
            yield arrivals.get(timeout=PATIENCE_S) - began
    finally:
        done.set()
        reader.join()


def _consumer(broker: Broker, group: str) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )


CLIENTS: dict[str, Callable[..., list[float]]] = {
    "librdkafka": with_librdkafka,
    "Java": with_java,
}


def latency(
    broker: Broker, topic: str, what: str, client: str, count: int, warm: int
) -> dict[str, float]:
    """Percentiles of one round, and the broker's CPU for it, clients' start included."""
    create_topic(broker, topic, 1)
    if what == "copy":
        create_topic(broker, f"{topic}-in", 1)
        source = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for _ in range(count + warm):
            source.produce(f"{topic}-in", VALUE, partition=0)
        source.flush(PATIENCE_S)
    before = cpu_seconds(broker)
    taken = CLIENTS[client](broker, topic, what, count, warm)
    cpu = cpu_seconds(broker) - before
    if len(taken) != count:
        raise RuntimeError(f"{len(taken)} of {count} transactions")
    points = numpy.percentile(taken, [50, 95, 99])
    names = ("p50 ms", "p95 ms", "p99 ms")
    return {
        **{name: float(value) for name, value in zip(names, points, strict=True)},
        "CPU ms/transaction": cpu / (count + warm) * 1000,
    }


class Figures:
    """Every figure of every round, by broker."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, list[float]]] = {name: {} for name in MAKERS}

    def note(self, name: str, what: str, values: dict[str, float]) -> None:
        for key, value in values.items():
            self.rows[name].setdefault(f"{what} {key}", []).append(value)
        told = ", ".join(f"{key} {value:.2f}" for key, value in values.items())
        console.print(f"  {name:12} {what}: {told}")

    def table(self) -> Table:
        table = Table("figure (median)", *MAKERS, "ratio", "all, pykafkalog", "all, Apache Kafka")
        for what in self.rows["pykafkalog"]:
            ours, theirs = (self.rows[name].get(what) for name in MAKERS)
            if ours is None or theirs is None:  # the run was interrupted
                continue
            mine, other = statistics.median(ours), statistics.median(theirs)
            singles = (" ".join(f"{value:.2f}" for value in side) for side in (ours, theirs))
            table.add_row(what, f"{mine:.2f}", f"{other:.2f}", f"{mine / other:.2f}", *singles)
        return table


def measure(args: argparse.Namespace, brokers: dict[str, Broker], figures: Figures) -> None:
    """Measure all rounds."""
    skipped = args.skip.split(",")
    for number in range(args.rounds):
        console.rule(f"round {number + 1} of {args.rounds}")
        order = list(brokers) if number % 2 == 0 else list(brokers)[::-1]
        for size in map(int, args.sizes.split(",")) if "perf" not in skipped else ():
            for name in order:
                topic = f"perf-{size}-{number}"
                figures.note(
                    name, f"perf, {size} B", perf(brokers[name], topic, size, args.megabytes)
                )
                delete_topic(brokers[name], topic)
        for what in WHAT:
            for client in CLIENTS if what not in skipped else ():
                for name in order:
                    topic = f"{what}-{client}-{number}"
                    told = latency(brokers[name], topic, what, client, args.count, args.count // 4)
                    figures.note(name, f"{what}, {client}", told)


def warm_up(broker: Broker, megabytes: int, count: int) -> None:
    """Put the same load on both, so that the JVM compiles and caches fill."""
    for turn in range(3):
        perf(broker, f"warm-{turn}", 1024, megabytes)
    for what in WHAT:
        latency(broker, f"warm-{what}", what, "librdkafka", 3 * count, 0)


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add: Any = parser.add_argument
    add("--rounds", type=int, default=3, help="alternations (%(default)s)")
    add("--sizes", default="100,1024,10240", help="record sizes of perf (%(default)s)")
    add("--megabytes", type=int, default=100, help="produced per size and round (%(default)s)")
    add("--count", type=int, default=1000, help="transactions per figure (%(default)s)")
    add("--skip", default="", help="leave out: perf,commit,copy,visible")
    add("--json", type=Path, help="write every single figure there")
    args = parser.parse_args()
    figures = Figures()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # no broker is left behind
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        brokers: dict[str, Broker] = {
            name: make(Path(directory) / name.replace(" ", "-"), SETTINGS)
            for name, make in MAKERS.items()
        }
        try:
            for name, broker in brokers.items():
                broker.start()
                console.print(f"warming up {name}")
                warm_up(broker, args.megabytes, args.count)
            measure(args, brokers, figures)
        except KeyboardInterrupt:
            console.print("interrupted: the figures so far")
        finally:
            for broker in brokers.values():
                broker.kill()
    Console(width=150).print(figures.table())
    if args.json:
        args.json.write_text(json.dumps(figures.rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
