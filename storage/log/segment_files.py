"""The files of one segment: their names, and the record file once it is open.

`<base>.log` holds the batches, `.index` maps offsets to positions, `.timeindex` timestamps to
offsets, `.txnindex` aborted transactions (made at the first abort). A further suffix tells that the
files are not those of the log, or not yet: `.cleaned`, `.swap`, `.deleted` (`storage.paths`).

Everything here raises OSError.
"""

from typing import Final, Protocol

from storage.filesystem import File, FileSystem
from storage.paths import index_file, log_file, time_index_file, txn_index_file
from storage.syncing import sync_files


class OpenSegment(Protocol):
    """A segment that has files open (`LogSegment`)."""

    size: int
    """Bytes of its batches."""

    def let_go(self) -> None:
        """Close the files until the next use. Raises OSError."""
        ...

    def release(self) -> None:
        """Drop the files without writing."""
        ...


class Openings(Protocol):
    """Notes which segments have files open (`storage.open_files`)."""

    def note(self, segment: OpenSegment) -> None:
        """Note that `segment` is about to open files."""
        ...

    def forget(self, segment: OpenSegment) -> None:
        """Note that `segment` has no files open."""
        ...

    def make_room(self) -> None:
        """Have some segments let go of their files: no descriptor is left."""
        ...


LEAST_INDEX_SIZE: Final = 24
"""The least size of an index in bytes, for one entry of the time index and the one that a roll
adds. Kafka accepts `segment.index.bytes=4` and then fails to open the log; here such a topic has
short segments.
"""


class SegmentHome:
    """The values that all segments of a log share, because they are many. Sizes are bytes."""

    __slots__ = ("directory", "fs", "index_interval", "index_size", "openings")

    def __init__(
        self, fs: FileSystem, directory: str, *, index_interval: int, index_size: int
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.index_interval = index_interval
        """Bytes of records from one index entry to the next (`index.interval.bytes`)."""
        self.index_size = max(index_size, LEAST_INDEX_SIZE)
        """The most bytes of an index (`segment.index.bytes`)."""
        self.openings: Openings | None = None
        """Set while the log is in service."""


class SegmentFiles:
    """The names of one segment's files, which need not all exist, and its open record file."""

    __slots__ = ("base_offset", "home", "opened", "state")

    def __init__(self, home: SegmentHome, base_offset: int, state: str = "") -> None:
        """`state`: the files' further suffix."""
        self.home = home
        self.base_offset = base_offset
        self.state = state
        self.opened: File | None = None
        """The record file; None while the segment has no files open."""

    @property
    def path(self) -> str:
        """Path of the record file."""
        return log_file(self.home.directory, self.base_offset, self.state)

    @property
    def offset_index_path(self) -> str:
        """Path of the offset index."""
        return index_file(self.home.directory, self.base_offset, self.state)

    @property
    def time_index_path(self) -> str:
        """Path of the time index."""
        return time_index_file(self.home.directory, self.base_offset, self.state)

    @property
    def txn_index_path(self) -> str:
        """Path of the index of aborted transactions."""
        return txn_index_file(self.home.directory, self.base_offset, self.state)

    @property
    def paths(self) -> tuple[str, str, str, str]:
        """Record file, offset index, time index, transaction index."""
        return self.path, self.offset_index_path, self.time_index_path, self.txn_index_path

    @property
    def record_file(self) -> File:
        """The record file, which is made and opened as needed."""
        if self.opened is None:
            self.opened = self.home.fs.open(self.path, create=True)
        return self.opened

    def last_modified_ms(self) -> int:
        """When the record file was last written."""
        return self.home.fs.mtime_ms(self.path)

    def sync(self) -> None:
        """Sync the files that exist. May block for long.

        By path, because files that recovery read or an earlier process wrote may not be open.
        """
        sync_files(self.home.fs, self.paths)

    def remove(self) -> None:
        """Remove the files that exist."""
        for path in self.paths:
            self.home.fs.unlink(path, missing_ok=True)

    def rename(self, state: str) -> list[str]:
        """Give all files another suffix; returns the paths that exist now."""
        old = self.paths
        self.state = state
        moved = []
        for before, after in zip(old, self.paths, strict=True):
            if self.home.fs.exists(before):
                self.home.fs.rename(before, after)
                moved.append(after)
        return moved
