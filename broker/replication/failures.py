"""How a failed append or read is told to a client: the one place where exceptions become codes.

Record errors come from `protocol.records` (which knows no Kafka codes) or as `KafkaError` from
storage. Whatever is not listed here is a bug and travels on as an exception.
"""

from typing import Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.errors import InvalidRecord, RecordsError, UnsupportedCompression

REFUSALS: Final = (KafkaError, RecordsError)
"""What an append or a read may foreseeably raise; for `except` clauses."""


class Refusal(NamedTuple):
    """One partition's failure, as Produce v8+ can say it."""

    code: ErrorCode
    message: str | None
    record_errors: list[tuple[int, str | None]]
    """(index in the batch, why): the records that made the whole batch fail (KIP-467)."""


def refusal_of(error: Exception) -> Refusal:
    """The code, sentence and record errors for one of `REFUSALS`."""
    message = str(error) or None
    record_errors = list(getattr(error, "record_errors", ()))
    if isinstance(error, KafkaError):
        return Refusal(error.code, message, record_errors)
    if isinstance(error, InvalidRecord):
        return Refusal(ErrorCode.INVALID_RECORD, message, record_errors)
    if isinstance(error, UnsupportedCompression):
        return Refusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message, record_errors)
    return Refusal(ErrorCode.CORRUPT_MESSAGE, message, record_errors)
