"""A version as int16 and a message of that version: how coordinators and group members store one.

What is stored in this way is declared in `protocol.messages.coordinator_records`.
"""

import struct
from typing import TypeVar

from protocol.errors import ProtocolError
from protocol.schema import Message

MessageT = TypeVar("MessageT", bound=Message)

_version_at = struct.Struct(">h")


def encode_versioned(api: type[MessageT], version: int, value: MessageT) -> bytes:
    """The version as int16, then the value in that version. Raises ValueError for the version."""
    return _version_at.pack(version) + api.codec(version).build(value)


def peek_version(data: bytes | bytearray | memoryview) -> int:
    """The version that `data` begins with. Raises ProtocolError when it is too short for one."""
    if len(data) < _version_at.size:
        raise ProtocolError("no version: fewer than two bytes")
    version: int = _version_at.unpack_from(data)[0]
    return version


def decode_versioned(
    api: type[MessageT], data: bytes | bytearray | memoryview, *, newer_as_latest: bool = False
) -> tuple[int, MessageT]:
    """(version, value) of what `encode_versioned` wrote.

    newer_as_latest: read a version above those declared as the highest declared one and let bytes
    that follow be, as Kafka does with subscriptions and assignments.
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
