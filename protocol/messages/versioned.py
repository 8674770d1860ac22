"""An int16 version and a message of that version: the form of coordinators' and members' records.

`protocol.messages.coordinator_records` declares these messages.
"""

import struct
from typing import TypeVar

from protocol.errors import ProtocolError
from protocol.schema import Message

MessageT = TypeVar("MessageT", bound=Message)

_version_at = struct.Struct(">h")


def encode_versioned(api: type[MessageT], version: int, value: MessageT) -> bytes:
    """Return the int16 version, then the value in it. Raises ValueError for an unknown version."""
    return _version_at.pack(version) + api.codec(version).build(value)


def peek_version(data: bytes | bytearray | memoryview) -> int:
    """Return the version at the start of `data`. Raises ProtocolError if `data` is too short."""
    if len(data) < _version_at.size:
        raise ProtocolError("no version: fewer than two bytes")
    version: int = _version_at.unpack_from(data)[0]
    return version


def decode_versioned(
    api: type[MessageT], data: bytes | bytearray | memoryview, *, newer_as_latest: bool = False
) -> tuple[int, MessageT]:
    """Return (version, value) of bytes that `encode_versioned` wrote.

    newer_as_latest: read a version above the highest declared one as that one and ignore the bytes
    that follow, as Kafka does with subscriptions and assignments.
    Raises ProtocolError for versions that cannot be read and for malformed bytes.
    """
    version = peek_version(data)
    latest = api.versions[-1]
    newer = newer_as_latest and version > latest
    if not newer and version not in api.versions:
        raise ProtocolError(f"{api.name} has no version {version}")
    codec = api.codec(latest if newer else version)
    body = bytes(data[_version_at.size :])
    if not newer:
        return version, codec.parse(body)
    value, _ = codec.parse_at(body, memoryview(body), 0, len(body))
    return version, value
