"""The error codes and messages for a failed append or read.

Errors in record data come from `protocol.records`, which knows no Kafka codes
(`storage.log.opening.code_of` maps them); every other refusal is a `KafkaError`. Any other
exception is a bug and is not caught.
"""

from typing import Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.errors import RecordsError
from storage.log.opening import code_of

REFUSALS: Final = (KafkaError, RecordsError)
"""Foreseen errors of an append or a read; for `except` clauses."""


class Refusal(NamedTuple):
    """The failure of one partition, with all fields that Produce v8+ has for it."""

    code: ErrorCode
    message: str | None
    record_errors: list[tuple[int, str | None]]
    """(index in the batch, message) of the records that made the whole batch fail (KIP-467)."""


def refusal_of(error: KafkaError | RecordsError) -> Refusal:
    """Return code, message and record errors for one of `REFUSALS`."""
    message = str(error) or None
    record_errors = list(getattr(error, "record_errors", ()))
    code = error.code if isinstance(error, KafkaError) else code_of(error)
    return Refusal(code, message, record_errors)
