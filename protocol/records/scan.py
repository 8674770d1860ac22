"""The fields of a batch's records as columns, without a Python object per record.

Two readers give the same result for any input (a property test checks that): a plain loop for small
batches (`scan_python`), numpy for larger ones (`scan_numpy`), imported with the first of these.
Both raise InvalidRecord for what Kafka's `DefaultRecord.readFrom` rejects, and compare every field
with its record's length, in compressed batches as well.
"""

from typing import Final

from protocol.records.batch import BatchHeader
from protocol.records.chain import record_starts
from protocol.records.effort import Effort
from protocol.records.scan_fields import RecordFields

NUMPY_FROM: Final = 80
"""With more records than this numpy is faster than a loop."""


def fields_of(payload: bytes, header: BatchHeader, effort: Effort | None = None) -> RecordFields:
    """The columns of `payload`, the plain records of a v2 batch with this header.

    Raises InvalidRecord unless exactly `record_count` valid records fill it, EffortSpent.
    """
    starts = record_starts(payload, header.record_count)
    if len(starts) > NUMPY_FROM:
        from protocol.records.scan_numpy import read_fields as read_many_fields

        return read_many_fields(payload, starts, header.base_timestamp, effort)
    from protocol.records.scan_python import read_fields as read_few_fields

    return read_few_fields(payload, starts, header.base_timestamp, effort)
