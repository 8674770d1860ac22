"""Avro with a schema's id in front becomes JSON; what cannot be decoded names its record."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.support.schema_registry import SchemaRegistry, framed
from tools.avro.decoding import AvroDecoder
from tools.avro.registry import Registry
from tools.errors import CommandError
from tools.records.record import Record

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "raw", "type": "bytes"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        },
    ],
}
VALUE = {
    "id": 7,
    "note": "späť",
    "raw": b"\xff",
    "at": datetime(2026, 3, 1, 12, tzinfo=UTC),
    "price": Decimal("12.50"),
}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as registry:
        yield registry


def decoder(registry: SchemaRegistry, *fields: str) -> AvroDecoder:
    return AvroDecoder(Registry(registry.url).schemas, fields or ("value",))


def record(value: bytes | None, key: bytes | None = None) -> Record:
    return Record(topic="orders", partition=2, offset=41, key=key, value=value)


def test_a_value_becomes_json_and_its_schema_is_asked_for_once(registry: SchemaRegistry) -> None:
    schema_id = registry.add("orders-value", ORDER)
    decode = decoder(registry)
    for _ in range(3):
        decoded = decode(record(framed(schema_id, ORDER, VALUE), key=b"k"))
    assert decoded.key == b"k"
    assert decoded.value is not None
    assert decoded.value.decode() == (
        '{"id": 7, "note": "späť", "raw": {"base64": "/w=="},'
        ' "at": "2026-03-01T12:00:00+00:00", "price": "12.50"}'
    )
    assert registry.asked == [f"/schemas/ids/{schema_id}"]


def test_keys_are_decoded_where_it_is_asked_for_and_nulls_stay(registry: SchemaRegistry) -> None:
    schema_id = registry.add("orders-key", "string")
    key = framed(schema_id, "string", "a")
    decoded = decoder(registry, "key", "value")(record(None, key=key))
    assert (decoded.key, decoded.value) == (b'"a"', None)
    assert decoder(registry)(record(None, key=key)).key == key


def test_schemas_that_refer_to_others(registry: SchemaRegistry) -> None:
    place = {"type": "record", "name": "Place", "fields": [{"name": "town", "type": "string"}]}
    trip: dict[str, Any] = {
        "type": "record",
        "name": "Trip",
        "fields": [{"name": "start", "type": "Place"}, {"name": "end", "type": "Place"}],
    }
    registry.add("place", place)
    schema_id = registry.add("trip", trip, references=("place",))
    whole = {**trip, "fields": [{"name": "start", "type": place}, trip["fields"][1]]}
    data = framed(schema_id, whole, {"start": {"town": "A"}, "end": {"town": "B"}})
    decoded = decoder(registry)(record(data))
    assert decoded.value == b'{"start": {"town": "A"}, "end": {"town": "B"}}'


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"id": 1}', "the value at orders:2, offset 41, has no schema's id in front of it"),
        (b"\0\0\0", "has no schema's id"),
        (b"\0\0\0\0\x01\x0e", r"offset 41, is not of its schema \(id 1\)"),
        (b"\0\0\0\0\x09", "has no /schemas/ids/9"),
        (b"\0\0\0\0\x02", "the schema with id 2 is PROTOBUF, not Avro"),
        (b"\0\0\0\0\x03", "the schema with id 3 is no Avro"),
    ],
)
def test_what_cannot_be_decoded_is_said(registry: SchemaRegistry, data: bytes, said: str) -> None:
    registry.add("orders-value", ORDER)
    registry.add("other-value", "syntax", kind="PROTOBUF")
    registry.add(
        "bad-value", {"type": "record", "name": "X", "fields": [{"name": "a", "type": "Y"}]}
    )
    with pytest.raises(CommandError, match=said):
        decoder(registry)(record(data))


def test_a_registry_that_is_not_there_or_wants_a_password(registry: SchemaRegistry) -> None:
    registry.user = "me:se cret"
    schema_id = registry.add("orders-value", "string")
    with pytest.raises(CommandError, match="answers 401"):
        Registry(registry.url).schemas(schema_id)
    with_user = registry.url.replace("://", "://me:se%20cret@")
    assert Registry(with_user).schemas(schema_id) == ["string"]
    with pytest.raises(
        CommandError, match=r"no schema registry answers at .* \(Connection refused"
    ):
        Registry("http://127.0.0.1:1").schemas(1)
    with pytest.raises(CommandError, match="is not of the form http://HOST:PORT"):
        Registry("localhost:8081")


def test_without_fastavro_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(CommandError, match=r"pip install 'pykafkalog\[avro\]'"):
        AvroDecoder(lambda _: [])


def test_schemas_that_refer_to_each_other_are_asked_for_once(registry: SchemaRegistry) -> None:
    registry.add("a", "string", references=("b",))
    registry.add("b", "long", references=("a", "b"))
    assert Registry(registry.url).schemas(1) == ["string", "long", "string"]


@pytest.mark.parametrize(("others", "fits"), [(200, True), (201, False)])
def test_a_registry_cannot_refer_without_end(
    registry: SchemaRegistry, others: int, fits: bool
) -> None:
    for number in range(others):
        registry.add(f"s{number}", "string")
    first = registry.add("s", "long", references=tuple(f"s{number}" for number in range(others)))
    if fits:
        assert len(Registry(registry.url).schemas(first)) == others + 1
    else:
        with pytest.raises(CommandError, match="refers to more than 200 others"):
            Registry(registry.url).schemas(first)


def test_an_answer_without_end_is_not_read(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema_id = registry.add("s", "string")
    monkeypatch.setattr("tools.avro.registry.MAX_ANSWER", 10)
    with pytest.raises(CommandError, match="answers without end"):
        Registry(registry.url).schemas(schema_id)
