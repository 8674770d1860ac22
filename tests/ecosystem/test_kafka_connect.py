"""Kafka Connect, distributed: a file into a topic exactly once, and the topic into a file.

The worker's own topics are compacted, its config topic is written in transactions, and the
exactly-once source fences its former tasks and keeps its offsets in the transactions of its records
(KIP-618).
"""

from collections import Counter
from pathlib import Path

from tests.support.ecosystem.connect import ConnectWorker
from tests.support.ecosystem.records import PATIENCE_S, Found, Tail
from tests.support.either_broker import EitherBroker
from tests.support.topics import make_topic

FILE_CONNECTOR = "org.apache.kafka.connect.file.FileStream"
LINES = 9_000
SETTINGS = {
    "exactly.once.source.support": "enabled",
    # A killed worker comes back as another member, and so does its sink's consumer: their groups
    # wait for the former ones until their sessions are over.
    "session.timeout.ms": "6000",
    "consumer.session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "scheduled.rebalance.max.delay.ms": "500",
}


def lines(begin: int, end: int) -> str:
    return "".join(f"line {number} of the file\n" for number in range(begin, end))


def texts(records: list[Found]) -> list[str]:
    return [(record.value or b"").decode() for record in records]


def test_a_file_becomes_a_topic_exactly_once_and_the_topic_a_file(
    broker: EitherBroker, tmp_path: Path
) -> None:
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    source.write_text("")
    make_topic(broker.bootstrap, "lines")
    third = LINES // 3
    with (
        ConnectWorker(tmp_path / "worker", broker.bootstrap, SETTINGS) as worker,
        Tail(broker.bootstrap, "lines") as topic,
        source.open("a") as appended,
    ):

        def append(begin: int, end: int) -> None:
            appended.write(lines(begin, end))
            appended.flush()

        def until_in_topic(count: int) -> None:
            what = f"{count} lines are in the topic"
            worker.wait_until(topic.at_least(count), PATIENCE_S, what)

        worker.wait_until_serving()
        worker.put_connector(
            "source",
            connector_class=f"{FILE_CONNECTOR}SourceConnector",
            file=str(source),
            topic="lines",
            batch_size="100",
            exactly_once_support="required",
        )
        worker.put_connector(
            "sink",
            connector_class=f"{FILE_CONNECTOR}SinkConnector",
            file=str(sink),
            topics="lines",
        )
        worker.wait_until_running("source", "sink")
        append(0, third)
        until_in_topic(third // 10)
        worker.kill()
        append(third, 2 * third)
        worker.start()
        until_in_topic(third + third // 10)
        broker.kill()
        broker.start()
        append(2 * third, LINES)
        until_in_topic(LINES)
        expected = lines(0, LINES).splitlines()
        # The sink promises at least once: what it had not committed is written again.
        worker.wait_until(
            lambda: len(set(sink.read_text().splitlines())) >= LINES, PATIENCE_S, "the sink has all"
        )
        worker.wait_until_running("source", "sink")
        worker.stop()
        topic.nothing_more()
        assert texts(topic.records) == expected
        assert set(Counter(sink.read_text().splitlines())) == set(expected)
