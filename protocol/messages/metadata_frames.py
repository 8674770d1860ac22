"""The frame around a record of KRaft's metadata log.

A record's value is a frame version, the kind of record and the version of its body as unsigned
varints, then the body. `decode_record` returns None for a kind that
`protocol.messages.metadata_records` does not declare.

    frame version  kind     version  body …
    uvarint (1)    uvarint  uvarint
"""

from typing import Final

from protocol.errors import ProtocolError
from protocol.messages.metadata_records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EndTransactionRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from protocol.schema import Message

FRAME_VERSION: Final = 1
_MAX_VARINT_BYTES = 5

KINDS: Final[dict[int, type[Message]]] = {
    2: TopicRecord,
    3: PartitionRecord,
    4: ConfigRecord,
    9: RemoveTopicRecord,
    11: UserScramCredentialRecord,
    14: ClientQuotaRecord,
    15: ProducerIdsRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    22: RemoveUserScramCredentialRecord,
    23: BeginTransactionRecord,
    24: EndTransactionRecord,
    25: AbortTransactionRecord,
}
"""The declaration of a record, by its kind in the frame."""


def decode_record(data: bytes) -> Message | None:
    """Return a record's body, or None if its kind is not declared.

    Raises ProtocolError for a frame, a version or a body that cannot be read.
    """
    frame, at = _unsigned(data, 0)
    if frame != FRAME_VERSION:
        raise ProtocolError(f"metadata record of frame version {frame}")
    kind, at = _unsigned(data, at)
    version, at = _unsigned(data, at)
    api = KINDS.get(kind)
    if api is None:
        return None
    if version not in api.versions:
        raise ProtocolError(f"{api.name} has no version {version}")
    return api.codec(version).parse(data[at:])


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data[at : at + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise ProtocolError("metadata record ends in its frame")
