"""Reads the marker that ends a transaction; of stored batches, a log opens only these."""

from struct import Struct
from typing import Final

from protocol.records.batch import CODEC_MASK, TIMESTAMP_TYPE_BIT
from protocol.records.control import (
    ControlType,
    EndTransactionMarker,
    parse_control_type,
    parse_end_transaction_marker,
)
from protocol.records.record import iter_records

_USUAL: Final = Struct(">8xi9xh4xq22xi5shhBhiB")
"""The batch as brokers write it: length, attributes, base timestamp, number of records, the record
up to its key's length, the key, the value's length, the value, the number of headers."""
_USUAL_BYTES: Final = _USUAL.size
_HEAD: Final = b"\x20\0\0\0\x08"
_KINDS: Final = (ControlType.ABORT, ControlType.COMMIT)


def marker_of(
    buf: bytes | bytearray | memoryview, at: int
) -> tuple[EndTransactionMarker | None, int]:
    """The COMMIT or ABORT marker of the control batch at `at`, and its timestamp in milliseconds;
    (None, -1) for other control batches."""
    if len(buf) - at >= _USUAL_BYTES:
        length, attributes, timestamp, count, head, key, kind, size, value, epoch, headers = (
            _USUAL.unpack_from(buf, at)
        )
        if (
            length == _USUAL_BYTES - 12
            and not attributes & (CODEC_MASK | TIMESTAMP_TYPE_BIT)
            and count == 1
            and head == _HEAD
            and key == value == headers == 0
            and size == 12
            and 0 <= kind <= 1
        ):
            return EndTransactionMarker(
                control_type=_KINDS[kind], coordinator_epoch=epoch
            ), timestamp
    for record in iter_records(buf, at):
        if parse_control_type(record.key) in (ControlType.ABORT, ControlType.COMMIT):
            return parse_end_transaction_marker(record.key, record.value), record.timestamp
        break
    return None, -1
