"""In real time: ten clients that take what they can are held at their rate, and delay nobody."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from protocol.api_keys import ApiKey
from protocol.messages.produce import ProduceRequest
from protocol.records.builder import build_batch
from tests.support.broker_process import BrokerProcess
from tests.support.produce_requests import one_batch
from tests.support.quota_calls import alteration, entity
from tests.support.wire_client import WireClient

CLIENTS = 10
RATE = 500_000
"""Bytes per second."""
RECORD = 10_000
"""One a request: a fiftieth of a second's worth. A fetch leaves out records beyond the quota, so
a consumer of larger ones gets less."""
WARM_S = 5.0
"""The burst is spent by then."""
OVER_S = 30.0
PHASE_S = 5.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path, {"quota.window.num": "2"}) as running:
        yield running


def limit(broker: BrokerProcess, client_id: str | None, key: str, rate: float) -> None:
    with WireClient(broker.port) as client:
        request = alteration(entity(client_id=client_id), **{key: rate})
        answer = client.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, request)
    assert answer.entries[0].error_code == 0


class Taken:
    """The bytes that one client takes in a time that begins when its burst is spent."""

    def __init__(self) -> None:
        self.since = time.monotonic() + WARM_S
        self.until = self.since + OVER_S
        self.bytes = 0

    def note(self, size: int) -> bool:
        """Count bytes; return whether the time is not over."""
        now = time.monotonic()
        if self.since <= now < self.until:
            self.bytes += size
        return now < self.until


def rates(take: Callable[[int, Taken], None]) -> list[float]:
    """Return the rate of each of ten clients, as a share of the quota."""
    taken = [Taken() for _ in range(CLIENTS)]
    threads = [threading.Thread(target=take, args=each) for each in enumerate(taken)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [each.bytes / OVER_S / RATE for each in taken]


def test_s_qta_3_ten_producers_are_held_within_a_twentieth(broker: BrokerProcess) -> None:
    limit(broker, None, "producer_byte_rate", RATE)

    def produce(number: int, taken: Taken) -> None:
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "client.id": f"c{number}",
                "batch.num.messages": 1,
                "max.in.flight": 1,
                "queue.buffering.max.messages": 10,
            }
        )
        while taken.note(0):
            try:
                producer.produce("t", bytes(RECORD), callback=lambda *_: taken.note(RECORD))
            except BufferError:
                producer.poll(0.05)
        producer.purge()
        producer.flush(10)

    held = rates(produce)
    print("produced:", *(f"{each:.3f}" for each in held))
    assert all(0.95 < each < 1.05 for each in held), held


def test_s_qta_3_ten_consumers_are_held_within_a_twentieth(broker: BrokerProcess) -> None:
    filler = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 1})
    for _ in range(int(RATE * (WARM_S + OVER_S) * 1.5 / RECORD)):
        filler.produce("t", bytes(RECORD))
        filler.poll(0)
        if len(filler) > 1000:
            filler.flush(30)
    assert filler.flush(30) == 0
    limit(broker, None, "consumer_byte_rate", RATE)

    def consume(number: int, taken: Taken) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "client.id": f"c{number}",
                "group.id": f"g{number}",
                "fetch.message.max.bytes": RECORD,
            }
        )
        consumer.assign([TopicPartition("t", 0, 0)])
        while taken.note(sum(len(each.value() or b"") for each in consumer.consume(4, 0.1))):
            pass
        consumer.close()

    held = rates(consume)
    print("consumed:", *(f"{each:.3f}" for each in held))
    assert all(0.95 < each < 1.05 for each in held), held


def production(topic: str, size: int) -> ProduceRequest:
    batch = build_batch([(1_700_000_000_000, None, bytes(size), ())])
    return one_batch(topic, batch, acks=1)


def percentile_ms(broker: BrokerProcess, topic: str) -> float:
    """The 99th percentile of one client's latencies over a phase, one request after the other."""
    request, seconds = production(topic, 1_000), []
    with WireClient(broker.port, client_id="other") as client:
        until = time.monotonic() + PHASE_S
        while time.monotonic() < until:
            began = time.perf_counter()
            client.call(ApiKey.PRODUCE, 9, request)
            seconds.append(time.perf_counter() - began)
            time.sleep(0.001)
    seconds.sort()
    return seconds[int(len(seconds) * 0.99)] * 1000


def test_s_qta_3_throttled_clients_delay_nobody_else(broker: BrokerProcess) -> None:
    """Phases of one client alone alternate with phases beside ten clients that are throttled."""
    for number in range(CLIENTS):
        limit(broker, f"c{number}", "producer_byte_rate", 10_000)
    with WireClient(broker.port) as client:
        for _ in range(20):
            client.call(ApiKey.PRODUCE, 9, production("t", 1_000))
    ended = threading.Event()
    waiting = [WireClient(broker.port, timeout_s=30, client_id=f"c{n}") for n in range(CLIENTS)]
    told: list[int] = []

    def press(client: WireClient) -> None:
        while not ended.is_set():
            answer: Any = client.call(ApiKey.PRODUCE, 9, production("t", 20_000))
            told.append(answer.throttle_time_ms)

    alone, beside = [], []
    percentile_ms(broker, "t")
    for _ in range(4):
        alone.append(percentile_ms(broker, "t"))
        ended.clear()
        threads = [threading.Thread(target=press, args=(client,)) for client in waiting]
        for thread in threads:
            thread.start()
        beside.append(percentile_ms(broker, "t"))
        ended.set()
        for thread in threads:
            thread.join()
    for client in waiting:
        client.close()
    print("p99 alone, ms:", *(f"{each:.2f}" for each in alone))
    print("p99 beside ten that are throttled, ms:", *(f"{each:.2f}" for each in beside))
    assert sum(told) / len(told) > 1000
    assert min(beside) < 1.2 * min(alone)
