"""The flaws of a record batch: a class for each error code that clients get.

`storage.log.opening.code_of` maps each class to its code. This room raises nothing else for bad
bytes.
"""

from collections.abc import Sequence


class RecordsError(Exception):
    """Base of all errors about record data."""


class CorruptBatch(RecordsError):
    """The batch's size, magic or checksum is wrong (CORRUPT_MESSAGE; clients retry)."""


class InvalidRecord(RecordsError):
    """The frame is valid, its content is not (INVALID_RECORD; final for the client that sent it).

    `record_errors` lists (index in the batch, message) for `record_errors` of Produce v8+; it is
    empty when the structure itself is broken, as Kafka then blames no single record.
    """

    def __init__(self, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.record_errors: list[tuple[int, str]] = list(record_errors)


class UnsupportedCompression(RecordsError):
    """An unknown codec id, or one this format cannot carry (UNSUPPORTED_COMPRESSION_TYPE)."""
