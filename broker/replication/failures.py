"""How a failed append or read is told to a client.

Complaints about record data come from `protocol.records`, which knows no Kafka codes
(`storage.log.opening.code_of` has them); every other refusal is a `KafkaError`. Whatever is neither
is a bug and travels on as an exception.
"""

from typing import Final, NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.errors import RecordsError
from storage.log.opening import code_of

REFUSALS: Final = (KafkaError, RecordsError)
"""What an append or a read may foreseeably raise; for `except` clauses."""


class Refusal(NamedTuple):
    """One partition's failure, as Produce v8+ can say it."""

    code: ErrorCode
    message: str | None
    record_errors: list[tuple[int, str | None]]
    """(index in the batch, why): the records that made the whole batch fail (KIP-467)."""


def refusal_of(error: KafkaError | RecordsError) -> Refusal:
    """The code, sentence and record errors for one of `REFUSALS`."""
    message = str(error) or None
    record_errors = list(getattr(error, "record_errors", ()))
    code = error.code if isinstance(error, KafkaError) else code_of(error)
    return Refusal(code, message, record_errors)
