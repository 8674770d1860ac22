"""Control records in words: markers of transactions, and the types of KRaft's own."""

import struct
from typing import Any

from protocol.records.control import ControlType, parse_control_type, parse_end_transaction_marker
from protocol.records.errors import InvalidRecord

_TYPE_AT = struct.Struct(">h")


def fields_of(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """The fields that DumpLogSegments shows; of KRaft's records only the type."""
    try:
        kind = parse_control_type(key)
        if kind in (ControlType.ABORT, ControlType.COMMIT):
            marker = parse_end_transaction_marker(key, value)
            return {"endTxnMarker": kind.name, "coordinatorEpoch": marker.coordinator_epoch}
    except InvalidRecord as error:
        return {"controlType": f"unreadable ({error})"}
    assert key is not None
    (number,) = _TYPE_AT.unpack_from(key, 2)
    return {"controlType": f"{kind.name}({number})"}
