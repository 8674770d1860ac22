"""Between a log and its disk: reports disk errors, and refuses calls after the first one.

An OSError becomes a `StorageError` and is reported to the owner of the log directory, which takes
the directory offline (S-REC-11). From then on, and after the partition was deleted, the log refuses
everything. If the process has only run out of descriptors or memory, the log serves on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from protocol.records.errors import RecordsError
from storage.errors import StorageError, is_shortage, storage_error
from storage.log.store import SegmentStore
from storage.log.validation import refusal

DiskFailed = Callable[[str, OSError], None]
"""Called with (partition directory, cause) when the disk failed."""


class DiskGuard:
    """Turns the disk errors of one log into `StorageError`, and refuses calls once it failed."""

    __slots__ = ("_store", "failed", "offline")

    def __init__(self, store: SegmentStore) -> None:
        self._store = store
        self.failed: DiskFailed | None = None
        self.offline: OSError | None = None
        """Why the log is out of service."""

    def close(self, cause: OSError) -> None:
        """Refuse everything from now on. Results of running jobs will be dropped."""
        self.offline = cause
        self._store.generation += 1

    def check(self) -> None:
        """Raises StorageError when the log is out of service."""
        if self.offline is not None:
            raise StorageError(self._store.directory, self.offline)

    def fail(self, error: OSError) -> NoReturn:
        """Raise StorageError for `error`; report it, unless the process ran out of descriptors."""
        directory = self._store.directory
        if is_shortage(error):
            if self._store.openings is not None:
                self._store.openings.make_room()
        elif self.failed is not None:
            self.failed(directory, error)
        raise storage_error(directory, error) from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Raises StorageError for an OSError inside."""
        try:
            yield
        except OSError as error:
            self.fail(error)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raises StorageError for an OSError inside and if out of service, CORRUPT_MESSAGE for
        damaged batches."""
        self.check()
        try:
            yield
        except OSError as error:
            self.fail(error)
        except RecordsError as flaw:
            raise refusal(flaw) from flaw
