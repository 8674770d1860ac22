"""Codes of the transaction coordinator, replaced for request versions that do not know them."""

from typing import Final

from protocol.errors import ErrorCode

# First version in which an API answers PRODUCER_FENCED; older ones get INVALID_PRODUCER_EPOCH.
FENCED_SINCE_INIT: Final = 4
FENCED_SINCE_OTHERS: Final = 2


def for_version(code: ErrorCode, version: int, fenced_since: int) -> ErrorCode:
    """The code as a client of `version` understands it (KIP-588)."""
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
