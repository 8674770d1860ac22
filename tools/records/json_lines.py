"""Converts a record to a line of JSON and back, without a change to any byte.

    {"topic": "orders", "partition": 0, "offset": 7, "timestamp": 1700000000000,
     "timestamp_type": "create", "key": "a", "value": {"base64": "/wA="},
     "headers": [["trace", "x1"]]}

UTF-8 bytes become a string, other bytes an object with their base64, and None becomes null, so that
null, "null" and "None" stay distinct. A line that is read must have `value` (null makes a
tombstone); all other fields are optional.
"""

import base64
import binascii
import json
from collections.abc import Collection
from typing import Any, Final

from tools.records.record import Record

_encode: Final = json.JSONEncoder(ensure_ascii=False).encode
_FIELDS: Final = frozenset(
    ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
)


class BadLine(ValueError):
    """A line is not a record; the text continues a sentence that begins with the line's name."""


def to_json(record: Record, embedded: Collection[str] = ()) -> str:
    """Return a line without its end. `embedded` names those of key and value that are JSON text."""
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": record.timestamp_type,
        "key": encoded(record.key),
        "value": encoded(record.value),
        "headers": [[name, encoded(data)] for name, data in record.headers],
    }
    for name in embedded:
        data = getattr(record, name)
        fields[name] = None if data is None else json.loads(data)
    return _encode(fields)


def from_json(line: bytes) -> Record:
    """Parse a line. Raises BadLine."""
    try:
        fields = json.loads(line)
    except UnicodeDecodeError:
        raise BadLine("is not UTF-8") from None
    except RecursionError:
        raise BadLine("is nested too deep") from None
    except ValueError as error:
        raise BadLine(f"is no JSON ({error})") from None
    if not isinstance(fields, dict):
        raise BadLine("is no JSON object")
    unknown = sorted(fields.keys() - _FIELDS)
    if unknown:
        raise BadLine(f"has a field {unknown[0]!r}, known are {', '.join(sorted(_FIELDS))}")
    if "value" not in fields:
        raise BadLine("has no value; null makes a tombstone")
    topic = fields.get("topic")
    if topic is not None and not isinstance(topic, str):
        raise BadLine("has a topic that is no string")
    return Record(
        topic=topic,
        partition=_whole(fields, "partition"),
        offset=_whole(fields, "offset"),
        timestamp=_whole(fields, "timestamp"),
        key=_decoded(fields.get("key"), "key"),
        value=_decoded(fields["value"], "value"),
        headers=_headers(fields.get("headers")),
    )


def encoded(data: bytes | None) -> Any:
    """Return bytes as a string or an object with base64; None as None."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _decoded(value: Any, name: str) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise BadLine(f"has a {name} with half a surrogate pair") from None
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, ValueError):
            raise BadLine(f"has a {name} whose base64 is wrong") from None
    raise BadLine(f'has a {name} that is no string, no null and no {{"base64": "…"}}')


def _whole(fields: dict[str, Any], name: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadLine(f"has a {name} that is no whole number")
    return value


def _headers(value: Any) -> tuple[tuple[str, bytes | None], ...]:
    if value is None:
        return ()
    pairs = value.items() if isinstance(value, dict) else value
    if not isinstance(value, dict | list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in pairs
    ):
        raise BadLine("has headers that are no list of [name, value]")
    return tuple((name, _decoded(data, f"header {name}")) for name, data in pairs)
