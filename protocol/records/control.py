"""Control records: markers that brokers write into a log and consumers never see.

    key    i16 version (0), i16 type
    value  of an end-transaction marker: i16 version (0), i32 coordinator epoch

Types 2 to 6 belong to KRaft's metadata log; they are recognised and never written. A control batch
holds one record. As `ControlRecordType` and `EndTransactionMarker`.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from protocol.records.builder import build_batch
from protocol.records.compression import BytesLike
from protocol.records.errors import InvalidRecord

_KEY: Final = struct.Struct(">hh")
_MARKER: Final = struct.Struct(">hi")


class ControlType(IntEnum):
    """The second field of a control record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionMarker:
    """The outcome of a transaction in one partition."""

    control_type: ControlType
    coordinator_epoch: int

    @property
    def is_commit(self) -> bool:
        """Whether the transaction was committed, not aborted."""
        return self.control_type is ControlType.COMMIT


def parse_control_type(key: BytesLike | None) -> ControlType:
    """Type of a control record; UNKNOWN for a type of a later version, whose batch is skipped.

    Raises InvalidRecord when the key is absent, short or of a negative version.
    """
    if key is None or len(key) < _KEY.size:
        found = "null" if key is None else f"{len(key)} bytes"
        raise InvalidRecord(f"Control record key needs {_KEY.size} bytes, found {found}")
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"Invalid version found for control record: {version}")
    try:
        return ControlType(kind)
    except ValueError:
        return ControlType.UNKNOWN


def parse_end_transaction_marker(
    key: BytesLike | None, value: BytesLike | None
) -> EndTransactionMarker:
    """The marker in an ABORT or COMMIT control record; later value versions read as version 0.

    Raises InvalidRecord for another type or a short value.
    """
    kind = parse_control_type(key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        raise InvalidRecord(f"Control record of type {kind.name} is no end of a transaction")
    if value is None or len(value) < _MARKER.size:
        found = "null" if value is None else f"{len(value)} bytes"
        raise InvalidRecord(f"End transaction marker needs {_MARKER.size} bytes, found {found}")
    version, epoch = _MARKER.unpack_from(value)
    if version < 0:
        raise InvalidRecord(f"Invalid version found for end transaction marker: {version}")
    return EndTransactionMarker(control_type=kind, coordinator_epoch=epoch)


def build_end_transaction_marker(
    control_type: ControlType,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The control batch that ends a transaction (`MemoryRecords.withEndTransactionMarker`).

    Raises ValueError for a type other than ABORT and COMMIT.
    """
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        raise ValueError(f"{control_type!r} does not end a transaction")
    record = (timestamp, _KEY.pack(0, control_type), _MARKER.pack(0, coordinator_epoch), ())
    return build_batch(
        [record],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )
