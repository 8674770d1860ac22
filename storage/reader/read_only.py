"""A file system that cannot change anything, through which the reader sees the disk.

It enforces two promises of `storage.reader`: nothing is made, cut, renamed or locked (every such
call raises OSError EROFS), and nothing is mapped. A broker that rolls a segment cuts its index
file, and touching a mapping beyond the new end kills the process (SIGBUS), so `map` returns an
object that reads only the slices that are taken: an index's entries, not its pre-sized 10 MB.
"""
# ruff: noqa: D102 - the methods are documented once, on the protocols they implement

import errno
from typing import Any, NoReturn

from storage.filesystem import File, FileSystem


def _refused(path: str) -> OSError:
    return OSError(errno.EROFS, "opened for reading only", path)


class ReadOnlyFile:
    """A file that is read, and mapped without a mapping; all else raises OSError EROFS."""

    __slots__ = ("_file", "_is_mapped")

    def __init__(self, file: File) -> None:
        self._file = file
        self._is_mapped = False

    @property
    def path(self) -> str:
        return self._file.path

    def fileno(self) -> int:
        return self._file.fileno()

    def size(self) -> int:
        return self._file.size()

    def pread(self, size: int, position: int) -> bytes:
        return self._file.pread(size, position)

    def elsewhere(self) -> None:
        """Always None: no child process reads it."""
        return

    def is_cached(self, size: int, position: int) -> bool:
        return self._file.is_cached(size, position)

    def _refuse(self, *_: Any) -> NoReturn:
        raise _refused(self.path)

    pwrite = pwritev = truncate = allocate = fsync = _refuse

    def map(self, size: int) -> "ReadMapping":
        self._is_mapped = True
        return ReadMapping(self, size)

    def close(self) -> None:
        # A mapping outlives its file: then the descriptor is closed with the last reference to it.
        if not self._is_mapped:
            self._file.close()


class ReadMapping:
    """See `storage.filesystem.FileMapping`: reads each slice from the file when that is taken."""

    __slots__ = ("_file", "_size")

    def __init__(self, file: File, size: int) -> None:
        self._file = file
        self._size = size

    def size(self) -> int:
        return self._file.size()

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._size)
        wanted = max(stop - start, 0)
        # If the file was cut meanwhile, the rest reads as the zeros of a pre-sized file.
        return self._file.pread(wanted, start).ljust(wanted, b"\0")


class ReadOnlyFileSystem:
    """A read-only view of another file system: every change raises OSError EROFS."""

    __slots__ = ("_fs",)

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        if create or writable:
            raise _refused(path)
        return ReadOnlyFile(self._fs.open(path, writable=False))

    def exists(self, path: str) -> bool:
        return self._fs.exists(path)

    def is_dir(self, path: str) -> bool:
        return self._fs.is_dir(path)

    def list_dir(self, path: str) -> list[str]:
        return self._fs.list_dir(path)

    def sizes(self, path: str, *, unasked: str = "") -> dict[str, int]:
        return self._fs.sizes(path, unasked=unasked)

    def _refuse(self, path: str, *_: Any, **__: Any) -> NoReturn:
        raise _refused(path)

    make_dirs = remove_tree = fsync_dir = unlink = _refuse
    set_mtime_ms = write_atomic = lock = _refuse

    def rename(self, old: str, new: str) -> None:
        self._refuse(old)

    def size(self, path: str) -> int:
        return self._fs.size(path)

    def mtime_ms(self, path: str) -> int:
        return self._fs.mtime_ms(path)

    def read_bytes(self, path: str) -> bytes:
        return self._fs.read_bytes(path)

    def usage(self, path: str) -> tuple[int, int]:
        return self._fs.usage(path)
