"""The seam to the disk: all file work of the storage engine goes through these interfaces.

`storage.os_filesystem` is the real one. `storage.memory_filesystem` is one in memory; tests derive
one from it that fails on demand and forgets what was not synced. Every method raises `OSError` as
the operating system would; the caller that owns a log directory turns it into `StorageError`.

A `File` closes its descriptor when it is closed or garbage collected: a reader that holds a slice
of a deleted segment keeps the file alive (S-RET-7), so deleting code drops its reference instead
of closing.
"""

from collections.abc import Iterable
from typing import Protocol

Piece = bytes | bytearray | memoryview
"""Bytes to be written or sent."""


class FileElsewhere(Protocol):
    """A file as another process on this machine can open it; pickles."""

    def read(self, size: int, position: int) -> bytes | None:
        """As `File.pread`; None if the path now leads to another file or to none."""
        ...


class FileMapping(Protocol):
    """The first bytes of a file, mapped into memory; outlives its `File`.

    Reading a part that was cut off the file since kills the process (SIGBUS): ask `size` before
    each access.
    """

    def size(self) -> int:
        """Current length of the file in bytes."""
        ...

    def __len__(self) -> int:
        """Length of the mapping in bytes; the file may be shorter or longer by now."""
        ...

    def __getitem__(self, part: slice, /) -> bytes:
        """A copy of these bytes."""
        ...


class File(Protocol):
    """One open file. Positions and sizes are bytes; nothing here moves a shared file offset."""

    @property
    def path(self) -> str:
        """The path it was opened with; a rename does not change it."""
        ...

    def fileno(self) -> int:
        """The descriptor, for sendfile. Raises OSError where there is none (in-memory twin)."""
        ...

    def size(self) -> int:
        """Current length in bytes."""
        ...

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes at `position`; shorter only at the end of the file."""
        ...

    def is_cached(self, size: int, position: int) -> bool:
        """Whether `pread` of these bytes would not wait for the disk; True if unknown.

        Never blocks and never raises.
        """
        ...

    def elsewhere(self) -> FileElsewhere | None:
        """The file for a child process; None if that cannot open it (in memory). Raises OSError."""
        ...

    def pwrite(self, data: Piece, position: int) -> None:
        """Write all of `data` at `position`, growing the file as needed."""
        ...

    def pwritev(self, pieces: list[Piece], position: int) -> None:
        """Write all pieces one after the other at `position`."""
        ...

    def truncate(self, size: int) -> None:
        """Cut or extend (with zeros) to `size`."""
        ...

    def allocate(self, size: int) -> None:
        """Reserve real blocks up to `size`, so that a later write through a map cannot SIGBUS."""
        ...

    def map(self, size: int) -> FileMapping:
        """A shared mapping of the first `size` bytes (the file is at least that long), to read."""
        ...

    def fsync(self) -> None:
        """Data and metadata are on the disk when this returns. May block for long."""
        ...

    def close(self) -> None:
        """Release the descriptor; safe to call twice."""
        ...


class FileSystem(Protocol):
    """Directories and whole files."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        """Open for reading and (by default) writing; `create` makes the file when absent."""
        ...

    def exists(self, path: str) -> bool:
        """True for files and directories."""
        ...

    def is_dir(self, path: str) -> bool:
        """True for directories."""
        ...

    def list_dir(self, path: str) -> list[str]:
        """Names (not paths) in the directory, sorted."""
        ...

    def sizes(self, path: str, *, unasked: str = "") -> dict[str, int]:
        """Names of the files in the directory, sorted, each with its length in bytes.

        Files removed meanwhile are left out. Names that end with `unasked` may come with any
        length: asking for lengths is most of what a listing costs.
        """
        ...

    def make_dirs(self, path: str) -> None:
        """Make the directory and its parents; no error if it exists."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Rename atomically; replaces a file at `new`."""
        ...

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        """Remove a file."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it."""
        ...

    def fsync_dir(self, path: str) -> None:
        """Renames and creations in the directory are on the disk when this returns."""
        ...

    def size(self, path: str) -> int:
        """Length of the file in bytes."""
        ...

    def mtime_ms(self, path: str) -> int:
        """Last modification, milliseconds since the epoch."""
        ...

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Set the last modification time."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """The whole file. Raises FileNotFoundError."""
        ...

    def write_atomic(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write `path`.tmp, fsync it, rename it over `path`, fsync the directory."""
        ...

    def lock(self, path: str) -> File | None:
        """Take an exclusive lock on the file (made when absent) and on its directory.

        None when another holds one of them, even if the file was removed since.
        """
        ...

    def usage(self, path: str) -> tuple[int, int]:
        """(total, usable) bytes of the volume that holds `path`."""
        ...
