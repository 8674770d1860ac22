"""Appends one slice of a log to a copy of that log.

The threads see no log: the first gets a slice of a file, the second an append that was begun.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from protocol.errors import KafkaError
from protocol.records.errors import RecordsError
from storage.errors import StorageError
from storage.log.following import FollowerBatches, UnexpectedAppendOffset
from storage.log.log import Log
from storage.log.results import FileSlice
from storage.waits import call

if TYPE_CHECKING:
    from storage.log.appending import PendingAppend


async def copy_slice(
    records: FileSlice | bytes,
    copy: Log,
    *,
    wanted: Callable[[], object],
    unreadable: Callable[[OSError], None],
) -> None:
    """Append `records` of a source to `copy`.

    `wanted` raises if the move was cancelled; `unreadable` is called if the disk of the source
    failed, and raises. Raises what these raise, RecordsError, KafkaError, StorageError.
    """
    try:
        batches = await call(_checked, records, str(copy.topic_partition))
    except (OSError, RecordsError, KafkaError) as error:
        wanted()
        if isinstance(error, OSError):
            unreadable(error)
        raise
    wanted()
    pending = _begin(copy, batches)
    await call(pending.write)
    try:
        copy.appender.complete_append(pending)
    except StorageError:
        wanted()  # raises if the copy is out of service because the move was cancelled
        raise
    wanted()


def _checked(records: FileSlice | bytes, name: str) -> FollowerBatches:
    """Read the slice and check every batch."""
    return FollowerBatches(records if isinstance(records, bytes) else records.read(), name)


def _begin(copy: Log, batches: FollowerBatches) -> "PendingAppend":
    try:
        return copy.appender.begin_append_as_follower(batches)
    except UnexpectedAppendOffset as error:
        if copy.size:
            raise
        # The log start lies within a batch (records were deleted): the copy begins with the whole
        # batch.
        copy.truncate_fully_and_start_at(error.first_offset)
        return copy.appender.begin_append_as_follower(batches)
