"""Control records in words: transaction markers, and KRaft's own."""

import json
import struct
from typing import Any

from protocol.errors import ProtocolError
from protocol.records.control import ControlType, parse_control_type, parse_end_transaction_marker
from protocol.records.errors import InvalidRecord
from protocol.schema import Value

_INT16_AT = struct.Struct(">h")
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def fields_of(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """Return the fields that DumpLogSegments shows, by its names."""
    return {name: content for name, _, content in _parts(key, value)}


def text_of(key: bytes | None, value: bytes | None) -> str:
    """Return the same fields as the end of a line."""
    return "".join(
        f" {name}{between}{content if isinstance(content, int | str) else _COMPACT(content)}"
        for name, between, content in _parts(key, value)
    )


def _parts(key: bytes | None, value: bytes | None) -> list[tuple[str, str, Any]]:
    try:
        kind = parse_control_type(key)
        if kind in (ControlType.ABORT, ControlType.COMMIT):
            marker = parse_end_transaction_marker(key, value)
            return [
                ("endTxnMarker", ": ", kind.name),
                ("coordinatorEpoch", ": ", marker.coordinator_epoch),
            ]
        known = _kraft(kind, value or b"")
    except (InvalidRecord, ProtocolError) as error:
        return [("controlType", ": ", f"unreadable ({error})")]
    if known is not None:
        return [known]
    assert key is not None
    (number,) = _INT16_AT.unpack_from(key, 2)
    return [("controlType", ": ", f"{kind.name}({number})")]


def _kraft(kind: ControlType, value: bytes) -> tuple[str, str, Any] | None:
    from tools.decoders import fields_of_message
    from tools.dump_log.kraft_records import KRAFT_RECORDS

    if kind not in KRAFT_RECORDS or len(value) < _INT16_AT.size:
        return None
    name, between, api = KRAFT_RECORDS[kind]
    # The record's first field is its version.
    version = min(max(_INT16_AT.unpack_from(value)[0], 0), api.versions[-1])
    decoded: Value = api.codec(version).parse(value)
    return name, between, fields_of_message(api, decoded, version)
