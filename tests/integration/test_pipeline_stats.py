"""Statistics of a broker's topic and of its files: what was produced, counted by hand."""

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import pytest

from pipeline.command import add_parser
from pipeline.errors import PipelineError
from pipeline.stats.command import of_broker, of_files
from pipeline.stats.page import page
from pipeline.stats.values import Stats, TopicStats
from protocol.records.builder import build_batch
from tests.support.broker_process import BrokerProcess
from tests.support.topics import make_topic

BEGIN = 1_700_000_000_000


class Sent(NamedTuple):
    """One record."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def size(self) -> int:
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


def records() -> list[Sent]:
    """Return records for two of three partitions; the last one stays empty."""
    sent = [
        Sent(
            partition=number % 7 % 2,
            key=None if number % 50 == 0 else b"key-%d" % min(number % 40, 20),
            value=None if number % 9 == 4 and number % 50 else b"v" * (number % 300),
            timestamp=BEGIN + number * 1000,
            headers=(("source", b"test"), ("none", None)) if number % 4 == 0 else (),
        )
        for number in range(1000)
    ]
    return [*sent, Sent(1, b"\xff\x00", b"x" * 70_000, BEGIN)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as broker:
        # The timestamps are older than the default retention.
        make_topic(broker.bootstrap, "orders", partitions=3, retention_ms="-1")
        make_topic(broker.bootstrap, "payments", "empty", retention_ms="-1")
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
        for one in records():
            producer.produce(
                "orders",
                one.value,
                one.key,
                one.partition,
                timestamp=one.timestamp,
                headers=list(one.headers),
            )
        assert producer.flush(30) == 0
        transactional = confluent_kafka.Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "transactional.id": "payments",
                "transaction.timeout.ms": 600_000,
            }
        )
        transactional.init_transactions(30)
        for number in range(8):
            transactional.begin_transaction()
            for _ in range(number + 1):
                transactional.produce("payments", b"paid", b"k")
            assert transactional.flush(30) == 0
            if number == 7:
                break
            if number % 3 == 2:
                transactional.abort_transaction(30)
            else:
                transactional.commit_transaction(30)
        yield broker


def asked(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(["pipeline", "stats", *words])


@pytest.fixture(scope="module")
def of_the_broker(spark: Any, broker: BrokerProcess) -> list[TopicStats]:
    words = ("orders", "payments", "empty", "--bootstrap-server", broker.bootstrap)
    return list(of_broker(spark, asked(*words)).topics)


@pytest.fixture(scope="module")
def of_its_files(spark: Any, broker: BrokerProcess) -> list[TopicStats]:
    return list(of_files(spark, asked("--log-dirs", str(broker.log_dir))).topics)


def test_the_numbers_are_those_of_what_was_produced(of_the_broker: list[TopicStats]) -> None:
    orders, payments = of_the_broker  # a topic without records has nothing to tell
    assert (orders.topic, payments.topic) == ("orders", "payments")
    sent = records()
    for found in orders.partitions:
        here = [one for one in sent if one.partition == found.partition]
        assert found.records == len(here)
        assert found.bytes == sum(one.size for one in here)
        assert (found.first_offset, found.last_offset) == (0, len(here) - 1)
        assert found.first_timestamp == min(one.timestamp for one in here)
        assert found.last_timestamp == max(one.timestamp for one in here)
        assert found.without_key == sum(one.key is None for one in here)
        assert found.tombstones == sum(one.key is not None and one.value is None for one in here)
        assert found.keys == len({one.key for one in here} - {None})
    assert [one.partition for one in orders.partitions] == [0, 1]
    sizes = sorted(one.size for one in sent)
    assert orders.sizes.p50 == sizes[500]
    assert (orders.sizes.smallest, orders.sizes.largest) == (sizes[0], sizes[-1])
    assert orders.interval_ms == 10_000  # a thousand seconds
    assert orders.throughput[0] == (BEGIN, 11, sum(one.size for one in [*sent[:10], sent[-1]]))
    assert sum(count for _, count, _ in orders.throughput) == len(sent)


def test_keys_and_compaction_are_exact(of_the_broker: list[TopicStats]) -> None:
    orders = of_the_broker[0]
    sent = [one for one in records() if one.key is not None]
    counts = Counter(one.key for one in sent)
    assert orders.keys.distinct == len(counts)
    assert {key: count for key, count, _ in orders.keys.top}["key-20"] == counts[b"key-20"]
    assert orders.keys.top[0][0] == "key-20"
    partitions = Counter(key for key, _ in {(one.key, one.partition) for one in sent})
    assert orders.keys.in_several_partitions == sum(n > 1 for n in partitions.values())
    last = {(one.key, one.partition): one for one in sent}
    assert orders.compaction is not None
    assert orders.compaction.latest == len(last)
    assert orders.compaction.latest_bytes == sum(one.size for one in last.values())
    assert orders.compaction.tombstones == sum(one.value is None for one in last.values())
    assert orders.compaction.without_key == 20


def test_files_tell_the_same_and_how_transactions_ended(
    of_the_broker: list[TopicStats], of_its_files: list[TopicStats], broker: BrokerProcess
) -> None:
    assert [replace(topic, log=None) for topic in of_its_files] == of_the_broker
    assert of_the_broker[0].log is None
    log = of_its_files[1].log
    assert log is not None
    assert (log.committed, log.committed_records) == (5, 1 + 2 + 4 + 5 + 7)
    assert (log.aborted, log.aborted_records) == (2, 3 + 6)
    assert (log.open, log.open_records) == (1, 8)
    files = Path(broker.log_dir).glob("payments-0/*.log")
    assert log.file_bytes == sum(path.stat().st_size for path in files)


def test_estimated_keys_come_near(spark: Any, broker: BrokerProcess) -> None:
    words = ("orders", "--bootstrap-server", broker.bootstrap, "--approximate-keys")
    (orders,) = of_broker(spark, asked(*words)).topics
    assert not orders.keys.exact and orders.compaction is None
    estimated = [one.keys for one in orders.partitions]
    assert estimated == pytest.approx([21, 22], abs=2)


def test_what_is_not_there_is_named(spark: Any, broker: BrokerProcess, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="nosuch"):
        of_broker(spark, asked("nosuch", "--bootstrap-server", broker.bootstrap))
    with pytest.raises(PipelineError, match="nosuch"):
        of_files(spark, asked("nosuch", "--log-dirs", str(broker.log_dir)))
    with pytest.raises(PipelineError, match=str(tmp_path / "gone")):
        of_files(spark, asked("--log-dirs", str(tmp_path / "gone")))
    with pytest.raises(PipelineError, match="no records"):
        of_broker(spark, asked("empty", "--bootstrap-server", broker.bootstrap))


def test_any_time_counts_in_files_and_names_its_record_at_a_broker(
    spark: Any, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    times = (-(2**63), 1_795_803_382_261_000_000, 2**63 - 1)
    (tmp_path / "odd-0").mkdir()
    batches = [build_batch([(at, None, b"v", ())], base_offset=n) for n, at in enumerate(times)]
    (tmp_path / "odd-0" / f"{0:020}.log").write_bytes(b"".join(batches))
    (found,) = of_files(spark, asked("--log-dirs", str(tmp_path))).topics
    assert (found.partitions[0].first_timestamp, found.partitions[0].last_timestamp) == (
        times[0],
        times[2],
    )
    assert [count for _, count, _ in found.throughput] == [1, 1, 1]
    for (begin, _, _), at in zip(found.throughput, times, strict=True):
        assert begin <= at < begin + found.interval_ms and begin % found.interval_ms == 0
    page(Stats(source="odd", topics=(found,)), "now")

    ever = {f"message_timestamp_{end}_max_ms": str(2**63 - 1) for end in ("before", "after")}
    make_topic(bootstrap, topic, retention_ms="-1", **ever)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for at in (1_700_000_000_000, times[1]):
        producer.produce(topic, b"v", timestamp=at)
        assert producer.flush(30) == 0
    with pytest.raises(PipelineError, match=f"{topic}-0, offset 1 .* {times[1]} ms.*--log-dirs"):
        of_broker(spark, asked(topic, "--bootstrap-server", bootstrap))
