"""Codes of the transaction coordinator for versions of requests that do not know them yet."""

from typing import Final

from protocol.errors import ErrorCode

# Version from which an API may answer PRODUCER_FENCED; before it says INVALID_PRODUCER_EPOCH.
FENCED_SINCE_INIT: Final = 4
FENCED_SINCE_OTHERS: Final = 2


def for_version(code: ErrorCode, version: int, fenced_since: int) -> ErrorCode:
    """The code as a client of `version` understands it (KIP-588)."""
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
