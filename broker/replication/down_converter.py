"""Converts records to message sets for the clients of Fetch v0-3, outside the loop and bounded.

A fetch is answered with slices of files; for old clients these are decompressed, converted and
built again (`protocol.records.down_conversion`). This is

* done in a child process (`batch_looker`);
* limited: a reply holds `REPLY_BYTES`, or one message if that is larger; the client gets the rest
  with its next fetch. Partitions share the bytes, each at least `LEAST_SHARE`;
* budgeted: unlike slices of files, converted records take memory until they are sent. While much
  of it is held for slow readers, replies become smaller (`HELD_BYTES`).

Kafka converts while it sends, batch by batch, up to the size of what was read, or of the first
batch (`LazyDownConversionRecords`).
"""

import logging
import struct
from collections.abc import Callable, Sequence
from typing import Final

from broker.replication.batch_looker import BatchLooker
from broker.replication.failures import refusal_of
from broker.replication.read_plan import FetchTarget, StorageFailed
from broker.world.workers import WorkerDied
from protocol.errors import ErrorCode
from protocol.messages.fetch import PartitionData
from protocol.records.down_conversion import Converted, down_convert
from protocol.records.errors import RecordsError
from protocol.records.header import HEADER_UP_TO_MAGIC, LENGTH_OFFSET, LOG_OVERHEAD
from storage.errors import storage_error
from storage.log.results import FileSlice

REPLY_BYTES: Final = 4 << 20
"""Converted records of a reply: about 0.2 s of a child process for records of 100 bytes."""
LEAST_SHARE: Final = 64 << 10
HELD_BYTES: Final = 64 << 20
"""With this many converted bytes waiting to be sent, replies have only `LEAST_SHARE`."""

_TOO_LARGE: Final = struct.pack(">qi", 0, 0x7FFF_FFFF)
"""The head of a message that never ends: tells a v0-2 client that its limit is below one batch."""

_TRY_AGAIN: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER
"""These versions have no code for a disk or a process that failed; after this one clients ask for
the leader and try again."""

logger = logging.getLogger(__name__)

Entry = tuple[FetchTarget, PartitionData]
"""A target and its `PartitionData`, whose records are a slice of a log."""


class HeldRecords:
    """Converted records on their way to a client; calls `released` when they are freed."""

    __slots__ = ("_records", "_released")

    position = 0

    def __init__(self, records: bytes, released: Callable[[int], None]) -> None:
        self._records = records
        self._released = released

    def __len__(self) -> int:
        return len(self._records)

    def __del__(self) -> None:
        self._released(len(self._records))

    def read(self) -> bytes:
        """The bytes."""
        return self._records

    def is_cached(self) -> bool:
        """They are in memory."""
        return True

    def load(self) -> None:
        """Nothing to load."""

    def fileno(self) -> int:
        """Raises OSError: there is no file."""
        raise OSError("converted records are no file")


class DownConverter:
    """Converts the records of fetch replies. One per broker; event loop only."""

    def __init__(self, looker: BatchLooker, storage_failed: StorageFailed) -> None:
        self._looker = looker
        self._storage_failed = storage_failed
        self.held = 0
        """Bytes of converted records that are not sent yet."""

    async def convert(self, entries: Sequence[Entry], magic: int, max_bytes: int) -> None:
        """Replace each entry's records by a message set, or its answer by an error."""
        left = min(max_bytes, self._reply_bytes())
        share = max(left // max(len(entries), 1), LEAST_SHARE)
        for count, (target, data) in enumerate(entries):
            raw, data.records = data.records, b""
            assert isinstance(raw, FileSlice | bytes)  # as the log gave it
            if count and left <= 0:
                continue
            limit = min(max(target.max_bytes, len(raw)), share)
            left -= await self._convert_one(target, data, raw, magic, limit)

    def _reply_bytes(self) -> int:
        return max(min((HELD_BYTES - self.held) // 4, REPLY_BYTES), LEAST_SHARE)

    async def _convert_one(
        self,
        target: FetchTarget,
        data: PartitionData,
        raw: FileSlice | bytes,
        magic: int,
        limit: int,
    ) -> int:
        try:
            converted = await self._converted(raw, magic, target.fetch_offset, limit)
        except RecordsError as error:
            code = refusal_of(error).code
        except OSError as error:  # the disk's, or no descriptor was left to read it
            code = _TRY_AGAIN
            if target.partition is not None:
                failure = storage_error(target.partition.log.dir, error)
                self._storage_failed(target.partition, failure)
        except WorkerDied as error:
            logger.warning("Records for an old client could not be converted: %s", error)
            code = _TRY_AGAIN
        else:
            self._give(target, data, converted)
            return len(converted.records)
        data.error_code = code
        data.high_watermark = -1
        return 0

    def _give(self, target: FetchTarget, data: PartitionData, converted: Converted) -> None:
        if not converted.read and not converted.records:
            data.records = _TOO_LARGE
            return
        if target.partition is not None:
            target.partition.statistics.fetch_message_conversions += converted.messages
        if converted.records:
            self.held += len(converted.records)
            data.records = HeldRecords(converted.records, self._release)

    def _release(self, size: int) -> None:
        self.held -= size

    async def _converted(
        self, raw: FileSlice | bytes, magic: int, first_offset: int, limit: int
    ) -> Converted:
        """Convert as much of `raw` as is needed for an answer, or all of it.

        Raises RecordsError, OSError, WorkerDied.
        """
        position, window = 0, max(limit, LEAST_SHARE)
        converted = Converted(b"", 0, 0)
        while position < len(raw):
            batches = _part(raw, position, window)
            converted = await self._looker.look(batches, down_convert, magic, first_offset, limit)
            if converted.records:
                break
            if not converted.read:  # a batch larger than the window, or cut off by the client
                window = _first_size(batches)
                if not len(batches) < window <= len(raw) - position:
                    break
            # Else: only control batches, or batches without a record from the fetch offset on.
            position += converted.read
        return converted._replace(read=position + converted.read)


def _part(raw: FileSlice | bytes, position: int, window: int) -> FileSlice | bytes:
    if isinstance(raw, bytes):
        return raw[position : position + window]
    return FileSlice(raw.file, raw.position + position, min(window, len(raw) - position))


def _first_size(batches: FileSlice | bytes) -> int:
    """Return the size of the first batch, which was read a moment ago; 0 if its head is cut."""
    if not isinstance(batches, bytes):
        batches = batches.file.pread(HEADER_UP_TO_MAGIC, batches.position)
    if len(batches) < HEADER_UP_TO_MAGIC:
        return 0
    return int.from_bytes(batches[LENGTH_OFFSET:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
