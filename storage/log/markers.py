"""The end of a transaction as its marker tells it: the one kind of batch that a log opens."""

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
    """The transaction's end in the control batch at `at` and its timestamp; (None, -1) if other."""
    for record in iter_records(buf, at):
        if parse_control_type(record.key) in (ControlType.ABORT, ControlType.COMMIT):
            return parse_end_transaction_marker(record.key, record.value), record.timestamp
        break
    return None, -1
