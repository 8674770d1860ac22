"""Messages of formats 0 and 1 in a compacted log: the same rules, written anew in format 2.

Kafka writes no older format since 4.0, so its cleaner brings an old log to the new one (tried with
4.3.1: a message that stays becomes a batch, whether or not others go). A plain message is a batch
of its own; a wrapper becomes one batch with its codec, from the first to the last of its messages
that stay. Their tombstones, which had no place for a delete horizon, get one by that, after the
date of the segment has let them stay once. One by one: such logs are old, and are so only once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocol.records.batch import BatchHeader, TimestampType
from protocol.records.builder import encode_record
from protocol.records.compression import compress
from protocol.records.errors import RecordsError
from protocol.records.message_set import iter_legacy_records
from protocol.records.value import Record
from storage.cleaner.opening import corrupt
from storage.cleaner.rebuilding import Place, filled_batch
from storage.reader.frames import Frames

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Legacy:
    """The messages of some frames, wrappers opened; the arrays are as long as `records`."""

    records: list[Record]
    owners: Ints
    """Index of each one's frame."""
    offsets: Ints
    has_key: Flags
    has_value: Flags

    def keys(self) -> list[bytes]:
        """Of those that have one."""
        return [record.key for record in self.records if record.key is not None]


def open_legacy(frames: Frames, where: str) -> Legacy:
    """Raises Uncleanable."""
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
    header: BatchHeader, place: Place, records: Sequence[Record], horizon: int
) -> tuple[bytes, int]:
    """A batch of these records of a message: (bytes, max timestamp); `horizon` -1 for none.

    `place` is the message's.
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
