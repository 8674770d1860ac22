"""Messages of formats 0 and 1 in a compacted log: the same rules, written in their own format.

Each plain message is a batch of its own, and stays or goes. A wrapper that loses some of its
messages is made anew with its codec, its offset then that of the last message that stays. There is
no producer, no delete horizon, no empty batch. One by one: such logs are old and shrink.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocol.records.batch import BatchHeader, TimestampType
from protocol.records.errors import RecordsError
from protocol.records.message_set import build_message_set, iter_legacy_records
from protocol.records.value import Record
from storage.cleaner.offset_map import Hashes, hash_keys
from storage.cleaner.opening import corrupt
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

    def hashes(self) -> Hashes:
        """Of the keys of those that have one."""
        return hash_keys([record.key for record in self.records if record.key is not None])


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


def rebuilt_message(header: BatchHeader, records: Sequence[Record]) -> tuple[bytes, int]:
    """A wrapper with these messages and no others: (bytes, its timestamp)."""
    by_log = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    data = build_message_set(
        [(record.offset, record.timestamp, record.key, record.value) for record in records],
        magic=header.magic,
        codec=header.codec,
        timestamp_type=header.timestamp_type,
        log_append_time=header.max_timestamp if by_log else None,
    )
    greatest = max(record.timestamp for record in records)
    return data, header.max_timestamp if by_log else greatest
