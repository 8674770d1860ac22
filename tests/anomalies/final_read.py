"""The read_committed read at the end: each partition, from its first to its last offset."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import confluent_kafka
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.anomalies.history import Recorder
from tests.anomalies.workload.clients import joined
from tests.anomalies.workload.crowd import TOPICS

PATIENCE_S = 20.0


def read_everything(
    bootstrap: str, history: Path, *, resent: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Note the `final` event. Raises AssertionError if the reader stops before the end."""
    stable = _ends(bootstrap, IsolationLevel.READ_COMMITTED)
    ends = _ends(bootstrap, IsolationLevel.READ_UNCOMMITTED)
    found: dict[str, list[tuple[int, str]]] = {key: [] for key in stable}
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
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
    recorder.note("final", "ok", value=found, stable=stable, ends=ends, resent=resent or {})
    recorder.close()


def _ends(bootstrap: str, isolation: IsolationLevel) -> dict[str, int]:
    """Return, by key, the last offset that a reader of this isolation level may reach."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = {
        TopicPartition(topic, number): OffsetSpec.latest()
        for topic, count in TOPICS.items()
        for number in range(count)
    }
    told = admin.list_offsets(asked, isolation_level=isolation, request_timeout=PATIENCE_S)
    return {
        joined(place.topic, place.partition): future.result(PATIENCE_S).offset
        for place, future in told.items()
    }
