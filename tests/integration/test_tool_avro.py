"""`pykafkalog consume --avro`: values whose schemas are in a registry."""

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.support.command_in_process import Done, in_process
from tests.support.schema_registry import SchemaRegistry, framed

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "town", "type": "string"}],
}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as registry:
        yield registry


def test_avro_is_printed_filtered_and_embedded(
    bootstrap: str, topic: str, registry: SchemaRegistry
) -> None:
    schema_id = registry.add(f"{topic}-value", ORDER)
    key_id = registry.add(f"{topic}-key", "string")
    producer = Producer({"bootstrap.servers": bootstrap})
    for number, town in enumerate(("Köln", "Ulm")):
        value = framed(schema_id, ORDER, {"id": number, "town": town})
        producer.produce(topic, value, key=framed(key_id, "string", town), partition=0)
    producer.produce(topic, None, key=framed(key_id, "string", "gone"), partition=0)
    assert producer.flush(10) == 0

    def consume(*words: str) -> Done:
        where = ("-b", bootstrap, "--schema-registry", registry.url)
        return in_process("consume", topic, *where, "--from-beginning", "--exit", *words)

    shown = consume("--avro")
    assert shown.stdout == '{"id": 0, "town": "Köln"}\n{"id": 1, "town": "Ulm"}\n\\N\n', shown
    chosen = consume("--avro", "--avro-key", "--filter", 'value~"Ulm"', "--json")
    (line,) = chosen.stdout.splitlines()
    assert {"key": "Ulm", "value": {"id": 1, "town": "Ulm"}}.items() <= json.loads(line).items()
    formatted = consume("--avro-key", "--max", "1", "--format", "{key} {offset}")
    assert formatted.stdout == '"Köln" 0\n'
    producer.produce(topic, b"plain", partition=0)
    assert producer.flush(10) == 0
    failed = consume("--avro")
    assert failed.returncode == 1
    assert f"the value at {topic}:0, offset 3, has no schema's id in front of it" in failed.stderr
