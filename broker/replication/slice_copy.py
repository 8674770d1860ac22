"""Appends one slice of a log to a copy of that log, as jobs (`storage.jobs`).

    CopySlice     run: read the bytes, check every batch        complete: begin the append
    _WriteSlice   run: write                                    complete: complete the append

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

if TYPE_CHECKING:
    from storage.log.appending import PendingAppend

Failure = OSError | RecordsError | KafkaError


class CopySlice:
    """Reads `records` of a source and appends them to `copy`."""

    __slots__ = ("_copy", "_name", "_records", "_unreadable", "_wanted")

    def __init__(
        self,
        records: FileSlice | bytes,
        copy: Log,
        *,
        wanted: Callable[[], object],
        unreadable: Callable[[OSError], None],
    ) -> None:
        """`wanted` raises if the move was cancelled; `unreadable` is called if the disk of the
        source failed, and raises.
        """
        self._records = records
        self._copy = copy
        self._name = str(copy.topic_partition)
        self._wanted = wanted
        self._unreadable = unreadable

    def run(self) -> FollowerBatches | Failure:
        """See `storage.jobs`."""
        records = self._records
        try:
            data = records if isinstance(records, bytes) else records.read()
            return FollowerBatches(data, self._name)
        except (OSError, RecordsError, KafkaError) as error:
            return error

    def complete(self, found: FollowerBatches | Failure, /) -> "_WriteSlice":
        """See `storage.jobs`. Raises RecordsError, KafkaError, and what `wanted` raises."""
        self._wanted()
        if isinstance(found, OSError):
            self._unreadable(found)
        if not isinstance(found, FollowerBatches):
            raise found
        return _WriteSlice(self._copy, self._begin(found), self._wanted)

    def _begin(self, batches: FollowerBatches) -> "PendingAppend":
        copy = self._copy
        try:
            return copy.appender.begin_append_as_follower(batches)
        except UnexpectedAppendOffset as error:
            if copy.size:
                raise
            # The log start lies within a batch (records were deleted): the copy begins with the
            # whole batch.
            copy.truncate_fully_and_start_at(error.first_offset)
            return copy.appender.begin_append_as_follower(batches)


class _WriteSlice:
    __slots__ = ("_copy", "_pending", "_wanted")

    def __init__(self, copy: Log, pending: "PendingAppend", wanted: Callable[[], object]) -> None:
        self._copy = copy
        self._pending = pending
        self._wanted = wanted

    def run(self) -> None:
        self._pending.write()

    def complete(self, _: None, /) -> None:
        try:
            self._copy.appender.complete_append(self._pending)
        except StorageError:
            self._wanted()  # raises if the copy is out of service because the move was cancelled
            raise
        self._wanted()
