"""A refused append or read gives a code, a sentence, and the records that caused it."""

import pytest

from broker.replication.failures import Refusal, refusal_of
from protocol.errors import ErrorCode, KafkaError
from protocol.records.errors import (
    CorruptBatch,
    InvalidRecord,
    RecordsError,
    UnsupportedCompression,
)
from storage.log.opening import RejectedRecords, refusal

COMPLAINTS = [
    (CorruptBatch("torn"), ErrorCode.CORRUPT_MESSAGE, []),
    (UnsupportedCompression("what is that"), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, []),
    (InvalidRecord("no key", [(3, "no key")]), ErrorCode.INVALID_RECORD, [(3, "no key")]),
]


@pytest.mark.parametrize(("error", "code", "records"), COMPLAINTS, ids=lambda value: str(value))
def test_a_complaint_about_records_is_told_alike_wherever_it_becomes_a_code(
    error: RecordsError, code: ErrorCode, records: list[tuple[int, str]]
) -> None:
    assert refusal_of(error) == Refusal(code, str(error), records)
    assert refusal_of(refusal(error)) == Refusal(code, str(error), records)


def test_a_kafka_error_is_told_with_its_own_code() -> None:
    assert refusal_of(KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "big")) == Refusal(
        ErrorCode.MESSAGE_TOO_LARGE, "big", []
    )
    rejected = RejectedRecords(ErrorCode.INVALID_TIMESTAMP, "late", [(0, "late")])
    assert refusal_of(rejected) == Refusal(ErrorCode.INVALID_TIMESTAMP, "late", [(0, "late")])
