"""A broker of its own for each: start and stop by partitions, memory after a load."""

import socket
import threading
import time
from collections.abc import Iterator

from frames import batch_of, produce_frame
from sides import PATIENCE_S, Broker, Side

from cases import Bench, Figures, Measure, case
from cases.tools import MB, produced
from tests.support.broker_process import BrokerProcess
from tests.support.wire_client import WireClient

PER_TOPIC = 500
ASKED = bytes.fromhex("0000000a0012000000000001ffff")
"""ApiVersions v0."""


def answered_at(port: int, told: list[float]) -> None:
    """Tell when something at the port answers."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), 120) as client:
                client.sendall(ASKED)
                if client.recv(4):
                    told.append(time.perf_counter())
                    return
        except OSError:
            time.sleep(0.002)


def seconds_to_answer(broker: Broker) -> float:
    """Start the broker at the port that it had; seconds until its first answer."""
    told: list[float] = []
    asking = threading.Thread(target=answered_at, args=(broker.port, told))
    began = time.perf_counter()
    asking.start()
    if isinstance(broker, BrokerProcess):
        broker.start(timeout_s=PATIENCE_S)
    else:
        broker.start()
    asking.join()
    return told[0] - began


def lives(bench: Bench, side: Side, partitions: int) -> Iterator[Measure]:
    """Clean stop and start of a broker with a record in every partition."""
    per_topic = min(partitions, PER_TOPIC)
    with side.other() as made, made.topics(partitions // per_topic, per_topic) as names:
        with WireClient(made.port, timeout_s=PATIENCE_S) as client:
            for name in names:
                client.send(produce_frame(name, range(per_topic), batch_of(100)))
                client.receive_frame()

        def measure() -> Figures:
            broker = made.broker
            began = time.perf_counter()
            assert not hasattr(broker, "emptied")
            broker.stop()
            stopped = time.perf_counter() - began
            started = seconds_to_answer(broker)
            return {"start s": started, "stop s": stopped, "RSS MB": made.resident_mb()}

        yield measure


def killed(bench: Bench, side: Side) -> Iterator[Measure]:
    """Start after kill -9, as soon as Kafka's tool has produced to four partitions."""
    size = 1024
    with side.other() as made:

        def measure() -> Figures:
            with made.topics(1, 4) as (topic,):
                words = ("--command-property", "batch.size=262144")
                produced(made, topic, size, bench.megabytes * MB // size, *words)
                made.broker.kill()
                return {"start s": seconds_to_answer(made.broker)}

        yield measure


def memory(bench: Bench, side: Side) -> Iterator[Measure]:
    """Resident memory of a new broker, at once and when Kafka's tool has produced."""
    size = 1024

    def measure() -> Figures:
        with side.other() as made:
            new = made.resident_mb()
            with made.topics(1, 4) as (topic,):
                produced(made, topic, size, bench.megabytes * MB // size)
                return {"new RSS MB": new, "RSS MB": made.resident_mb()}

    yield measure


CASES = {
    **{f"lives/{n} partitions": case(lives, n) for n in (1, 1000, 10_000)},
    "lives/killed": case(killed),
    "lives/memory": case(memory),
}
