"""The directories of `log.dirs`: which are in service, and what happens when one fails.

A directory is live or offline. The first disk error of anything in it takes the whole directory
offline (S-REC-11) and calls the listeners, while the other directories serve on; only a restart
brings it back. A failure may be met in the middle of an append, which still needs its log: so it is
reported, and `defer` takes the directory offline later. After the last one the broker has to stop.

`broker.server` makes them first of all: the metadata store, which has a part of the configuration,
lies in one of them.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from storage.errors import (
    DirectoryLocked,
    OutOfResources,
    StorageError,
    is_shortage,
    storage_error,
)
from storage.filesystem import FileSystem
from storage.log_dir import LogDir
from storage.paths import parent_dir

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class LiveDir:
    """One directory in service."""

    log_dir: LogDir
    was_clean: bool = False
    """The start found the clean-shutdown marker."""
    loaded: bool = False
    """All its logs were opened, so an orderly stop may write the marker."""


def run_at_once(action: Callable[[], None]) -> None:
    """A `defer` that does not defer: for directories without an event loop."""
    action()


@dataclass(slots=True)
class LogDirectories:
    """The log directories of a broker, in service or not. `live` keeps the order of `log.dirs`."""

    fs: FileSystem
    paths: tuple[str, ...]
    """All of `log.dirs`."""
    defer: Callable[[Callable[[], None]], None] = run_at_once
    """Runs an action later, on the owner's thread, outside of any call in progress."""
    listeners: list[Callable[[str], None]] = field(default_factory=list)
    """Called in this order, once for each directory that goes offline, with its path."""
    live: dict[str, LiveDir] = field(default_factory=dict)
    offline: dict[str, OSError] = field(default_factory=dict)
    cordoned: frozenset[str] = frozenset()
    """Directories that get no new partitions (`cordoned.log.dirs`, KIP-1066)."""
    make_room: Callable[[], None] = lambda: None
    """Called when no descriptor is left."""
    _reported: set[str] = field(default_factory=set)

    def lock_and_check(self) -> None:
        """Make, lock and list every directory; bad ones are offline from the start.

        Raises DirectoryLocked when another broker uses one, StorageError when none is left
        (S-REC-7), OutOfResources when no descriptor or memory is left to look at one.
        """
        for path in self.paths:
            log_dir = LogDir(self.fs, path)
            try:
                if not self.fs.exists(path):
                    _log.info("Log directory %s not found, creating it.", path)
                    self.fs.make_dirs(path)
                self.fs.list_dir(path)
                log_dir.lock()
            except OSError as error:
                if is_shortage(error):
                    self.unlock_all()
                    raise OutOfResources(path, error) from error
                _log.error("Failed to create or validate data directory %s: %s", path, error)
                self.offline[path] = error
            except DirectoryLocked:
                self.unlock_all()
                raise
            else:
                self.live[path] = LiveDir(log_dir)
        if not self.live:
            raise StorageError(
                ", ".join(self.paths),
                "none of the specified log dirs can be created or validated: "
                + "; ".join(str(error) for error in self.offline.values()),
            )

    def unlock_all(self) -> None:
        """Release the locks of all live directories."""
        for state in self.live.values():
            state.log_dir.unlock()

    def report_failure(self, log_dir: str, error: OSError) -> None:
        """Note a disk error in `log_dir`; the first one takes it offline.

        A shortage of descriptors or memory is only logged: the caller tries again later.
        """
        if is_shortage(error):
            _log.error("Could not work in %s, which stays in service: %s", log_dir, error)
            self.make_room()
            return
        if log_dir not in self._reported:
            self._reported.add(log_dir)
            self.defer(lambda: self.take_offline(log_dir, error))

    def report_failure_in(self, directory: str, error: OSError) -> None:
        """`report_failure` for an error in a partition directory."""
        self.report_failure(parent_dir(directory), error)

    @contextmanager
    def writing(self, directory: str) -> Iterator[None]:
        """Report an OSError inside for that partition directory, and raise StorageError for it."""
        try:
            yield
        except OSError as error:
            self.report_failure_in(directory, error)
            raise storage_error(directory, error) from error

    def take_offline(self, log_dir: str, error: OSError) -> None:
        """Take the directory out of service, release its lock and call the listeners, once.

        Raises OutOfResources when the process has no descriptor or memory left: no disk failed.
        """
        if is_shortage(error):
            raise OutOfResources(log_dir, error)
        self._reported.add(log_dir)
        state = self.live.pop(log_dir, None)
        if state is None:
            return
        _log.error("Stopping serving logs in dir %s: %s", log_dir, error)
        self.offline[log_dir] = error
        state.log_dir.unlock()
        if not self.live:
            _log.critical("All log dirs in %s have failed", ", ".join(self.paths))
        for listener in self.listeners:
            listener(log_dir)

    def emptiest_first(self, logs_in: Callable[[], Mapping[str, int]]) -> list[str]:
        """Live directories by how many logs `logs_in` counts; ties in the order of `log.dirs`.

        Cordoned ones are left out. If all are cordoned, the first live directory takes what must be
        placed anyway (a partition that was assigned by hand, the log of a known topic).
        """
        open_ones = self.uncordoned or list(self.live)[:1]
        if len(open_ones) == 1:
            return open_ones
        counts = logs_in()
        return sorted(open_ones, key=lambda log_dir: counts.get(log_dir, 0))

    @property
    def uncordoned(self) -> list[str]:
        """Live directories that new partitions may go to."""
        return [log_dir for log_dir in self.live if log_dir not in self.cordoned]
