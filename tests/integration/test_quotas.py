"""Real clients with a quota: they keep its rate, see throttle times, and lose no record.

PYKAFKALOG_TEST_BROKER=apache runs the same on Apache Kafka. Windows are few, so a burst is short.
"""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition

from tests.support.either_broker import either_broker
from tests.support.kafka_jars import ROOT, java
from tests.support.topics import make_topic

WINDOWS = {"quota.window.num": "3", "controller.quota.window.num": "3"}
BURST_S = 2
"""The burst that a client may take at once, in seconds of its quota."""
RATE = 200_000
"""Bytes per second."""
RECORD = 1000
COUNT = 1200
LEAST_S = COUNT * RECORD / RATE - BURST_S - 1.5
"""A client that takes what it can needs four seconds for the bytes beyond its burst, but it need
not wait out the throttle time of the last answer."""
MOST_S = 12.0
TOOLS = "org.apache.kafka.tools"


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with either_broker(tmp_path_factory.mktemp("broker"), WINDOWS) as broker:
        yield broker.bootstrap


def configs(where: str, *words: str) -> str:
    done = java("kafka.admin.ConfigCommand", "--bootstrap-server", where, *words)
    return done.stdout + done.stderr


def limit(where: str, client: str, key: str, rate: int = RATE) -> None:
    configs(
        where,
        *("--alter", "--entity-type", "clients", "--entity-name", client),
        *("--add-config", f"{key}={rate}"),
    )


def fill(where: str, topic: str) -> None:
    """Produce without a quota, in batches no larger than the burst of a client."""
    settings = {"bootstrap.servers": where, "client.id": f"filler-{topic}"}
    producer = Producer({**settings, "batch.num.messages": 20})
    for number in range(COUNT):
        producer.produce(topic, number.to_bytes(4) + bytes(RECORD - 4))
    assert producer.flush(20) == 0


def timed(work: Callable[[], Any]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def numbers(records: list[bytes]) -> list[int]:
    return [int.from_bytes(record[:4]) for record in records]


def read_all(where: str, topic: str) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": where, "group.id": f"reader-{topic}"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    while len(found) < COUNT:
        found += [message.value() or b"" for message in consumer.consume(COUNT, 1.0)]
    consumer.close()
    return found


def test_s_qta_3_a_producer_of_confluent_is_held_and_told(where: str, topic: str) -> None:
    limit(where, topic, "producer_byte_rate")
    told: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": where,
            "client.id": topic,
            "batch.num.messages": 20,
            "max.in.flight": 1,
            "throttle_cb": lambda event: told.append(event.throttle_time),
        }
    )

    def produce() -> None:
        for number in range(COUNT):
            producer.produce(topic, number.to_bytes(4) + bytes(RECORD - 4))
            producer.poll(0)
        assert producer.flush(30) == 0

    assert LEAST_S < timed(produce) < MOST_S
    assert max(told) > 0.02
    assert numbers(read_all(where, topic)) == list(range(COUNT))


def test_s_qta_3_a_consumer_of_confluent_is_held_and_told(where: str, topic: str) -> None:
    fill(where, topic)
    limit(where, topic, "consumer_byte_rate")
    told: list[float] = []
    consumer = Consumer(
        {
            "bootstrap.servers": where,
            "client.id": topic,
            "group.id": topic,
            "throttle_cb": lambda event: told.append(event.throttle_time),
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []

    def consume() -> None:
        while len(found) < COUNT:
            found.extend(message.value() or b"" for message in consumer.consume(100, 1.0))

    assert LEAST_S < timed(consume) < MOST_S
    consumer.close()
    assert numbers(found) == list(range(COUNT))
    assert max(told) > 0.1


def throttle_ms(client: Any, group: str) -> float:
    """Return the longest throttle time that a client of kafka-python got."""
    return float(client.metrics()[f"{group}-metrics"]["throttle-time-max"])


def test_s_qta_3_kafka_pythons_clients_are_held_and_told(where: str, topic: str) -> None:
    limit(where, topic, "producer_byte_rate")
    limit(where, topic, "consumer_byte_rate")
    make_topic(where, topic)
    producer = KafkaProducer(bootstrap_servers=where, client_id=topic)

    def produce() -> None:
        for number in range(COUNT):
            producer.send(topic, number.to_bytes(4) + bytes(RECORD - 4))
        producer.flush(30)

    assert LEAST_S < timed(produce) < MOST_S
    assert throttle_ms(producer, "producer") > 20
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=where, client_id=topic)
    consumer.assign([KafkaPythonPartition(topic, 0)])
    consumer.seek_to_beginning()
    found: list[bytes] = []

    def consume() -> None:
        while len(found) < COUNT:
            for records in consumer.poll(1000).values():
                found.extend(record.value for record in records)

    assert LEAST_S < timed(consume) < MOST_S
    assert throttle_ms(consumer, "consumer") > 100
    consumer.close()
    assert numbers(found) == list(range(COUNT))


def metric(printed: str, name: str) -> float:
    [value] = re.findall(rf"{name}:\{{[^}}]*\}} +: (\S+)", printed)
    return float(value)


def test_s_qta_3_javas_clients_are_held_and_told(where: str, topic: str) -> None:
    limit(where, topic, "producer_byte_rate")
    limit(where, topic, "consumer_byte_rate")
    done = java(
        f"{TOOLS}.ProducerPerformance",
        *("--topic", topic, "--num-records", str(COUNT), "--record-size", str(RECORD)),
        *("--throughput", "-1", "--bootstrap-server", where, "--print-metrics"),
        *("--command-property", f"client.id={topic}", "acks=all", "batch.size=16384"),
    ).stdout
    [rate] = re.findall(rf"{COUNT} records sent, (\S+) records/sec", done)
    assert LEAST_S < COUNT / float(rate.replace(",", ".")) < MOST_S
    assert metric(done, "produce-throttle-time-max") > 20
    began = time.monotonic()
    done = java(
        f"{TOOLS}.ConsumerPerformance",
        *("--topic", topic, "--num-records", str(COUNT), "--bootstrap-server", where),
        *("--timeout", "30000", "--print-metrics"),
        *("--command-property", f"client.id={topic}", "max.partition.fetch.bytes=50000"),
    ).stdout
    assert LEAST_S < time.monotonic() - began < MOST_S + 8
    assert f", {COUNT}, " in done
    assert metric(done, "fetch-throttle-time-max") > 100


def test_s_qta_4_javas_admin_client_tries_again_when_its_throttle_time_is_over(
    where: str, topic: str
) -> None:
    limit(where, topic, "controller_mutation_rate", 8)
    source = str(ROOT / "tests/integration/TopicsBeyondQuota.java")
    printed = java(source, where, topic, f"{topic}-").stdout.splitlines()[-2:]
    refused, made = (re.search(r"\d+$", line) for line in printed)
    assert refused, printed
    assert made, printed
    # 40 partitions: the quota allows 24 at once, and then 8 a second.
    assert 1000 < int(refused[0]) <= 2000
    assert int(refused[0]) - 500 < int(made[0]) < int(refused[0]) + 3000


def test_s_qta_6_kafka_configs_sets_describes_and_removes(where: str, topic: str) -> None:
    user = f"{topic}/a b"
    for words, key, said in (
        (("clients", "--entity-name", topic), "request_percentage=50.5", f"client-id '{topic}'"),
        (("clients", "--entity-default"), "consumer_byte_rate=1.0E9", "the default client-id"),
        (("ips", "--entity-name", "192.0.2.7"), "connection_creation_rate=7.0", "ip '192.0.2.7'"),
        (("ips", "--entity-default"), "connection_creation_rate=1000.0", "the default ip"),
        (
            ("users", "--entity-name", user, "--entity-type", "clients", "--entity-default"),
            "producer_byte_rate=5.0",
            f"user-principal '{user}', the default client-id",
        ),
    ):
        entity = ("--entity-type", *words)
        assert "Completed updating" in configs(where, "--alter", *entity, "--add-config", key)
        described = configs(where, "--describe", *entity)
        assert f"Quota configs for {said} are {key}" in described
        configs(where, "--alter", *entity, "--delete-config", key.partition("=")[0])
        assert "Quota configs" not in configs(where, "--describe", *entity)
