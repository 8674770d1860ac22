"""Starts the real daemon on 10,000 cleanly stopped partitions: time until it serves, and memory.

    .venv/bin/python scripts/bench/open_partitions.py [--partitions 10000] [--rounds 3]

Topics are made over the wire, each partition gets one record, and the broker is stopped cleanly and
started again. Targets: 5 s from the start of the process to `started`, 400 MB resident.
"""

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.broker_process import BrokerProcess

PER_TOPIC = 500
SECONDS, MEGABYTES = 5.0, 400.0


def make(broker: BrokerProcess, partitions: int) -> None:
    """Make topics with `PER_TOPIC` partitions each, and one record in every partition."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    names = [f"many-{at}" for at in range(partitions // PER_TOPIC)]
    for name in names:
        admin.create_topics([NewTopic(name, PER_TOPIC, 1)])[name].result(120)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50})
    for name in names:
        for index in range(PER_TOPIC):
            producer.produce(name, b"value", partition=index)
        producer.flush(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print(f"file descriptors a process may have: {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}")
    with tempfile.TemporaryDirectory() as name:
        broker = BrokerProcess(Path(name))
        broker.start()
        begin = time.perf_counter()
        make(broker, args.partitions)
        print(
            f"{args.partitions} partitions made and filled in {time.perf_counter() - begin:.1f} s"
        )
        print(f"{'start s':>8} {'MB':>6} {'files':>6} {'stop s':>7}   after a clean stop")
        for _ in range(args.rounds):
            begin = time.perf_counter()
            broker.stop(timeout_s=120)
            stopped = time.perf_counter() - begin
            begin = time.perf_counter()
            broker.start(timeout_s=120)
            took = time.perf_counter() - begin
            held = broker.resident_bytes() / 1e6
            files = len(list(Path(f"/proc/{broker.pid}/fd").iterdir()))
            print(f"{took:8.2f} {held:6.0f} {files:6} {stopped:7.2f}", flush=True)
        told = [line for line in broker.output(10**6).splitlines() if "Loaded" in line]
        print(told[-1])
        verdict = "within" if took <= SECONDS and held <= MEGABYTES else "MISSES"
        print(f"{verdict} the targets of {SECONDS:.0f} s and {MEGABYTES:.0f} MB")
        broker.stop(timeout_s=120)


if __name__ == "__main__":
    main()
