"""A file system over a real one whose changes stay in memory.

Files are read from the real one until they are changed; a record file that is only cut is never
copied (its node remembers the new length), so a log of many gigabytes can be "recovered" in a few
megabytes. `changes()` then returns what would differ on the disk, as differences of content: a file
that was rewritten with the same content is no change.

For one partition directory at a time and one thread. Locks are not taken.
"""
# ruff: noqa: D102 - the methods are documented once, on the protocols they implement

import errno
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from storage.filesystem import File, FileSystem, Piece
from storage.paths import file_name, join, parent_dir
from storage.reader.read_only import ReadMapping

_COMPARE: Final = 1024 * 1024


class ChangeKind(Enum):
    """How a file would differ."""

    CREATED = "created"
    REMOVED = "removed"
    CUT = "cut"
    """The same bytes, fewer of them."""
    REWRITTEN = "rewritten"
    RENAMED = "renamed"
    """`path` would be gone and `renamed_to` hold its bytes."""
    REPLACED = "replaced"
    """Another file would have this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference."""

    kind: ChangeKind
    path: str
    before: int | None
    """Bytes; None: there is no such file."""
    after: int | None
    renamed_to: str | None = None


class _Node:
    """A file's content: `length` bytes of `source`, or bytes of its own once it was written to."""

    __slots__ = ("_fs", "_store", "length", "source")

    def __init__(self, fs: FileSystem, source: str | None) -> None:
        self._fs = fs
        self.source = source
        self.length = 0 if source is None else fs.size(source)
        self._store: bytearray | None = bytearray() if source is None else None

    @property
    def is_original(self) -> bool:
        """Whether nothing was written to it, though it may have been cut."""
        return self._store is None

    def read(self, size: int, position: int) -> bytes:
        size = max(min(size, self.length - position), 0)
        if self._store is not None:
            return bytes(self._store[position : position + size])
        assert self.source is not None
        file = self._fs.open(self.source, writable=False)
        try:
            data = file.pread(size, position)
        finally:
            file.close()
        if len(data) < size:
            raise OSError(errno.ESTALE, "the file was cut while it was read", self.source)
        return data

    def write(self, data: Piece, position: int) -> None:
        end = position + len(data)
        self._own(max(end, self.length))[position:end] = data
        self.length = max(self.length, end)

    def resize(self, size: int) -> None:
        if self._store is None and size <= self.length:
            self.length = size
            return
        store = self._own(size)
        if size < self.length:
            # Spare capacity must read as zeros when the file grows again.
            store[size : self.length] = bytes(self.length - size)
        self.length = size

    def _own(self, capacity: int) -> bytearray:
        if self._store is None:
            content = self.read(self.length, 0)
            self._store = bytearray(max(capacity, len(content)))
            self._store[: len(content)] = content
        elif len(self._store) < capacity:
            bigger = bytearray(capacity)  # untouched zeros take no memory
            bigger[: self.length] = memoryview(self._store)[: self.length]
            self._store = bigger
        return self._store


class _RehearsalFile:
    """See `storage.filesystem.File`."""

    __slots__ = ("_node", "path")

    def __init__(self, path: str, node: _Node) -> None:
        self.path = path
        self._node = node

    def fileno(self) -> int:
        raise OSError(errno.EINVAL, "a file of a rehearsal has no descriptor", self.path)

    def size(self) -> int:
        return self._node.length

    def pread(self, size: int, position: int) -> bytes:
        return self._node.read(size, position)

    def elsewhere(self) -> None:
        """Always None: no child process reads it."""
        return

    def is_cached(self, size: int, position: int) -> bool:
        return True

    def pwrite(self, data: Piece, position: int) -> None:
        self._node.write(data, position)

    def pwritev(self, pieces: list[Piece], position: int) -> None:
        self._node.write(b"".join(pieces), position)

    def truncate(self, size: int) -> None:
        self._node.resize(size)

    def allocate(self, size: int) -> None:
        self._node.resize(max(size, self._node.length))

    def map(self, size: int) -> ReadMapping:
        return ReadMapping(self, size)

    def fsync(self) -> None:
        pass

    def close(self) -> None:
        pass


class RehearsalFileSystem:
    """A file system over a real one whose changes stay in memory; `changes` returns them."""

    __slots__ = ("_fs", "_nodes", "_removed")

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._nodes: dict[str, _Node] = {}
        self._removed: set[str] = set()

    def _has(self, path: str) -> bool:
        return path in self._nodes or (path not in self._removed and self._fs.exists(path))

    def _node(self, path: str) -> _Node:
        node = self._nodes.get(path)
        if node is None:
            if not self._has(path):
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            node = self._nodes[path] = _Node(self._fs, path)
        return node

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        if create and not self._has(path):
            self._nodes[path] = _Node(self._fs, None)
        return _RehearsalFile(path, self._node(path))

    def exists(self, path: str) -> bool:
        return self._has(path)

    def is_dir(self, path: str) -> bool:
        return self._fs.is_dir(path)

    def list_dir(self, path: str) -> list[str]:
        names = {name for name in self._fs.list_dir(path) if f"{path}/{name}" not in self._removed}
        names.update(file_name(other) for other in self._nodes if parent_dir(other) == path)
        return sorted(names)

    def sizes(self, path: str, *, unasked: str = "") -> dict[str, int]:
        found = self._fs.sizes(path, unasked=unasked)
        gone = {name for name in found if join(path, name) in self._removed}
        there = {name: size for name, size in found.items() if name not in gone}
        for other, node in self._nodes.items():
            if parent_dir(other) == path:
                there[file_name(other)] = node.length
        return dict(sorted(there.items()))

    def make_dirs(self, path: str) -> None:
        pass

    def rename(self, old: str, new: str) -> None:
        node = self._node(old)
        del self._nodes[old]
        self._removed.add(old)
        self._nodes[new] = node
        self._removed.discard(new)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        if not self._has(path):
            if missing_ok:
                return
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        self._nodes.pop(path, None)
        self._removed.add(path)

    def remove_tree(self, path: str) -> None:
        raise OSError(errno.EROFS, "a rehearsal removes no directories", path)

    def fsync_dir(self, path: str) -> None:
        pass

    def size(self, path: str) -> int:
        return self._node(path).length

    def mtime_ms(self, path: str) -> int:
        source = self._node(path).source
        return 0 if source is None else self._fs.mtime_ms(source)

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        pass

    def read_bytes(self, path: str) -> bytes:
        node = self._node(path)
        return node.read(node.length, 0)

    def write_atomic(self, path: str, pieces: Iterable[bytes]) -> None:
        node = _Node(self._fs, None)
        node.write(b"".join(pieces), 0)
        self._nodes[path] = node
        self._removed.discard(path)

    def lock(self, path: str) -> File | None:
        raise OSError(errno.EROFS, "a rehearsal takes no locks", path)

    def usage(self, path: str) -> tuple[int, int]:
        return self._fs.usage(path)

    # Changes.

    def changes(self) -> list[Change]:
        """The differences from the disk, sorted by path."""
        return sorted(self._changes(), key=lambda change: change.path)

    def _changes(self) -> Iterator[Change]:
        moved = {}
        for path, node in self._nodes.items():
            if node.source is not None and node.source != path and node.is_original:
                moved[node.source] = path
        for path in self._removed - self._nodes.keys():
            if self._fs.exists(path):
                to = moved.get(path)
                kind = ChangeKind.REMOVED if to is None else ChangeKind.RENAMED
                size = self._fs.size(path)
                after = None if to is None else self._nodes[to].length
                yield Change(kind=kind, path=path, before=size, after=after, renamed_to=to)
        for path, node in self._nodes.items():
            if path in moved.values() and not self._fs.exists(path):
                continue  # reported with its old name
            change = self._difference(path, node)
            if change is not None:
                yield change

    def _difference(self, path: str, node: _Node) -> Change | None:
        if not self._fs.exists(path):
            return Change(kind=ChangeKind.CREATED, path=path, before=None, after=node.length)
        before = self._fs.size(path)
        if node.source == path and node.is_original:
            same = True
        else:
            same = self._begins_with(path, node)
        if same and before == node.length:
            return None
        if node.is_original and node.source != path:
            kind = ChangeKind.REPLACED
        else:
            kind = ChangeKind.CUT if same and node.length < before else ChangeKind.REWRITTEN
        return Change(kind=kind, path=path, before=before, after=node.length)

    def _begins_with(self, path: str, node: _Node) -> bool:
        file = self._fs.open(path, writable=False)
        try:
            for position in range(0, node.length, _COMPARE):
                size = min(_COMPARE, node.length - position)
                if file.pread(size, position) != node.read(size, position):
                    return False
        finally:
            file.close()
        return True
