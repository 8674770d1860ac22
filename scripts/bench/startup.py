"""Measures starts of the real daemon: time until it answers, memory, open files, time to stop.

    .venv/bin/python scripts/bench/startup.py [--rounds 7]             an empty directory
    .venv/bin/python scripts/bench/startup.py --partitions 10000       after clean stops

Time is from the start of the process to the first ApiVersions answer. Each partition gets a record.
Targets: half a second without partitions; 5 s and 400 MB with 10,000.

PYKAFKALOG_TEST_ENVIRONMENT names an environment with an installed wheel to measure instead of this
checkout (scripts/install-wheel makes one).
"""

import argparse
import resource
import socket
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.broker_process import BrokerProcess

PER_TOPIC = 500
API_VERSIONS_V0 = bytes.fromhex("0000000a0012000000000001ffff")


def make(broker: BrokerProcess, partitions: int) -> None:
    """Make topics with `PER_TOPIC` partitions each, and one record in every partition."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50})
    for at in range(partitions // PER_TOPIC):
        name = f"many-{at}"
        admin.create_topics([NewTopic(name, PER_TOPIC, 1)])[name].result(120)
        for index in range(PER_TOPIC):
            producer.produce(name, b"value", partition=index)
        producer.flush(60)


def seconds_until_answered(port: int, answered: list[float]) -> None:
    """Append when something at the port answers ApiVersions."""
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), 120) as client:
                client.sendall(API_VERSIONS_V0)
                if client.recv(4):
                    answered.append(time.perf_counter())
                    return
        except OSError:
            time.sleep(0.002)


def start(broker: BrokerProcess) -> float:
    """Start the broker at its port; return the seconds until its first answer."""
    answered: list[float] = []
    asking = threading.Thread(target=seconds_until_answered, args=(broker.port, answered))
    begin = time.perf_counter()
    asking.start()
    broker.start(timeout_s=120)
    asking.join()
    return answered[0] - begin


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    print(f"file descriptors a process may have: {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}")
    with tempfile.TemporaryDirectory() as name:
        broker = BrokerProcess(Path(name))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            broker.port = probe.getsockname()[1]
        print(f"new directory {start(broker):.2f} s")
        make(broker, args.partitions)
        times = []
        print(f"{'start s':>8} {'MB':>6} {'files':>6} {'stop s':>7}   after a clean stop")
        for _ in range(args.rounds):
            begin = time.perf_counter()
            broker.stop(timeout_s=120)
            stopped = time.perf_counter() - begin
            times.append(start(broker))
            held = broker.resident_bytes() / 1e6
            files = len(list(Path(f"/proc/{broker.pid}/fd").iterdir()))
            print(f"{times[-1]:8.2f} {held:6.0f} {files:6} {stopped:7.2f}", flush=True)
        broker.stop(timeout_s=120)
    print(f"median {statistics.median(times) * 1000:.0f} ms, best {min(times) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
