"""The disk in memory (`storage.memory_filesystem`), which can fail on demand and lose power.

Failing:

    fs.fail("pwrite", "*.log")                          the next write to a log raises EIO
    fs.fail("fsync", "*/replication-*", nth=3)          the third one does
    fs.fail("pwrite", "*.log", errno=errno.ENOSPC, times=None, partial=100)
                                                        all of them, after writing 100 bytes

Operations are the method names of `FileSystem` and `File`; patterns are `fnmatch` on the path the
operation was given. Each rule counts its own matches. `fs.operations` records every
(operation, path) for tests that care about order.

Crashing: `fs.crash()` returns the file system after a power loss. Each file has its content of the
last fsync. With `keep_unsynced=True` only the process died, so all writes are kept. `tear` may
choose any other content between the two. By default all directory changes are durable; with
`forget_names=True` only those before the last `fsync_dir` of their directory.
"""

import errno as errno_codes
import os
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import normpath

from storage.memory_filesystem import (
    Entries,
    Inode,
    MemoryFile,
    Piece,
    _joined,
    _split,
)
from storage.memory_filesystem import MemoryFileSystem as PlainFileSystem

__all__ = ["DurableInode", "FailureRule", "MemoryFileSystem", "UnreliableFile"]

Tear = Callable[[str, bytes, bytes], bytes]
"""(path, durable content, current content) -> content after the crash."""


@dataclass
class FailureRule:
    """One injected failure; `hits` counts the operations that it made fail."""

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
        return _Injected(self, path)


class _Injected(OSError):
    """The error of a rule, which also says how much of a write is done."""

    def __init__(self, rule: FailureRule, path: str) -> None:
        super().__init__(rule.errno, os.strerror(rule.errno), path)
        self.partial = rule.partial or 0


class DurableInode(Inode):
    """An inode that keeps its content of the last fsync."""

    __slots__ = ("_durable", "_durable_length")

    def __init__(self, mtime_ms: int) -> None:
        super().__init__(mtime_ms)
        self._durable = b""
        self._durable_length = 0

    def sync(self) -> None:
        self._durable_length = self.length
        self._durable = self.content().rstrip(b"\0")

    def durable_content(self) -> bytes:
        return self._durable.ljust(self._durable_length, b"\0")

    def owe_as(self, other: "DurableInode") -> None:
        """Take over the durable content of `other`."""
        self._durable, self._durable_length = other._durable, other._durable_length


class UnreliableFile(MemoryFile):
    """A file whose failing write may write its first bytes."""

    __slots__ = ()

    inode: DurableInode

    def pwrite(self, data: Piece, position: int) -> None:
        self._try("pwrite", bytes(data), position)

    def pwritev(self, pieces: list[Piece], position: int) -> None:
        self._try("pwritev", b"".join(pieces), position)

    def _try(self, operation: str, data: bytes, position: int) -> None:
        try:
            self._writing(operation)
        except _Injected as error:
            self._put(data[: error.partial], position)
            raise
        self._put(data, position)

    def fsync(self) -> None:
        super().fsync()
        self.inode.sync()


class MemoryFileSystem(PlainFileSystem):
    """A disk whose operations may fail, and whose unsynced bytes may be lost."""

    def __init__(self, *, total_bytes: int = 1 << 40) -> None:
        super().__init__(lambda: self.now_ms, total_bytes=total_bytes)
        self._durable_names: dict[str, dict[str, DurableInode]] = {}
        self.rules: list[FailureRule] = []
        self.operations: list[tuple[str, str]] = []
        self.now_ms = 1_700_000_000_000
        """Modification time of written files, in ms; tests set it."""

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
        """Make `times` matches (None: all) from the `nth` on fail; see the module docstring."""
        rule = FailureRule(operation, pattern, nth, times, errno, partial)
        self.rules.append(rule)
        return rule

    def heal(self) -> None:
        """Remove all rules."""
        self.rules.clear()

    def _before(self, operation: str, path: str) -> None:
        rule = self._act(operation, path)
        if rule is not None:
            raise rule.error(path)

    def _act(self, operation: str, path: str) -> FailureRule | None:
        """Record an operation; return the rule that makes it fail, or None."""
        self.operations.append((operation, path))
        struck = [rule for rule in self.rules if rule.strikes(operation, path)]
        return struck[0] if struck else None

    # --- the interface

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> UnreliableFile:
        file = super().open(path, create=create, writable=writable)
        return UnreliableFile(self, file.path, file.inode, writable)

    def _make_file(self, path: str) -> DurableInode:
        inode = DurableInode(self.now_ms)
        parent, name = _split(path)
        self._directories[parent][name] = inode
        return inode

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        old, new = normpath(old), normpath(new)
        for path in [p for p in self._durable_names if p == old or p.startswith(old + "/")]:
            # Durable names inside move along: only the directory's own name may be lost.
            self._durable_names[new + path[len(old) :]] = self._durable_names.pop(path)

    def fsync_dir(self, path: str) -> None:
        super().fsync_dir(path)
        path = normpath(path)
        self._durable_names[path] = _files_of(self._directories[path])

    # --- for tests

    def write_bytes(self, path: str, data: bytes) -> None:
        """Make a durable file, without failures and without recording the operation."""
        path = normpath(path)
        parent, name = _split(path)
        self._make_parents(parent)
        inode = DurableInode(self.now_ms)
        inode.resize(len(data))
        inode.store[: len(data)] = data
        inode.sync()
        self._directories[parent][name] = inode
        self._durable_names.setdefault(parent, {})[name] = inode

    def _make_parents(self, path: str) -> None:
        if path not in self._directories:
            self._make_parents(_split(path)[0])
            super()._make_directory(path)

    def allocated(self, path: str) -> int:
        """Return the bytes for which blocks are held, by `File.allocate` or by writing."""
        return self._inode(normpath(path)).allocated

    def snapshot(self) -> dict[str, bytes]:
        """Return every file's current content."""
        return {path: inode.content() for path, inode in sorted(self._files())}

    def crash(
        self,
        *,
        keep_unsynced: bool = False,
        forget_names: bool = False,
        tear: Tear | None = None,
    ) -> "MemoryFileSystem":
        """Return the file system after a crash, see the module docstring; this one is unchanged."""
        after = MemoryFileSystem(total_bytes=self.total_bytes)
        after.now_ms = self.now_ms
        for directory in self._directories:
            after._make_parents(directory)
        named = self._durable_names if forget_names else self._directories
        for directory, entries in named.items():
            for name, inode in _files_of(entries).items():
                path = _joined(directory, name)
                if tear is not None:
                    data = tear(path, inode.durable_content(), inode.content())
                elif keep_unsynced:
                    data = inode.content()
                else:
                    data = inode.durable_content()
                after.write_bytes(path, data)
                copy = after._inode(path)
                copy.mtime_ms = inode.mtime_ms
                if keep_unsynced and isinstance(copy, DurableInode):
                    # The content is still only in the page cache: a power loss may follow.
                    copy.owe_as(inode)
        return after


def _files_of(entries: Entries | dict[str, DurableInode]) -> dict[str, DurableInode]:
    return {name: inode for name, inode in entries.items() if isinstance(inode, DurableInode)}
