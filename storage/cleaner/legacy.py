"""Messages of formats 0 and 1 in a compacted log: judged by the same rules, rewritten in format 2.

Kafka writes no older format since 4.0, so its cleaner converts an old log (as 4.4.0 does: a message
that is kept becomes a batch, whether or not others are dropped). A plain message becomes a batch of
its own; a wrapper becomes one batch with its codec, from the first to the last of its messages that
are kept. A tombstone of the old formats has no delete horizon: at the first cleaning the date of
its segment decides, and the batch that it becomes has a horizon. Messages are converted one by one,
as an old log is converted only once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from protocol.records.batch import BatchHeader, TimestampType
from protocol.records.builder import encode_record
from protocol.records.compression import compress
from protocol.records.errors import RecordsError
from protocol.records.message_set import iter_legacy_records
from protocol.records.value import Record
from storage.cleaner.opening import corrupt
from storage.cleaner.rebuilding import OriginalHeader, filled_batch
from storage.cleaner.retained import Flags, Ints
from storage.reader.frames import Frames


@dataclass(slots=True)
class Legacy:
    """The messages of some frames, wrappers opened; the arrays are as long as `records`."""

    records: list[Record]
    owners: Ints
    """Index of each record's frame."""
    offsets: Ints
    has_key: Flags
    has_value: Flags

    def keys(self) -> list[bytes]:
        """The keys of the records that have one."""
        return [record.key for record in self.records if record.key is not None]


def open_legacy(frames: Frames, where: str) -> Legacy:
    """Read the messages of these frames, which are of format 0 or 1. Raises UncleanableLog."""
    records: list[Record] = []
    owners: list[int] = []
    try:
        for index, at in enumerate(frames.starts):
            records += iter_legacy_records(frames.chunk, at)
            owners += [index] * (len(records) - len(owners))
    except RecordsError as error:
        raise corrupt(error, where) from None
    return Legacy(
        records,
        np.array(owners, np.int64),
        np.array([record.offset for record in records], np.int64),
        np.array([record.key is not None for record in records], np.bool_),
        np.array([record.value is not None for record in records], np.bool_),
    )


def converted(
    header: BatchHeader, place: OriginalHeader, records: Sequence[Record], horizon: int
) -> tuple[bytes, int]:
    """A batch of format 2 of these records of one message: (bytes, max timestamp).

    `place` is the message's; `horizon` is the delete horizon in milliseconds, -1 for none.
    """
    by_log = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    greatest = header.max_timestamp if by_log else max(record.timestamp for record in records)
    first = records[0]
    base = horizon if horizon >= 0 else first.timestamp
    payload = b"".join(
        encode_record(
            record.offset - first.offset, record.timestamp - base, record.key, record.value
        )
        for record in records
    )
    data = filled_batch(
        compress(header.codec, payload) if header.is_compressed else payload,
        place._replace(base_offset=first.offset, last_offset=records[-1].offset),
        count=len(records),
        base_timestamp=base,
        max_timestamp=greatest,
        horizon=horizon,
    )
    return data, greatest
