"""An in-memory twin of `storage.os_filesystem`: fails on demand, forgets what was not synced.

It keeps what a disk keeps: names are apart from files (an open file survives unlink and rename), a
mapping shares the file's bytes, a file has a durable content beside the current one.

Failing:

    fs.fail("pwrite", "*.log")                          the next write to a log raises EIO
    fs.fail("fsync", "*/replication-*", nth=3)          the third one does
    fs.fail("pwrite", "*.log", errno=errno.ENOSPC, times=None, partial=100)
                                                        all of them, after writing 100 bytes

Operations are the method names of `FileSystem` and `File`; patterns are `fnmatch` on the path the
operation was given. Each rule counts its own matches. `fs.operations` records every
(operation, path) for tests that care about order.

Crashing: `fs.crash()` is a new file system as a machine shows it after losing power. Contents are
as of each file's last fsync; with `keep_unsynced=True` the process died but the machine lived, so
everything written is there. `tear` may choose any other content between the two. Names: by default
directory changes are durable in the order they were made (as with a journal); with
`forget_names=True` only those before the last `fsync_dir` of their directory.
"""

import errno as errno_codes
import mmap
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache

Piece = bytes | bytearray | memoryview
Tear = Callable[[str, bytes, bytes], bytes]
"""(path, durable content, current content) -> content after the crash."""

_CAPACITY = 64 * 1024
"""Above this a file lives in an anonymous mapping: sparse, so pre-sized indexes cost nothing."""


@dataclass
class FailureRule:
    """One injected failure; `hits` counts how often it struck."""

    operation: str
    pattern: str
    nth: int
    times: int | None
    errno: int
    partial: int | None
    seen: int = 0
    hits: int = 0

    def strikes(self, operation: str, path: str) -> bool:
        if operation != self.operation or not fnmatchcase(path, self.pattern):
            return False
        self.seen += 1
        if self.seen < self.nth or (self.times is not None and self.hits >= self.times):
            return False
        self.hits += 1
        return True

    def error(self, path: str) -> OSError:
        return OSError(self.errno, os.strerror(self.errno), path)


@dataclass(eq=False)
class Inode:
    """A file's bytes, apart from its names."""

    store: bytearray | mmap.mmap = field(default_factory=bytearray)
    length: int = 0
    durable: bytes = b""
    durable_length: int = 0
    allocated: int = 0
    mtime_ms: int = 0
    lock_holder: object | None = None

    def content(self) -> bytes:
        return bytes(self.store[: self.length])

    def sync(self) -> None:
        self.durable_length = self.length
        self.durable = self.content().rstrip(b"\0")

    def durable_content(self) -> bytes:
        return self.durable.ljust(self.durable_length, b"\0")

    def resize(self, size: int) -> None:
        if size > len(self.store):
            self._grow(size)
        elif size < self.length:
            self._zero(size, self.length)
        self.length = size

    def _zero(self, start: int, end: int) -> None:
        """Kept capacity must read as zeros when the file grows again."""
        page = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        if isinstance(self.store, mmap.mmap) and end - page > _CAPACITY:
            # A pre-sized index is a hole, mostly: whole pages are given back, not written.
            pages = (end - page) // mmap.PAGESIZE * mmap.PAGESIZE
            self.store.madvise(mmap.MADV_REMOVE, page, pages)
            self._zero(start, page)
            start = page + pages
        self.store[start:end] = bytes(end - start)

    def _grow(self, size: int) -> None:
        if isinstance(self.store, bytearray) and size <= _CAPACITY:
            self.store.extend(bytes(size - len(self.store)))
        else:
            self.to_mapping(size)

    def to_mapping(self, size: int) -> None:
        """Move into an anonymous mapping that leaves room to grow while views are exported."""
        if isinstance(self.store, mmap.mmap) and len(self.store) >= size:
            return
        bigger = mmap.mmap(-1, max(size * 2, 16 * _CAPACITY))
        bigger[: self.length] = self.store[: self.length]
        if isinstance(self.store, mmap.mmap):
            # Old views would no longer share the file's bytes. The real thing never does this.
            self.store.close()  # BufferError if somebody still looks
        self.store = bigger


class MemoryFile:
    """See `storage.filesystem.File`."""

    def __init__(self, fs: "MemoryFileSystem", path: str, inode: Inode, writable: bool) -> None:
        self._fs = fs
        self.path = path
        self.inode = inode
        self._writable = writable
        self._closed = False

    def __del__(self) -> None:
        self.close()

    def _act(self, operation: str) -> FailureRule | None:
        if self._closed:
            raise OSError(errno_codes.EBADF, "file is closed", self.path)
        return self._fs._act(operation, self.path)

    def _modify(self, operation: str) -> FailureRule | None:
        rule = self._act(operation)
        if not self._writable:
            raise OSError(errno_codes.EBADF, "not open for writing", self.path)
        return rule

    def fileno(self) -> int:
        raise OSError(errno_codes.EINVAL, "a file in memory has no descriptor", self.path)

    def size(self) -> int:
        self._fs._raise(self._act("size"), self.path)
        return self.inode.length

    def pread(self, size: int, position: int) -> bytes:
        self._fs._raise(self._act("pread"), self.path)
        return bytes(self.inode.store[position : min(position + size, self.inode.length)])

    def is_cached(self, size: int, position: int) -> bool:
        return True

    def pwrite(self, data: Piece, position: int) -> None:
        self._write("pwrite", bytes(data), position)

    def pwritev(self, pieces: list[Piece], position: int) -> None:
        self._write("pwritev", b"".join(pieces), position)

    def _write(self, operation: str, data: bytes, position: int) -> None:
        rule = self._modify(operation)
        if rule is not None:
            data = data[: rule.partial or 0]
        if data:
            inode = self.inode
            end = position + len(data)
            if end > inode.length:
                inode.resize(end)
            inode.store[position:end] = data
            inode.allocated = max(inode.allocated, end)
            inode.mtime_ms = self._fs.now_ms
        self._fs._raise(rule, self.path)

    def truncate(self, size: int) -> None:
        self._fs._raise(self._modify("truncate"), self.path)
        self.inode.resize(size)
        self.inode.allocated = min(self.inode.allocated, size)
        self.inode.mtime_ms = self._fs.now_ms

    def allocate(self, size: int) -> None:
        self._fs._raise(self._modify("allocate"), self.path)
        self.inode.allocated = max(self.inode.allocated, size)
        if size > self.inode.length:
            self.inode.resize(size)

    def map(self, size: int, *, writable: bool) -> memoryview:
        self._fs._raise(self._modify("map") if writable else self._act("map"), self.path)
        if not 0 < size <= self.inode.length:
            raise ValueError(f"cannot map {size} of {self.inode.length} bytes")
        self.inode.to_mapping(self.inode.length)
        view = memoryview(self.inode.store)[:size]
        return view if writable else view.toreadonly()

    def fsync(self) -> None:
        self._fs._raise(self._act("fsync"), self.path)
        self.inode.sync()

    def close(self) -> None:
        self._closed = True
        if self.inode.lock_holder is self:
            self.inode.lock_holder = None


class MemoryFileSystem:
    """See `storage.filesystem.FileSystem` and the module's docstring."""

    def __init__(self, *, total_bytes: int = 1 << 40) -> None:
        self._files: dict[str, Inode] = {}
        self._dirs: set[str] = {"/", "."}
        self._durable_files: dict[str, Inode] = {}
        self.rules: list[FailureRule] = []
        self.operations: list[tuple[str, str]] = []
        self.total_bytes = total_bytes
        self.now_ms = 1_700_000_000_000
        """Modification time of what is written; tests set it."""

    # --- failing on demand

    def fail(
        self,
        operation: str,
        pattern: str = "*",
        *,
        nth: int = 1,
        times: int | None = 1,
        errno: int = errno_codes.EIO,
        partial: int | None = None,
    ) -> FailureRule:
        """From the `nth` match on, `times` matches (None: all) raise; see the module."""
        rule = FailureRule(operation, pattern, nth, times, errno, partial)
        self.rules.append(rule)
        return rule

    def heal(self) -> None:
        """No more failures."""
        self.rules.clear()

    def _act(self, operation: str, path: str) -> FailureRule | None:
        self.operations.append((operation, path))
        struck = [rule for rule in self.rules if rule.strikes(operation, path)]
        return struck[0] if struck else None

    @staticmethod
    def _raise(rule: FailureRule | None, path: str) -> None:
        if rule is not None:
            raise rule.error(path)

    def _begin(self, operation: str, path: str) -> str:
        path = _normal(path)
        self._raise(self._act(operation, path), path)
        return path

    # --- the interface

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> MemoryFile:
        path = self._begin("open", path)
        inode = self._files.get(path)
        if inode is None:
            if path in self._dirs:
                raise IsADirectoryError(errno_codes.EISDIR, os.strerror(errno_codes.EISDIR), path)
            if not create:
                raise _missing(path)
            self._need_dir(_parent(path))
            inode = self._files[path] = Inode(mtime_ms=self.now_ms)
        return MemoryFile(self, path, inode, writable)

    def exists(self, path: str) -> bool:
        path = self._begin("exists", path)
        return path in self._files or path in self._dirs

    def is_dir(self, path: str) -> bool:
        return self._begin("is_dir", path) in self._dirs

    def list_dir(self, path: str) -> list[str]:
        path = self._begin("list_dir", path)
        self._need_dir(path)
        prefix = _prefix(path)
        inside = (p for p in (*self._files, *self._dirs) if p.startswith(prefix) and p != path)
        return sorted({p[len(prefix) :].split("/", 1)[0] for p in inside})

    def make_dirs(self, path: str) -> None:
        path = self._begin("make_dirs", path)
        while path not in self._dirs:
            if path in self._files:
                raise FileExistsError(errno_codes.EEXIST, os.strerror(errno_codes.EEXIST), path)
            self._dirs.add(path)
            path = _parent(path)

    def rename(self, old: str, new: str) -> None:
        old = self._begin("rename", old)
        new = _normal(new)
        self._need_dir(_parent(new))
        if old in self._files:
            if new in self._dirs:
                raise IsADirectoryError(errno_codes.EISDIR, os.strerror(errno_codes.EISDIR), new)
            self._files[new] = self._files.pop(old)
        elif old in self._dirs:
            if new in self._dirs and self._has_children(new):
                code = errno_codes.ENOTEMPTY
                raise OSError(code, os.strerror(code), new)
            self._files = {_moved(p, old, new): inode for p, inode in self._files.items()}
            self._dirs = {_moved(p, old, new) for p in self._dirs}
            # What was durable inside moves along: only the directory's own name is at stake.
            self._durable_files = {_moved(p, old, new): i for p, i in self._durable_files.items()}
        else:
            raise _missing(old)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        path = self._begin("unlink", path)
        if self._files.pop(path, None) is None and not missing_ok:
            raise _missing(path)

    def remove_tree(self, path: str) -> None:
        path = self._begin("remove_tree", path)
        self._need_dir(path)
        prefix = _prefix(path)
        self._files = {p: i for p, i in self._files.items() if not p.startswith(prefix)}
        self._dirs = {p for p in self._dirs if p != path and not p.startswith(prefix)}

    def fsync_dir(self, path: str) -> None:
        path = self._begin("fsync_dir", path)
        self._need_dir(path)
        kept = {p: i for p, i in self._durable_files.items() if _parent(p) != path}
        now = {p: i for p, i in self._files.items() if _parent(p) == path}
        self._durable_files = kept | now

    def size(self, path: str) -> int:
        return self._inode(self._begin("size", path)).length

    def mtime_ms(self, path: str) -> int:
        return self._inode(self._begin("mtime_ms", path)).mtime_ms

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        self._inode(self._begin("set_mtime_ms", path)).mtime_ms = mtime_ms

    def read_bytes(self, path: str) -> bytes:
        return self._inode(self._begin("read_bytes", path)).content()

    def write_atomic(self, path: str, pieces: Iterable[bytes]) -> None:
        """Made of its steps, so that each of them can fail or be the last before a crash."""
        self._begin("write_atomic", path)
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        file.truncate(0)
        file.pwritev(list(pieces), 0)
        file.fsync()
        file.close()
        self.rename(temporary, path)
        self.fsync_dir(_parent(_normal(path)))

    def lock(self, path: str) -> MemoryFile | None:
        path = self._begin("lock", path)
        file = self.open(path, create=True)
        if file.inode.lock_holder is not None:
            return None
        file.inode.lock_holder = file
        return file

    def usage(self, path: str) -> tuple[int, int]:
        self._begin("usage", path)
        used = sum(inode.length for inode in self._files.values())
        return self.total_bytes, max(0, self.total_bytes - used)

    # --- for tests

    def write_bytes(self, path: str, data: bytes) -> None:
        """Make a file as if it had always been there: durable, no failure, not recorded."""
        path = _normal(path)
        parent = _parent(path)
        while parent not in self._dirs:
            self._dirs.add(parent)
            parent = _parent(parent)
        inode = Inode(mtime_ms=self.now_ms)
        inode.resize(len(data))
        inode.store[: len(data)] = data
        inode.sync()
        self._files[path] = self._durable_files[path] = inode

    def allocated(self, path: str) -> int:
        """Up to where blocks are held, by `File.allocate` or by writing."""
        return self._inode(_normal(path)).allocated

    def snapshot(self) -> dict[str, bytes]:
        """Every file's current content."""
        return {path: inode.content() for path, inode in sorted(self._files.items())}

    def crash(
        self,
        *,
        keep_unsynced: bool = False,
        forget_names: bool = False,
        tear: Tear | None = None,
    ) -> "MemoryFileSystem":
        """The file system after a crash; see the module's docstring. This one stays as it is."""
        after = MemoryFileSystem(total_bytes=self.total_bytes)
        after.now_ms = self.now_ms
        after._dirs = set(self._dirs)
        names = self._durable_files if forget_names else self._files
        for path, inode in names.items():
            if tear is not None:
                data = tear(path, inode.durable_content(), inode.content())
            elif keep_unsynced:
                data = inode.content()
            else:
                data = inode.durable_content()
            after.write_bytes(path, data)
            copy = after._files[path]
            copy.mtime_ms = inode.mtime_ms
            if keep_unsynced:
                # The page cache still owes it to the disk: a power loss may follow.
                copy.durable, copy.durable_length = inode.durable, inode.durable_length
        return after

    # --- inside

    def _inode(self, path: str) -> Inode:
        try:
            return self._files[path]
        except KeyError:
            raise _missing(path) from None

    def _need_dir(self, path: str) -> None:
        if path not in self._dirs:
            raise _missing(path)

    def _has_children(self, path: str) -> bool:
        prefix = _prefix(path)
        return any(p.startswith(prefix) for p in (*self._files, *self._dirs) if p != path)


@lru_cache(maxsize=4096)
def _normal(path: str) -> str:
    return os.path.normpath(path)


@lru_cache(maxsize=4096)
def _parent(path: str) -> str:
    return os.path.dirname(path) or "."


def _prefix(path: str) -> str:
    if path == ".":
        return ""
    return path if path.endswith("/") else path + "/"


def _moved(path: str, old: str, new: str) -> str:
    if path == old:
        return new
    return new + path[len(old) :] if path.startswith(old + "/") else path


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno_codes.ENOENT, os.strerror(errno_codes.ENOENT), path)
