"""A disk in memory: `log.dirs=memory:`, tests and simulations; the contract is `OsFileSystem`'s.

Names are apart from files, as on a disk, so an open file survives unlink and rename (S-RET-7), and
a mapping shows the file's bytes. Nothing outlives the process, syncing does nothing, and a file has
no descriptor (replies are read instead of sent by sendfile).

A file up to 64 KB is a `bytearray`; a longer one lies in anonymous memory that the system
fills page by page, so a pre-sized index costs only the pages that were written.

A test's disk that fails, tears or forgets derives from this one: `_before` is called ahead of each
operation, with the operation's name in `FileSystem` or `File`.
"""
# ruff: noqa: D102 - the methods are documented once, on the protocols they implement

import errno
import mmap
import os
from collections.abc import Callable, Iterable
from posixpath import normpath
from typing import Final

from storage.filesystem import Piece

_SMALL: Final = 64 * 1024
_LEAST_MAPPING: Final = 16 * 1024 * 1024
"""Large, because an empty mapping costs address space only, and a file that outgrows its mapping
is copied into the next."""


class Inode:
    """A file's bytes, apart from its names: the first `length` bytes of `store`."""

    __slots__ = ("allocated", "length", "lock_holder", "mtime_ms", "store")

    def __init__(self, mtime_ms: int) -> None:
        self.store: bytearray | mmap.mmap = bytearray()
        self.length = 0
        self.allocated = 0
        """The file holds blocks for so many of its first bytes."""
        self.mtime_ms = mtime_ms
        self.lock_holder: MemoryFile | None = None

    def content(self) -> bytes:
        """A copy of the file's bytes."""
        return bytes(self.store[: self.length])

    def write(self, data: Piece, position: int) -> None:
        """Write `data` at `position`; a gap before it reads as zeros."""
        end = position + len(data)
        if end > self.length:
            self.resize(end)
        self.store[position:end] = data
        self.allocated = max(self.allocated, end)

    def resize(self, size: int) -> None:
        """Cut, or extend with zeros, to `size` bytes."""
        if size > len(self.store):
            self._grow(size)
        elif size < self.length:
            self._zero(size, self.length)
        self.length = size

    def _zero(self, start: int, end: int) -> None:
        """Zero bytes that were cut off: they must read as zeros when the file grows again."""
        page = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        if isinstance(self.store, mmap.mmap) and end - page > _SMALL:
            # A pre-sized index is mostly a hole: return whole pages to the system, write none.
            pages = (end - page) // mmap.PAGESIZE * mmap.PAGESIZE
            self.store.madvise(mmap.MADV_REMOVE, page, pages)
            self._zero(start, page)
            start = page + pages
        self.store[start:end] = bytes(end - start)

    def _grow(self, size: int) -> None:
        if isinstance(self.store, bytearray) and size <= _SMALL:
            self.store.extend(bytes(size - len(self.store)))
        else:
            self._to_mapping(size)

    def _to_mapping(self, size: int) -> None:
        """Move into an anonymous mapping that leaves room to grow while views are exported."""
        if isinstance(self.store, mmap.mmap) and len(self.store) >= size:
            return
        bigger = mmap.mmap(-1, max(size * 2, _LEAST_MAPPING))
        bigger[: self.length] = self.store[: self.length]
        if isinstance(self.store, mmap.mmap):
            # A view of the old mapping would no longer share the file's bytes, as on a disk.
            self.store.close()  # BufferError if there is a view
        self.store = bigger


class MemoryMapping:
    """See `storage.filesystem.FileMapping`. Raises BufferError where a real one is a SIGBUS."""

    __slots__ = ("_inode", "_size")

    def __init__(self, inode: Inode, size: int) -> None:
        self._inode = inode
        self._size = size

    def size(self) -> int:
        return self._inode.length

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._size)
        self._expect(stop)
        return bytes(self._inode.store[start:stop])

    def _expect(self, size: int) -> None:
        if size > self._inode.length:
            raise BufferError(f"{size} bytes are wanted of a file that was cut to less")


class MemoryFile:
    """See `storage.filesystem.File`."""

    __slots__ = ("_closed", "_fs", "_writable", "inode", "path")

    def __init__(self, fs: "MemoryFileSystem", path: str, inode: Inode, writable: bool) -> None:
        self._fs = fs
        self.path = path
        self.inode = inode
        self._writable = writable
        self._closed = False

    def __del__(self) -> None:
        self.close()

    def _reading(self, operation: str) -> None:
        if self._closed:
            raise OSError(errno.EBADF, "file is closed", self.path)
        self._fs._before(operation, self.path)

    def _writing(self, operation: str) -> None:
        self._reading(operation)
        if not self._writable:
            raise OSError(errno.EBADF, "not open for writing", self.path)

    def fileno(self) -> int:
        raise OSError(errno.EINVAL, "a file in memory has no descriptor", self.path)

    def size(self) -> int:
        self._reading("size")
        return self.inode.length

    def pread(self, size: int, position: int) -> bytes:
        self._reading("pread")
        return bytes(self.inode.store[position : min(position + size, self.inode.length)])

    def elsewhere(self) -> None:
        return None

    def is_cached(self, size: int, position: int) -> bool:
        return True

    def pwrite(self, data: Piece, position: int) -> None:
        self._writing("pwrite")
        self._put(data, position)

    def pwritev(self, pieces: list[Piece], position: int) -> None:
        self._writing("pwritev")
        self._put(b"".join(pieces), position)

    def _put(self, data: Piece, position: int) -> None:
        if data:
            self.inode.write(data, position)
            self.inode.mtime_ms = self._fs._now_ms()

    def truncate(self, size: int) -> None:
        self._writing("truncate")
        self._cut(size)

    def _cut(self, size: int) -> None:
        inode = self.inode
        inode.resize(size)
        inode.allocated = min(inode.allocated, size)
        inode.mtime_ms = self._fs._now_ms()

    def allocate(self, size: int) -> None:
        self._writing("allocate")
        inode = self.inode
        inode.allocated = max(inode.allocated, size)
        if size > inode.length:
            inode.resize(size)

    def map(self, size: int) -> MemoryMapping:
        self._reading("map")
        if not 0 < size <= self.inode.length:
            raise ValueError(f"cannot map {size} of {self.inode.length} bytes")
        return MemoryMapping(self.inode, size)

    def fsync(self) -> None:
        self._reading("fsync")

    def close(self) -> None:
        self._closed = True
        if self.inode.lock_holder is self:
            self.inode.lock_holder = None


Entries = dict[str, Inode | None]
"""Name to file; None: a directory."""


class MemoryFileSystem:
    """See `storage.filesystem.FileSystem` and the module's docstring."""

    def __init__(self, now_ms: Callable[[], int], *, total_bytes: int = 1 << 40) -> None:
        """`now_ms` gives modification times; `total_bytes` is the volume's size for `usage`."""
        self._now_ms = now_ms
        self.total_bytes = total_bytes
        # By path, so that only renaming or removing a directory walks the tree.
        self._directories: dict[str, Entries] = {"/": {}, ".": {}}
        self._locks: dict[str, MemoryFile] = {}
        """The file that was locked last in a directory, by directory."""

    def _before(self, operation: str, path: str) -> None:
        """Every operation calls this first, and raises what this raises."""

    def _begin(self, operation: str, path: str) -> str:
        path = normpath(path)
        self._before(operation, path)
        return path

    def _make_file(self, path: str) -> Inode:
        """A new, empty file in a directory that exists."""
        inode = Inode(self._now_ms())
        parent, name = _split(path)
        self._directories[parent][name] = inode
        return inode

    # --- the interface

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> MemoryFile:
        path = self._begin("open", path)
        inode = self._find(path)
        if inode is None:
            if path in self._directories:
                raise _error(errno.EISDIR, path)
            if not create:
                raise _error(errno.ENOENT, path)
            self._need_directory(_split(path)[0])
            inode = self._make_file(path)
        return MemoryFile(self, path, inode, writable)

    def exists(self, path: str) -> bool:
        path = self._begin("exists", path)
        return path in self._directories or self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        return self._begin("is_dir", path) in self._directories

    def list_dir(self, path: str) -> list[str]:
        return sorted(self._need_directory(self._begin("list_dir", path)))

    def sizes(self, path: str, *, unasked: str = "") -> dict[str, int]:
        paths = {name: f"{path}/{name}" for name in self.list_dir(path)}
        return {name: self.size(each) for name, each in paths.items() if not self.is_dir(each)}

    def make_dirs(self, path: str) -> None:
        path = self._begin("make_dirs", path)
        missing: list[str] = []
        while path not in self._directories:
            if self._find(path) is not None:
                raise _error(errno.EEXIST, path)
            missing.append(path)
            path = _split(path)[0]
        for one in reversed(missing):
            self._make_directory(one)

    def _make_directory(self, path: str) -> None:
        """Make a directory in a parent that exists."""
        parent, name = _split(path)
        self._directories[parent][name] = None
        self._directories[path] = {}

    def rename(self, old: str, new: str) -> None:
        old, new = self._begin("rename", old), normpath(new)
        source, name = self._place_of(old)
        target = self._need_directory(_split(new)[0])
        inode = source[name]
        if inode is None:
            if self._directories.get(new):
                raise _error(errno.ENOTEMPTY, new)
            for path in self._subtree(old):
                self._directories[new + path[len(old) :]] = self._directories.pop(path)
        elif new in self._directories:
            raise _error(errno.EISDIR, new)
        del source[name]
        target[_split(new)[1]] = inode

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        path = self._begin("unlink", path)
        parent, name = _split(path)
        entries = self._directories.get(parent, {})
        if entries.get(name) is not None:
            del entries[name]
        elif not missing_ok:
            raise _error(errno.ENOENT, path)

    def remove_tree(self, path: str) -> None:
        path = self._begin("remove_tree", path)
        self._need_directory(path)
        for one in self._subtree(path):
            del self._directories[one]
        parent, name = _split(path)
        del self._directories[parent][name]

    def fsync_dir(self, path: str) -> None:
        self._need_directory(self._begin("fsync_dir", path))

    def size(self, path: str) -> int:
        return self._inode(self._begin("size", path)).length

    def mtime_ms(self, path: str) -> int:
        return self._inode(self._begin("mtime_ms", path)).mtime_ms

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        self._inode(self._begin("set_mtime_ms", path)).mtime_ms = mtime_ms

    def read_bytes(self, path: str) -> bytes:
        return self._inode(self._begin("read_bytes", path)).content()

    def write_atomic(self, path: str, pieces: Iterable[bytes]) -> None:
        """Calls the other operations, so that each step can fail or be the last before a crash."""
        path = self._begin("write_atomic", path)
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        file.truncate(0)
        file.pwritev(list(pieces), 0)
        file.fsync()
        file.close()
        self.rename(temporary, path)
        self.fsync_dir(_split(path)[0])

    def lock(self, path: str) -> MemoryFile | None:
        path = self._begin("lock", path)
        file = self.open(path, create=True)
        held = self._locks.get(_split(path)[0], file)
        if held.inode.lock_holder is not None:
            return None
        file.inode.lock_holder = self._locks[_split(path)[0]] = file
        return file

    def usage(self, path: str) -> tuple[int, int]:
        self._begin("usage", path)
        used = sum(inode.length for _, inode in self._files())
        return self.total_bytes, max(0, self.total_bytes - used)

    # --- inside

    def _files(self) -> Iterable[tuple[str, Inode]]:
        """Every file with its path."""
        for directory, entries in self._directories.items():
            for name, inode in entries.items():
                if inode is not None:
                    yield _joined(directory, name), inode

    def _find(self, path: str) -> Inode | None:
        parent, name = _split(path)
        return self._directories.get(parent, {}).get(name)

    def _inode(self, path: str) -> Inode:
        inode = self._find(path)
        if inode is None:
            raise _error(errno.ENOENT, path)
        return inode

    def _place_of(self, path: str) -> tuple[Entries, str]:
        parent, name = _split(path)
        entries = self._directories.get(parent, {})
        if name not in entries:
            raise _error(errno.ENOENT, path)
        return entries, name

    def _need_directory(self, path: str) -> Entries:
        entries = self._directories.get(path)
        if entries is None:
            raise _error(errno.ENOENT, path)
        return entries

    def _subtree(self, path: str) -> list[str]:
        """The directory and all below it."""
        found = [path]
        for one in found:
            entries = self._directories[one]
            found += [_joined(one, name) for name, inode in entries.items() if inode is None]
        return found


def _split(path: str) -> tuple[str, str]:
    """(directory, name) of a normalized path; the directory of a bare name is "."."""
    parent, _, name = path.rpartition("/")
    if parent:
        return parent, name
    return ("/" if path.startswith("/") else "."), name


def _joined(directory: str, name: str) -> str:
    if directory == ".":
        return name
    return f"{directory}{name}" if directory == "/" else f"{directory}/{name}"


def _error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)
