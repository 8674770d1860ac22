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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from posixpath import normpath

from storage.filesystem import Piece
from storage.memory_filesystem import Inode, MemoryFile, MemoryFileSystem, _joined, _split
from tests.support.torn_content import Everything, Op

__all__ = ["FailureRule", "FaultyFileSystem", "UnreliableFile"]

Tear = Callable[[str, bytes, bytes], bytes]
"""(path, durable content, current content) -> content after the crash."""

_ZEROS = bytes(1 << 18)


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


class UnsyncedInode(Inode):
    """An inode that keeps its content of the last fsync, and the operations since."""

    __slots__ = ("_base", "_base_length", "ops")

    def __init__(self, mtime_ms: int) -> None:
        super().__init__(mtime_ms)
        self._base = b""  # without the zeros at its end: a pre-sized index is mostly these
        self._base_length = 0
        self.ops: list[Op] = []

    def note(self, position: int, data: bytes | None) -> None:
        """`data` is about to be written at `position`; None: the file is cut or extended to it."""
        if not self.ops:
            self._base_length = self.length
            self._base = self._content_before_zeros()
        self.ops.append(Op(len(self.ops), position, data))

    def _content_before_zeros(self) -> bytes:
        end = self.length
        # Blocks are compared, because `rstrip` takes 5 ms for a pre-sized index.
        while end >= len(_ZEROS) and self.store[end - len(_ZEROS) : end] == _ZEROS:
            end -= len(_ZEROS)
        return bytes(self.store[:end]).rstrip(b"\0")

    def sync(self) -> None:
        """All of it is on the disk."""
        self.ops.clear()
        self._base, self._base_length = b"", 0

    def durable_content(self) -> bytes:
        return self._base.ljust(self._base_length, b"\0") if self.ops else self.content()

    def left(self, choice: Everything) -> bytes:
        """The content that is found after a crash."""
        return choice.content(self.durable_content(), self.ops) if self.ops else self.content()

    def owe_as(self, other: "UnsyncedInode") -> None:
        """Take over what of `other` is not on the disk."""
        self._base, self._base_length, self.ops = other._base, other._base_length, [*other.ops]


class UnreliableFile(MemoryFile):
    """A file whose failing write may write its first bytes, and which tells its inode all."""

    __slots__ = ()

    inode: UnsyncedInode
    _fs: "FaultyFileSystem"

    def pwrite(self, data: Piece, position: int) -> None:
        self._try("pwrite", bytes(data), position)

    def pwritev(self, pieces: list[Piece], position: int) -> None:
        self._try("pwritev", b"".join(pieces), position)

    def _try(self, operation: str, data: bytes, position: int) -> None:
        try:
            self._writing(operation)
        except OSError as error:
            done = self._fs._done_before(error, len(data))
            if done is not None:
                self._write(data[:done], position)
            raise
        self._write(data, position)

    def _write(self, data: bytes, position: int) -> None:
        self.inode.note(position, data)
        self._put(data, position)

    def truncate(self, size: int) -> None:
        self._writing("truncate")
        self.inode.note(size, None)
        self._cut(size)

    def allocate(self, size: int) -> None:
        if size > self.inode.length:
            self.inode.note(size, None)
        super().allocate(size)

    def fsync(self) -> None:
        super().fsync()
        self.inode.sync()


Names = dict[str, "UnsyncedInode | Directory"]
Change = tuple[tuple[str, "UnsyncedInode | Directory | None"], ...]
"""One atomic step: names and what they become; None: they go."""
PathChange = tuple[str, "UnsyncedInode | Directory | None"]
"""A path and what it becomes."""


@dataclass(eq=False, slots=True)
class Directory:
    """Names as they are, as they were synced, and the changes since."""

    names: Names = field(default_factory=dict)
    synced: Names = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    def change(self, *named: tuple[str, "UnsyncedInode | Directory | None"]) -> None:
        """Take one atomic step."""
        self.changes.append(named)
        _apply(self.names, named)

    def sync(self) -> None:
        """All names are on the disk."""
        self.synced = dict(self.names)
        self.changes.clear()

    def left(self, choice: Everything) -> Names:
        """The names that are found after a crash."""
        names = dict(self.synced)
        for change in self.changes[: choice.names(len(self.changes))]:
            _apply(names, change)
        return names


class FaultyFileSystem(MemoryFileSystem):
    """A disk whose operations may fail, and whose unsynced bytes and names may be lost."""

    file_type: type[UnreliableFile] = UnreliableFile

    def __init__(
        self, now_ms: Callable[[], int] | None = None, *, total_bytes: int = 1 << 40
    ) -> None:
        super().__init__(now_ms or (lambda: self.now_ms), total_bytes=total_bytes)
        self._tree = {"/": Directory(), ".": Directory()}
        self.rules: list[FailureRule] = []
        self.operations: list[tuple[str, str]] = []
        self.now_ms = 1_700_000_000_000
        """Modification time of written files, in ms, unless `now_ms` was given; tests set it."""

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

    def _done_before(self, error: OSError, size: int) -> int | None:
        """How many bytes of a write that raised `error` are written; None: it did not begin."""
        return getattr(error, "partial", None)

    # --- the interface

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> UnreliableFile:
        file = super().open(path, create=create, writable=writable)
        return self.file_type(self, file.path, file.inode, writable)

    def _change(self, operation: str, path: str, *changes: PathChange) -> None:
        """Take one atomic step in the directory of `path`, as a part of `operation`."""
        named = tuple((_split(changed)[1], node) for changed, node in changes)
        self._tree[_split(path)[0]].change(*named)

    def _make_file(self, path: str) -> UnsyncedInode:
        inode = UnsyncedInode(self._now_ms())
        parent, name = _split(path)
        self._directories[parent][name] = inode
        self._change("create", path, (path, inode))
        return inode

    def _make_directory(self, path: str) -> None:
        super()._make_directory(path)
        self._tree[path] = Directory()
        self._change("make_dirs", path, (path, self._tree[path]))

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        old, new = normpath(old), normpath(new)
        parent, name = _split(old)
        node = self._tree[parent].names[name]
        if parent == _split(new)[0]:
            self._change("rename", old, (old, None), (new, node))
        else:  # two steps, because no directory knows the other's
            self._change("rename", old, (old, None))
            self._change("rename", new, (new, node))
        for path in self._below(old) if isinstance(node, Directory) else ():
            self._tree[new + path[len(old) :]] = self._tree.pop(path)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        path = normpath(path)
        there = self._find(path) is not None
        super().unlink(path, missing_ok=missing_ok)
        if there:
            self._change("unlink", path, (path, None))

    def remove_tree(self, path: str) -> None:
        path = normpath(path)
        super().remove_tree(path)
        for one in sorted(self._below(path), reverse=True):
            for name in sorted(self._tree[one].names):
                self._change("unlink", f"{one}/{name}", (f"{one}/{name}", None))
            del self._tree[one]
        self._change("unlink", path, (path, None))

    def _below(self, path: str) -> list[str]:
        """The directory and all below it."""
        found = [path]
        for one in found:
            names = self._tree[one].names
            found += [f"{one}/{name}" for name in names if isinstance(names[name], Directory)]
        return found

    def fsync_dir(self, path: str) -> None:
        super().fsync_dir(path)
        self._tree[normpath(path)].sync()

    # --- for tests

    def write_bytes(self, path: str, data: bytes) -> None:
        """Make a durable file, without failures and without recording the operation."""
        path = normpath(path)
        parent, name = _split(path)
        self._make_parents(parent)
        inode = UnsyncedInode(self._now_ms())
        inode.resize(len(data))
        inode.store[: len(data)] = data
        self._directories[parent][name] = inode
        self._tree[parent].names[name] = self._tree[parent].synced[name] = inode

    def _make_parents(self, path: str) -> None:
        if path not in self._directories:
            self._make_parents(_split(path)[0])
            self._make_directory(path)

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
    ) -> "FaultyFileSystem":
        """Return the file system after a crash, see the module docstring; this one is unchanged."""
        after = FaultyFileSystem(total_bytes=self.total_bytes)
        after.now_ms = self.now_ms
        for directory in self._directories:
            after._make_parents(directory)
        for path, inode in self._synced_files() if forget_names else self._files():
            assert isinstance(inode, UnsyncedInode)
            if tear is not None:
                data = tear(path, inode.durable_content(), inode.content())
            elif keep_unsynced:
                data = inode.content()
            else:
                data = inode.durable_content()
            after.write_bytes(path, data)
            copy = after._inode(path)
            copy.mtime_ms = inode.mtime_ms
            if keep_unsynced and isinstance(copy, UnsyncedInode):
                # The content is still only in the page cache: a power loss may follow.
                copy.owe_as(inode)
        return after

    def _synced_files(self) -> Iterator[tuple[str, UnsyncedInode]]:
        """Every file under its synced name, also in directories that were removed since."""
        there = {id(directory) for directory in self._tree.values()}

        def within(path: str, directory: Directory) -> Iterator[tuple[str, UnsyncedInode]]:
            for name, node in directory.synced.items():
                if isinstance(node, UnsyncedInode):
                    yield _joined(path, name), node
                elif id(node) not in there:
                    yield from within(_joined(path, name), node)

        for path, directory in list(self._tree.items()):
            yield from within(path, directory)


def _apply(names: Names, change: Change) -> None:
    for name, node in change:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node
