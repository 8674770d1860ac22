"""Records of the coordinators' topics as JSON, for `pykafkalog dump-log`.

The format is that of Kafka's decoders: `{"type": "1", "data": {…}}` for a key, `{"version": "3",
"data": {…}}` for a value, with the field names of Kafka's message definitions.
"""

import json
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from typing import Any

from protocol.errors import ProtocolError
from protocol.messages.coordinator_records import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
)
from protocol.messages.versioned import decode_versioned, peek_version
from protocol.schema import Array, Group, Message, Value
from protocol.types import uuid_to_text

Decoder = Callable[[int, bytes | None, bytes | None], tuple[str | None, str | None]]
"""Turns a record's offset, key and value into the texts of key and value."""

_Pairs = dict[int, tuple[type[Message], type[Message]]]
"""Kind of a record, which is its key's version, to what key and value are."""

_MEMBER_FIELDS: dict[str, type[Message]] = {
    "subscription": ConsumerProtocolSubscription,
    "assignment": ConsumerProtocolAssignment,
}
_OFFSETS: _Pairs = {  # a committed offset (0, 1) or a group (2)
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
}
_TRANSACTIONS: _Pairs = {0: (TransactionLogKey, TransactionLogValue)}


def _decode(
    pairs: _Pairs, offset: int, key: bytes | None, value: bytes | None
) -> tuple[str | None, str | None]:
    if key is None:
        return f"Error at offset {offset}, skipping. The record has no key", None
    try:
        kind = peek_version(key)
        if kind not in pairs:
            return f"Unknown record type {kind} at offset {offset}, skipping.", None
        key_api, value_api = pairs[kind]
        _, decoded = decode_versioned(key_api, key)
        shown_key = _compact({"type": str(kind), "data": fields_of_message(key_api, decoded, kind)})
        if value is None:
            return shown_key, "<DELETE>"
        version, decoded = decode_versioned(value_api, value)
        data = fields_of_message(value_api, decoded, version)
        return shown_key, _compact({"version": str(version), "data": data})
    except ProtocolError as error:
        return f"Error at offset {offset}, skipping. {error}", None


DECODERS: dict[str, Decoder] = {
    "offsets": partial(_decode, _OFFSETS),
    "transactions": partial(_decode, _TRANSACTIONS),
}
"""By topic: those of `__consumer_offsets` and of `__transaction_state`."""

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def fields_of_message(
    group: Group, value: Value, version: int, *, consumer: bool = False
) -> dict[str, Any]:
    """Return the fields that `version` has, by Kafka's names, without tagged ones at their default.

    `consumer`: the members' bytes are those of the consumer protocol, and are decoded too.
    """
    consumer = consumer or getattr(value, "protocol_type", None) == "consumer"
    shown = {}
    for name, rule in group.fields:
        content = getattr(value, name)
        if version not in rule.versions:
            continue
        if rule.tag is not None and version in rule.tagged and content == rule.default:
            continue
        shown[_camel(name)] = _shown(rule.declaration, name, content, version, consumer)
    return shown


def _shown(declaration: Any, name: str, value: Any, version: int, consumer: bool) -> Any:
    if value is None:
        return None
    if isinstance(declaration, Array):
        element = declaration.element
        return [_shown(element, name, one, version, consumer) for one in value]
    if isinstance(declaration, Group):
        return fields_of_message(declaration, value, version, consumer=consumer)
    if isinstance(value, bytes) and len(value) == 16 and name.endswith("_id"):
        return uuid_to_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _member_data(name if consumer else "", bytes(value))
    return value


def _member_data(name: str, data: bytes) -> Any:
    """Decode a consumer's subscription or assignment; return other protocols' bytes as base64."""
    api = _MEMBER_FIELDS.get(name)
    if api is not None and data:
        try:
            version, decoded = decode_versioned(api, data, newer_as_latest=True)
        except ProtocolError:
            pass
        else:
            return fields_of_message(api, decoded, min(version, api.versions[-1]))
    return b64encode(data).decode()


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
