"""The checks of a follower on batches that it copied from the leader and does not change.

Checksums are compared, records are not opened (S-APP-9). The log must grow: batches out of order,
or below its end, are refused with errors of their own, which the copying task handles (truncate,
start over); they never reach a client.

`Appender` and `broker.replication.slice_copy` call this.
"""

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BatchHeader, iter_batches, verify_crc
from storage.log.validation import Bytes, bad_crc


class OffsetsOutOfOrder(KafkaError):
    """Batches in one append whose offsets do not rise (`OffsetsOutOfOrderException`)."""

    def __init__(self, name: str, previous: int, last: int) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Out of order offsets found in append to {name}: {last} after {previous}",
        )


class UnexpectedAppendOffset(KafkaError):
    """The first batch lies below the log end offset (`UnexpectedAppendOffsetException`)."""

    def __init__(self, name: str, first_offset: int, last_offset: int, log_end_offset: int) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Unexpected offset in append to {name}. First offset {first_offset} is less than the "
            f"next offset {log_end_offset}; last offset in append: {last_offset}.",
        )
        self.first_offset = first_offset
        self.last_offset = last_offset


class FollowerBatches:
    """The whole batches of one fetch response, checked; a partial last batch is left out."""

    __slots__ = ("data", "headers", "max_timestamp", "offset_of_max_timestamp", "record_count")

    def __init__(self, records: Bytes, name: str) -> None:
        """Raises CorruptBatch for a bad checksum or frame, OffsetsOutOfOrder."""
        self.headers: list[BatchHeader] = []
        self.max_timestamp = -1
        self.offset_of_max_timestamp = -1
        self.record_count = 0
        end, last = 0, -1
        for position, header in iter_batches(records):
            if not verify_crc(records, position, header):
                raise bad_crc(header, name)
            if header.last_offset <= last:
                raise OffsetsOutOfOrder(name, last, header.last_offset)
            last = header.last_offset
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp = header.max_timestamp
                self.offset_of_max_timestamp = last
            self.record_count += max(header.record_count, 0)
            self.headers.append(header)
            end = position + header.size
        self.data = records if end == len(records) else memoryview(records)[:end]

    @property
    def first_offset(self) -> int:
        """Offset of the first record; in formats 0 and 1 that of the outer message."""
        return self.headers[0].base_offset

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.headers[-1].last_offset
