"""Reads the marker that ends a transaction; of stored batches, a log opens only these."""

from protocol.records.control import (
    ControlType,
    EndTransactionMarker,
    parse_control_type,
    parse_end_transaction_marker,
)
from protocol.records.record import iter_records


def marker_of(
    buf: bytes | bytearray | memoryview, at: int
) -> tuple[EndTransactionMarker | None, int]:
    """The COMMIT or ABORT marker of the control batch at `at`, and its timestamp in milliseconds;
    (None, -1) for other control batches."""
    for record in iter_records(buf, at):
        if parse_control_type(record.key) in (ControlType.ABORT, ControlType.COMMIT):
            return parse_end_transaction_marker(record.key, record.value), record.timestamp
        break
    return None, -1
