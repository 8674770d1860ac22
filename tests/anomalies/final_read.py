"""What a read_committed reader finds at the end: each partition, from first to last offset."""

from pathlib import Path

import confluent_kafka
from confluent_kafka import TopicPartition

from protocol.api_keys import ApiKey
from tests.anomalies import log_ends
from tests.anomalies.history import Recorder
from tests.anomalies.workload.clients import joined
from tests.anomalies.workload.crowd import TOPICS
from tests.support.wire_client import WireClient

PATIENCE_S = 20.0


def read_everything(port: int, history: Path) -> None:
    """Notes the `final` event. Raises AssertionError when the reader stops before the end."""
    stable = _ends(port, isolation=1)
    ends = _ends(port, isolation=0)
    found: dict[str, list[tuple[int, str]]] = {key: [] for key in stable}
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 10_000,
        }
    )
    try:
        consumer.assign(
            [TopicPartition(t, p, 0) for t, count in TOPICS.items() for p in range(count)]
        )
        open_keys = {key for key, end in stable.items() if end > 0}
        while open_keys:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"the final reader hears nothing of {sorted(open_keys)}"
            key = joined(message.topic(), message.partition())
            if message.error() is None:
                found[key].append((message.offset(), message.value().decode()))
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                if message.offset() >= stable[key]:
                    open_keys.discard(key)
            else:
                raise AssertionError(message.error().str())
    finally:
        consumer.close()
    recorder = Recorder(history, "final")
    recorder.note("final", "ok", value=found, stable=stable, ends=ends)
    recorder.close()


def _ends(port: int, isolation: int) -> dict[str, int]:
    """Key to the last offset that a reader of this isolation may reach."""
    question = log_ends.question(isolation=isolation, topics=TOPICS)
    with WireClient(port) as client:
        return log_ends.found_in(client.call(ApiKey.LIST_OFFSETS, log_ends.VERSION, question))
