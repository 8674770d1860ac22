"""Programs that live on compacted topics: what they need stays, and the topics stay small.

Kafka's own compaction tester, and a Streams application whose changelog and offsets are rewritten
all the time.
"""

import random
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.kafka_jars import compaction_tester_jars
from tests.support.kafka_streams import WordCount, compile_word_count
from tests.support.topics import make_topic

PATIENCE_S = 90
SEGMENT = 100_000
SETTINGS = {
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.min.cleanable.ratio": "0.2",
    "log.segment.bytes": str(SEGMENT),
    "log.initial.task.delay.ms": "500",
    "log.segment.delete.delay.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": str(SEGMENT),
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.segment.bytes": str(SEGMENT),
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "broker", SETTINGS) as made:
        yield made


def size_of(broker: BrokerProcess, pattern: str) -> int:
    """Return the bytes of the partitions' record files, without files that will be unlinked."""
    return sum(path.stat().st_size for path in broker.log_dir.glob(f"{pattern}/*.log"))


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_the_compaction_tester_of_kafka_finds_every_last_value(
    broker: BrokerProcess, codec: str
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [
                *("java", f"-Djava.io.tmpdir={scratch}", "-cp", compaction_tester_jars()),
                "kafka.tools.LogCompactionTester",
                *("--bootstrap-server", broker.bootstrap),
                *("--messages", "100000", "--duplicates", "20", "--percent-deletes", "20"),
                *("--compression-type", codec, "--topics", "2", "--sleep", "3"),
            ],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Data verification is completed" in done.stdout
    (validated,) = re.findall(r"Validated (\d+) values, 0 mismatches", done.stdout)
    assert int(validated) > 5_000
    (reduction,) = re.findall(r"consumed \((\d+)[.\d]*% reduction\)", done.stdout)
    assert int(reduction) > 30, done.stdout


def test_the_topics_of_a_streams_application_stay_small(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    words, lines = 50, 6_000
    make_topic(broker.bootstrap, "in", "out")
    draw = random.Random(1)
    text = [" ".join(f"word{draw.randrange(words)}" for _ in range(10)) for _ in range(lines)]
    feed(broker, text)
    expected = Counter(word for line in text for word in line.split())
    application = WordCount(
        compile_word_count(tmp_path / "classes"),
        tmp_path / "application",
        bootstrap=broker.bootstrap,
        source="in",
        target="out",
        store="rocksdb",
        settings={"commit.interval.ms": "20"},
    )
    for state in ("first", "restored from what the cleaner has left"):
        application.start()
        try:
            wait_for_counts(broker, expected, state)
        finally:
            application.stop()
        for path in (tmp_path / "application").glob("state/**/*"):
            if path.is_file():
                path.unlink()
        feed(broker, text[:100])
        expected.update(word for line in text[:100] for word in line.split())
    for topic, segments in (
        ("counter-counts-changelog-0", 4),
        ("__consumer_offsets-0", 4),
        ("__transaction_state-0", 4),
    ):
        deadline = time.monotonic() + PATIENCE_S
        while size_of(broker, topic) > segments * SEGMENT:
            assert time.monotonic() < deadline, (topic, size_of(broker, topic))
            time.sleep(0.1)


def feed(broker: BrokerProcess, lines: list[str]) -> None:
    settings = {"bootstrap.servers": broker.bootstrap, "batch.size": 16_384, "log_level": 0}
    producer = confluent_kafka.Producer(settings)
    failures: list[object] = []
    for line in lines:
        producer.produce(
            "in", line.encode(), on_delivery=lambda error, _: error and failures.append(error)
        )
    assert (producer.flush(PATIENCE_S), failures) == (0, [])


def wait_for_counts(broker: BrokerProcess, expected: Counter[str], state: str) -> None:
    """Wait until the last count of every word in the output is the count of Python."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition("out", 0, 0)])
    last: dict[str, int] = {}
    deadline = time.monotonic() + PATIENCE_S
    try:
        while last != dict(expected):
            assert time.monotonic() < deadline, (state, len(last), sum(last.values()))
            for message in consumer.consume(1000, 0.5):
                if message.error() is None:
                    last[message.key().decode()] = int(message.value())
    finally:
        consumer.close()
