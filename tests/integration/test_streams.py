"""Kafka Streams 4.3.1, exactly_once_v2: a word count is exact while everything is killed (S-TXN-7).

The application counts words over a repartition topic into a store with a changelog; with caching
off each word of the input gives one output record. Whatever is killed with -9 (the application in
the middle of a transaction, the broker), a read_committed reader of the output sees for each word
1, 2, 3, … without gap or repeat, up to what Python counts.

It runs on Apache Kafka too: PYKAFKALOG_TEST_BROKER=apache.
"""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.support.apache_kafka import ApacheKafka
from tests.support.either_broker import EitherBroker, either_broker
from tests.support.kafka_streams import WordCount, compile_word_count
from tests.support.topics import make_topic

PARTITIONS = 3
LINES, WORDS_PER_LINE = 4000, 10
PATIENCE_S = 60
QUIET = {"log_level": 0}
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
STREAMS_SETTINGS = {
    "commit.interval.ms": "100",
    "session.timeout.ms": "2000",
    "heartbeat.interval.ms": "300",
    "repartition.purge.interval.ms": "300",
    # Smaller steps, so that a kill meets a transaction with work left to do.
    "max.poll.records": "200",
    "metadata.max.age.ms": "2000",
}


@pytest.fixture(scope="module")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compile_word_count(tmp_path_factory.mktemp("classes"))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EitherBroker]:
    with either_broker(tmp_path / "broker", BROKER_SETTINGS) as made:
        yield made


@pytest.fixture
def instances() -> Iterator[list[WordCount]]:
    started: list[WordCount] = []
    yield started
    for one in started:
        one.kill()


def text() -> list[str]:
    """Lines of words, few of them frequent and many rare, as in a language."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    draw = random.Random(seed)
    vocabulary = [f"word{number}" for number in range(300)]
    weights = [1 / (number + 1) for number in range(len(vocabulary))]
    return [" ".join(draw.choices(vocabulary, weights, k=WORDS_PER_LINE)) for _ in range(LINES)]


def feed(bootstrap: str, lines: list[str]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **QUIET})
    for number, line in enumerate(lines):
        producer.produce("in", line.encode(), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


def end(broker: EitherBroker) -> None:
    """kill -9. Apache Kafka is stopped in order: killed and started again at once, its only node is
    fenced while the coordinator already carries out transactions, which then hang (4.3.1)."""
    if isinstance(broker, ApacheKafka):
        broker.stop()
    else:
        broker.kill()


class Output:
    """The topic that the application writes."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._ends = {
            level: self._consumer(level) for level in ("read_uncommitted", "read_committed")
        }

    def close(self) -> None:
        for consumer in self._ends.values():
            consumer.close()

    def end(self, isolation: str) -> int:
        """Sum of the end offsets, aborted records and markers included; -1 if it cannot tell."""
        try:
            return sum(
                self._ends[isolation].get_watermark_offsets(
                    confluent_kafka.TopicPartition("out", partition), 5
                )[1]
                for partition in range(PARTITIONS)
            )
        except confluent_kafka.KafkaException:
            return -1

    def records(self, isolation: str, wanted: int | None = None) -> list[tuple[str, int]]:
        """(word, count), each partition in order: up to the end, or until there are `wanted`."""
        consumer = self._consumer(isolation)
        found: list[tuple[str, int]] = []
        deadline = time.monotonic() + PATIENCE_S
        try:
            places = [confluent_kafka.TopicPartition("out", p, 0) for p in range(PARTITIONS)]
            consumer.assign(places)
            ended: set[int] = set()
            while len(ended) < PARTITIONS if wanted is None else len(found) < wanted:
                assert time.monotonic() < deadline, f"{len(found)} of {wanted} records"
                for message in consumer.consume(1000, 0.2):
                    error = message.error()
                    if error is None:
                        found.append((message.key().decode(), int(message.value())))
                    elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                        ended.add(message.partition())
        finally:
            consumer.close()
        return found

    def _consumer(self, isolation: str) -> confluent_kafka.Consumer:
        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                **QUIET,
            }
        )


def wait_until(condition: Callable[[], bool], instances: list[WordCount], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        for one in instances:
            one.check()
        assert time.monotonic() < deadline, f"{what}:\n{[one.output() for one in instances]}"
        time.sleep(0.01)


def wait_in_transaction(output: Output, instances: list[WordCount], beyond: int) -> None:
    """Wait until the output has come so far and a transaction is open on it."""

    def in_transaction() -> bool:
        stable, end = output.end("read_committed"), output.end("read_uncommitted")
        return end > beyond and stable >= 0 and end - stable > 5

    wait_until(in_transaction, instances, f"no open transaction beyond {beyond}")


def assert_exact(output: Output, expected: Counter[str]) -> None:
    total = sum(expected.values())
    seen = defaultdict(list)
    for word, count in output.records("read_committed", total):
        seen[word].append(count)
    wrong = {
        word: [(at, count) for at, count in enumerate(counts, 1) if at != count][:5]
        for word, counts in seen.items()
        if counts != list(range(1, len(counts) + 1))
    }
    assert not wrong, f"(position, count) of words whose counts are not 1, 2, 3, …: {wrong}"
    assert {word: len(counts) for word, counts in seen.items()} == dict(expected)


def assert_final(output: Output, expected: Counter[str]) -> None:
    """Check, when the writers have ended: no record came later, and the kills undid some."""
    final = output.records("read_committed")
    assert len(final) == sum(expected.values())
    assert dict(final) == dict(expected)  # the last one of each word
    assert len(output.records("read_uncommitted")) > len(final), "no kill undid anything"


def config_of(bootstrap: str, topic: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    asked = ConfigResource(ResourceType.TOPIC, topic)
    entries = admin.describe_configs([asked])[asked].result(PATIENCE_S)
    return {name: entry.value for name, entry in entries.items()}


def word_count(
    classpath: str, directory: Path, broker: EitherBroker, store: str, **settings: str
) -> WordCount:
    own = {name.replace("_", "."): value for name, value in settings.items()}
    return WordCount(
        classpath,
        directory,
        bootstrap=broker.bootstrap,
        source="in",
        target="out",
        store=store,
        settings={**STREAMS_SETTINGS, **own},
    )


def shares(lines: list[str], count: int) -> Iterator[list[str]]:
    """The lines in `count` parts."""
    size = len(lines) // count + 1
    for first in range(0, len(lines), size):
        yield lines[first : first + size]


def test_s_txn_7_a_word_count_is_exact_over_kills_of_application_and_broker(
    broker: EitherBroker, classpath: str, tmp_path: Path, instances: list[WordCount]
) -> None:
    """RocksDB; a static member with two threads that comes back with its state directory."""
    lines = text()
    expected = Counter(word for line in lines for word in line.split())
    make_topic(broker.bootstrap, "in", "out", partitions=PARTITIONS)
    output = Output(broker.bootstrap)
    app = word_count(
        classpath,
        tmp_path / "app",
        broker,
        "rocksdb",
        num_stream_threads="2",
        group_instance_id="one",
    )
    instances.append(app.start())
    rounds = ("application", "broker", "application", "application", "broker", "application")
    for victim, share in zip(rounds, shares(lines, len(rounds)), strict=True):
        beyond = output.end("read_uncommitted")
        feed(broker.bootstrap, share)
        wait_in_transaction(output, instances, beyond)
        if victim == "application":
            app.kill()
            app.start()
        else:
            end(broker)
            broker.start()
    assert_exact(output, expected)
    app.stop()
    assert "closed true" in app.output()
    assert_final(output, expected)
    output.close()

    changelog = config_of(broker.bootstrap, "counter-counts-changelog")
    assert changelog["cleanup.policy"] == "compact"
    repartition = config_of(broker.bootstrap, "counter-words-repartition")
    assert (repartition["cleanup.policy"], repartition["retention.ms"]) == ("delete", "-1")
    # Streams deletes consumed and committed records from the repartition topic (DeleteRecords).
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "unused", **QUIET}
    )
    places = [confluent_kafka.TopicPartition("counter-words-repartition", p) for p in (0, 1, 2)]
    begins = [consumer.get_watermark_offsets(place, PATIENCE_S)[0] for place in places]
    consumer.close()
    assert max(begins) > 0


def test_s_txn_7_a_word_count_is_exact_while_its_tasks_move_between_instances(
    broker: EitherBroker, classpath: str, tmp_path: Path, instances: list[WordCount]
) -> None:
    """In-memory stores, two instances: the tasks of the killed one are restored on the other."""
    lines = text()
    expected = Counter(word for line in lines for word in line.split())
    make_topic(broker.bootstrap, "in", "out", partitions=PARTITIONS)
    output = Output(broker.bootstrap)
    for name in ("a", "b"):
        # It comes back under another transactional id: what it left open holds back the others
        # until the coordinator's time for it is over.
        timeout = {"producer_transaction_timeout_ms": "2000"}
        app = word_count(classpath, tmp_path / name, broker, "memory", **timeout)
        instances.append(app.start())
    victims = [*instances, *instances]
    for victim, share in zip(victims, shares(lines, len(victims)), strict=True):
        wait_until(lambda one=victim: one.works, instances, "it does not run")
        beyond = output.end("read_uncommitted")
        feed(broker.bootstrap, share)
        wait_in_transaction(output, instances, beyond)
        victim.kill()
        victim.start()
    assert_exact(output, expected)
    for app in instances:
        app.stop()
    assert_final(output, expected)
    output.close()
