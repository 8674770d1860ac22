"""Transactions with Apache Kafka's own Java clients and tools."""

import confluent_kafka

from tests.integration.test_transactions import (
    committed,
    producer,
    send,
    uncommitted,
)
from tests.support.kafka_jars import ROOT, java
from tests.support.topics import make_topic

TOOLS = "org.apache.kafka.tools"
COPY = str(ROOT / "tests/conformance/TransactionalCopy.java")


def test_s_txn_5_a_copy_in_transactions_is_exact(bootstrap: str, topic: str, group: str) -> None:
    make_topic(bootstrap, topic, f"{topic}-out", partitions=2)
    source = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(100):
        source.produce(topic, str(number).encode(), partition=number % 2)
    source.flush(30)
    result = java(COPY, bootstrap, topic, f"{topic}-out", group, "100")
    assert "copied 100 in" in result.stdout
    assert "zombie fenced" in result.stdout
    copied = committed(bootstrap, f"{topic}-out", partitions=2)
    assert copied.pop(copied.index("heir")) == "heir"
    assert sorted(copied, key=int) == [str(number) for number in range(100)]
    assert len(uncommitted(bootstrap, f"{topic}-out", partitions=2)) > 101
    # S-TXN-7: the epoch rose with every transaction, not only with the two owners.
    result = java(
        f"{TOOLS}.TransactionsCommand",
        *("--bootstrap-server", bootstrap, "describe", "--transactional-id", f"{group}-id"),
    )
    head, row = (line.split("\t") for line in result.stdout.splitlines()[-2:])
    described = dict(zip((name.strip() for name in head), row, strict=False))
    assert int(described["ProducerEpoch"]) > 20, described


def test_transactional_perf_test(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    result = java(
        f"{TOOLS}.ProducerPerformance",
        *("--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1"),
        *("--bootstrap-server", bootstrap, "--transaction-duration-ms", "100"),
    )
    assert "20000 records sent" in result.stdout
    assert len(committed(bootstrap, topic)) == 20000


def test_kafka_transactions_lists_describes_and_aborts(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic)
    mine = producer(bootstrap, f"{topic}-id")
    mine.begin_transaction()
    send(mine, topic, "hanging")

    def transactions(*args: str) -> list[list[str]]:
        result = java(f"{TOOLS}.TransactionsCommand", "--bootstrap-server", bootstrap, *args)
        return [line.split() for line in result.stdout.splitlines()]

    rows = [row for row in transactions("list") if f"{topic}-id" in row]
    assert [row[-1] for row in rows] == ["Ongoing"]
    rows = transactions("describe", "--transactional-id", f"{topic}-id")
    assert "Ongoing" in rows[-1] and f"{topic}-0" in rows[-1]
    rows = transactions("describe-producers", "--topic", topic, "--partition", "0")
    assert rows[-1][-1] == "0"  # where the open transaction begins
    transactions("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    rows = transactions("describe-producers", "--topic", topic, "--partition", "0")
    assert rows[-1][-1] == "None"
    assert committed(bootstrap, topic) == []
    assert uncommitted(bootstrap, topic) == ["hanging"]
