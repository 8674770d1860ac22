"""The real disk behind `storage.filesystem`: raw descriptors, positional reads and writes.

Rules:
* No buffering and no shared file offset: `pread`/`pwrite` with the position of the caller, so a
  reader and the appender of one file never disturb each other.
* A write either writes all bytes or raises; after a short write (signal, nearly full disk) it
  continues with the rest.
* A descriptor is closed by `close` or with the last reference, never by deleting the path: slices
  of a deleted segment stay readable (S-RET-7).
* Nothing here catches `OSError`: the owner of the log directory decides what it means. The one
  exception: when the process has no descriptor left, a spare one is closed and the call repeated.

The only module of the engine that may import `os` for files. All others get it injected as a
`FileSystem`.
"""
# ruff: noqa: D102 - the methods are documented once, on the protocols they implement

import errno
import fcntl
import mmap
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from storage.filesystem import Piece

_MAX_PIECES: Final = 1024
"""Linux's IOV_MAX: the most pieces one writev takes."""

_PROBE_BOTH_ENDS_FROM: Final = 64 * 1024
"""A range of at least so many bytes may have its end in the page cache and its beginning not."""


_NONE_LEFT: Final = frozenset((errno.EMFILE, errno.ENFILE))

_NOWAIT: Final[int | None] = getattr(os, "RWF_NOWAIT", None)
_one_byte: Final = [bytearray(1)]


@dataclass(frozen=True, slots=True)
class OsFileElsewhere:
    """See `storage.filesystem.FileElsewhere`; device and inode tell whether the path still leads to
    the same file."""

    path: str
    device: int
    inode: int

    def read(self, size: int, position: int) -> bytes | None:
        try:
            file = OsFile(self.path, os.open(self.path, os.O_RDONLY | os.O_CLOEXEC))
        except FileNotFoundError:
            return None
        status = os.fstat(file.fileno())
        if (status.st_dev, status.st_ino) != (self.device, self.inode):
            return None
        return file.pread(size, position)


Result = TypeVar("Result")


class SpareDescriptors:
    """Descriptors held in reserve, so that files can still be opened when no other is left.

    When sockets or libraries have taken the last descriptor, a checkpoint, a sync or the entry of
    an aborted transaction still goes through. Spares are taken again once descriptors are free.
    Used from every thread that opens files: a list's `pop` and `append` are atomic.
    """

    __slots__ = ("_held", "_wanted")

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._held: list[int] = []
        self.refill()

    def call(self, function: Callable[[], Result]) -> Result:
        """Call `function`, closing spares while no descriptor is left for it. Raises OSError."""
        while True:
            try:
                result = function()
            except OSError as error:
                if error.errno not in _NONE_LEFT or not self._held:
                    raise
                os.close(self._held.pop())
                continue
            return result

    def refill(self) -> None:
        """Open spares again, as far as descriptors are free."""
        while len(self._held) < self._wanted:
            try:
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                return

    def __del__(self) -> None:
        while self._held:
            os.close(self._held.pop())


_NO_SPARES: Final = SpareDescriptors(0)


class OsMapping(mmap.mmap):
    """See `storage.filesystem.FileMapping`; `size` is an fstat of the descriptor it holds."""


class OsFile:
    """One open descriptor; see `storage.filesystem.File`."""

    __slots__ = ("_fd", "_spares", "path")

    def __init__(self, path: str, fd: int, spares: SpareDescriptors = _NO_SPARES) -> None:
        self.path = path
        self._fd = fd
        self._spares = spares

    def __repr__(self) -> str:
        return f"OsFile({self.path!r}, fd={self._fd})"

    def __del__(self) -> None:
        self.close()

    def fileno(self) -> int:
        return self._fd

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def pread(self, size: int, position: int) -> bytes:
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        return self._pread_rest(data, size, position)

    def _pread_rest(self, data: bytes, size: int, position: int) -> bytes:
        # A short read is the end of the file, or a signal or 2 GB limit in between: only an empty
        # read is proof of the end.
        pieces = [data]
        done = len(data)
        while done < size:
            data = os.pread(self._fd, size - done, position + done)
            if not data:
                break
            pieces.append(data)
            done += len(data)
        return b"".join(pieces)

    def is_cached(self, size: int, position: int) -> bool:
        if size <= 0 or _NOWAIT is None:
            return True
        try:
            os.preadv(self._fd, _one_byte, position + size - 1, _NOWAIT)
            if size >= _PROBE_BOTH_ENDS_FROM:
                os.preadv(self._fd, _one_byte, position, _NOWAIT)
        except BlockingIOError:
            return False
        except OSError:  # a file system that cannot say, or a disk that fails when it is read
            pass
        return True

    def elsewhere(self) -> OsFileElsewhere:
        status = os.fstat(self._fd)
        return OsFileElsewhere(self.path, status.st_dev, status.st_ino)

    def pwrite(self, data: Piece, position: int) -> None:
        written = os.pwrite(self._fd, data, position)
        if written == len(data):
            return
        view = memoryview(data).cast("B")
        while written < len(view):
            written += os.pwrite(self._fd, view[written:], position + written)

    def pwritev(self, pieces: list[Piece], position: int) -> None:
        for first in range(0, len(pieces), _MAX_PIECES):
            group = pieces[first : first + _MAX_PIECES]
            total = sum(map(len, group))
            written = os.pwritev(self._fd, group, position)
            if written < total:
                rest = memoryview(b"".join(group))[written:]
                self.pwrite(rest, position + written)
            position += total

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def allocate(self, size: int) -> None:
        if size > 0:
            os.posix_fallocate(self._fd, 0, size)

    def map(self, size: int) -> OsMapping:
        # The mapping holds a copy of the descriptor; both are closed with its last reference.
        return self._spares.call(lambda: OsMapping(self._fd, size, access=mmap.ACCESS_READ))

    def fsync(self) -> None:
        os.fsync(self._fd)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
            self._spares.refill()


class OsLock(OsFile):
    """A locked file. Its directory is locked too: a removed file must not let a second owner in."""

    __slots__ = ("_directory",)

    def __init__(self, path: str, fd: int, spares: SpareDescriptors) -> None:
        super().__init__(path, fd, spares)
        self._directory = -1

    def lock_directory(self) -> None:
        """Lock the directory, where its file system can. Raises BlockingIOError."""
        parent = os.path.dirname(self.path) or "."
        try:
            self._directory = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:  # NFS locks only what is open for writing
            pass

    def close(self) -> None:
        super().close()
        fd, self._directory = self._directory, -1
        if fd >= 0:
            os.close(fd)


class OsFileSystem:
    """The volume as the operating system shows it; see `storage.filesystem.FileSystem`."""

    __slots__ = ("_spares",)

    def __init__(self, *, spares: int = 0) -> None:
        """`spares`: how many descriptors are held in reserve for files."""
        self._spares = SpareDescriptors(spares)

    def __reduce__(self) -> tuple[type["OsFileSystem"], tuple[()]]:
        """Pickle without spares: descriptors are valid in this process only."""
        return OsFileSystem, ()

    def _open(self, path: str, flags: int) -> int:
        try:
            return os.open(path, flags | os.O_CLOEXEC, 0o644)
        except OSError as error:
            if error.errno not in _NONE_LEFT:
                raise
        return self._spares.call(lambda: os.open(path, flags | os.O_CLOEXEC, 0o644))

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> OsFile:
        flags = os.O_RDWR if writable else os.O_RDONLY
        if create:
            flags |= os.O_CREAT
        return OsFile(path, self._open(path, flags), self._spares)

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_dir(self, path: str) -> list[str]:
        return sorted(self._spares.call(lambda: os.listdir(path)))

    def sizes(self, path: str, *, unasked: str = "") -> dict[str, int]:
        found = []
        # From a descriptor, so that the path is resolved once, not for each name.
        fd = self._open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with self._spares.call(lambda: os.scandir(fd)) as entries:
                for entry in entries:
                    name = entry.name
                    try:
                        if entry.is_dir():
                            continue
                        asked = not (unasked and name.endswith(unasked))
                        found.append((name, entry.stat().st_size if asked else 0))
                    except FileNotFoundError:
                        continue
        finally:
            os.close(fd)
            self._spares.refill()
        return dict(sorted(found))

    def make_dirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove_tree(self, path: str) -> None:
        import shutil  # here, as only the deletion of a topic needs it

        shutil.rmtree(path)

    def fsync_dir(self, path: str) -> None:
        fd = self._open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def mtime_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        stamp = mtime_ms * 1_000_000
        os.utime(path, ns=(stamp, stamp))

    def read_bytes(self, path: str) -> bytes:
        # Not `open`: a start reads thousands of small files, and this takes half the time.
        fd = self._open(path, os.O_RDONLY)
        try:
            pieces = []
            while piece := os.read(fd, max(os.fstat(fd).st_size, 1)):
                pieces.append(piece)
        finally:
            os.close(fd)
        return b"".join(pieces)

    def write_atomic(self, path: str, pieces: Iterable[bytes]) -> None:
        temporary = path + ".tmp"
        # "w" empties the file: a longer .tmp of a crashed writer must not leave bytes behind ours.
        with self._spares.call(lambda: open(temporary, "wb")) as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        self.fsync_dir(os.path.dirname(path) or ".")

    def lock(self, path: str) -> OsFile | None:
        file = OsLock(path, self._open(path, os.O_RDWR | os.O_CREAT), self._spares)
        try:
            # flock excludes a second owner in this process; lockf excludes a Java broker, whose
            # FileChannel.tryLock takes that kind of lock.
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.lock_directory()
        except (BlockingIOError, PermissionError):
            file.close()
            return None
        return file

    def usage(self, path: str) -> tuple[int, int]:
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize
