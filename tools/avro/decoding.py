"""Turns Avro keys and values, framed with their schema's id, into JSON.

    0        magic byte, 0
    1 .. 4   the schema's id, big-endian
    5 ..     the value in Avro's binary encoding

Times and dates become ISO 8601 text, durations seconds, UUIDs and decimals text, bytes as in JSON
lines (`tools.records.json_lines`). A null stays null.
"""

import io
import json
import struct
from collections.abc import Callable, Collection
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from tools.errors import CommandError
from tools.records.json_lines import encoded
from tools.records.record import Record

FRAME: Final = struct.Struct(">bI")


class AvroDecoder:
    """Decodes records; keeps the parsed schema of each id."""

    def __init__(
        self, schemas: Callable[[int], list[Any]], fields: Collection[str] = ("value",)
    ) -> None:
        """`schemas` is `Registry.schemas`; `fields` are of "key" and "value".

        Raises CommandError if fastavro is not installed.
        """
        try:
            import fastavro
        except ImportError:
            raise CommandError(
                "--avro needs fastavro: python -m pip install 'pykafkalog[avro]'"
            ) from None
        self._fastavro: Final = fastavro
        self._schemas: Final = schemas
        self._fields: Final = fields
        self._parsed: Final[dict[int, Any]] = {}

    def __call__(self, record: Record) -> Record:
        """Return the record with JSON instead of Avro. Raises CommandError naming the record."""
        changed: dict[str, Any] = {}
        for field in self._fields:
            data = getattr(record, field)
            if data is not None:
                changed[field] = self._json_of(data, field, record)
        return record._replace(**changed) if changed else record

    def _json_of(self, data: bytes, field: str, record: Record) -> bytes:
        where = f"the {field} at {record.topic}:{record.partition}, offset {record.offset},"
        if len(data) < FRAME.size or data[0] != 0:
            raise CommandError(
                f"{where} has no schema's id in front of it; --avro says which of key and value"
                " are Avro"
            )
        _, schema_id = FRAME.unpack_from(data)
        schema = self._schema(schema_id)
        try:
            value = self._fastavro.schemaless_reader(
                io.BytesIO(data[FRAME.size :]), schema, None, return_record_name=False
            )
        # fastavro does not document what it raises for malformed bytes.
        except (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
            raise CommandError(
                f"{where} is not of its schema (id {schema_id}): {error or type(error).__name__}"
            ) from None
        return json.dumps(_plain(value), ensure_ascii=False).encode()

    def _schema(self, schema_id: int) -> Any:
        if schema_id not in self._parsed:
            named: dict[str, Any] = {}
            parsed = None
            try:
                for schema in self._schemas(schema_id):
                    parsed = self._fastavro.parse_schema(schema, named_schemas=named)
            except (
                self._fastavro.schema.SchemaParseException,
                self._fastavro.schema.UnknownType,
            ) as error:
                raise CommandError(f"the schema with id {schema_id} is no Avro: {error}") from None
            self._parsed[schema_id] = parsed
        return self._parsed[schema_id]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return encoded(value)
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID):
        return str(value)
    return value
