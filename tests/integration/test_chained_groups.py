"""S-GRP-7: three groups, each fed by the one before, with members that join and leave under way.

Every record that went in comes out of the last group once: no group loses or repeats one when its
partitions change hands. Each worker passes records on and commits before it polls again, so
nothing is under way while it takes part in a rebalance. That holds for eager strategies only: with
a cooperative one librdkafka polls and commits in the middle of a rebalance, and a blocking commit
then waits for one that needs the next poll, with Apache Kafka just the same.

Client libraries keep this promise on a quiet machine only, hence `alone`. Beside much other work
librdkafka's `consume` drops records of a partition that it keeps, or gives them twice (7 of 36 runs
on Apache Kafka), and kafka-python goes on from an old position where it missed a generation.
"""

import threading
import time
from collections import Counter

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from tests.support.topics import make_topic

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.alone]

RECORDS = 2_000
PARTITIONS = 6
TIMEOUT_S = 60


class Worker(threading.Thread):
    """Reads `source` in a group and passes every record on to `sink`."""

    def __init__(self, bootstrap: str, group: str, source: str, sink: str, strategy: str) -> None:
        super().__init__(daemon=True)
        self.leaving = threading.Event()
        self.has_partitions = threading.Event()
        self.passed: Counter[bytes] = Counter()
        self._source, self._sink = source, sink
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "partition.assignment.strategy": strategy,
                "heartbeat.interval.ms": 500,
                "session.timeout.ms": 10_000,
            }
        )

    def run(self) -> None:
        self._consumer.subscribe([self._source], on_assign=lambda *_: self.has_partitions.set())
        while not self.leaving.is_set():
            batch = [m for m in self._consumer.consume(200, timeout=0.2) if m.error() is None]
            if not batch:
                continue
            for message in batch:
                self._producer.produce(self._sink, message.value())
            self._producer.flush(10)
            self._commit()
            # A new counter, because the test reads the old one meanwhile.
            self.passed = self.passed + Counter(message.value() for message in batch)
        self._consumer.close()

    def _commit(self) -> None:
        """Commit, and try again after a passing error: the member must not lose its place."""
        for _ in range(50):
            try:
                self._consumer.commit(asynchronous=False)
                return
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                time.sleep(0.1)
        raise AssertionError("the commit was never accepted")


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_s_grp_7_chained_groups_neither_lose_nor_repeat(
    bootstrap: str, topic: str, group: str, strategy: str
) -> None:
    topics = [f"{topic}-{level}" for level in range(4)]
    make_topic(bootstrap, *topics, partitions=PARTITIONS)

    def hire(level: int) -> Worker:
        name = f"{group}-{level}"
        worker = Worker(bootstrap, name, topics[level], topics[level + 1], strategy)
        worker.start()
        return worker

    workers = [[hire(level)] for level in range(3)]
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(topics[0], str(number).encode())
        if number % 500 == 250:
            producer.flush(10)
            for level in range(3):
                workers[level].append(hire(level))
            for level in workers:
                assert level[-1].has_partitions.wait(TIMEOUT_S)
            workers[number // 500 % 3][0].leaving.set()
    producer.flush(10)
    deadline = time.monotonic() + TIMEOUT_S
    passed: list[Counter[bytes]] = []
    while time.monotonic() < deadline:
        passed = [sum((one.passed for one in level), Counter()) for level in workers]
        if all(len(counts) == RECORDS for counts in passed):
            break
        time.sleep(0.2)
    for level in workers:
        for one in level:
            one.leaving.set()
    for level in workers:
        for one in level:
            one.join(20)
    assert [len(counts) for counts in passed] == [RECORDS] * 3
    assert [max(counts.values()) for counts in passed] == [1] * 3
