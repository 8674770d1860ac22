"""A file system with a journal, from which every state after a power loss can be built.

    fs = RecordingFileSystem(before)         what stands in `before` is on the disk
    … work …
    PowerLoss(fs).state(k, random)           the disk after a power loss that followed operation k

`tests.support.torn_content` defines the legal states.
"""

import os
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from posixpath import normpath
from random import Random
from typing import Any, NamedTuple

from storage.memory_filesystem import Inode, _split
from tests.support.faulty_filesystem import FaultyFileSystem, UnreliableFile
from tests.support.torn_content import Chance, Everything, NamesOnly, Nothing, Op


class NameOp(NamedTuple):
    """One atomic change of a directory: name -> node, None for a name that is removed."""

    at: int
    changes: tuple[tuple[str, "Node | None"], ...]


class Node:
    """A file or directory with its history, under whatever names it has."""

    def __init__(self, content: bytes | None = None) -> None:
        self.is_dir = content is None
        self.ops: list[Op] = []
        self.synced: list[tuple[int, bytes]] = [(-1, content or b"")]
        self.entries: dict[str, Node] = {}
        self.name_ops: list[NameOp] = []
        self.synced_names: list[tuple[int, dict[str, Node]]] = [(-1, {})]

    def __repr__(self) -> str:
        return f"Node({'directory' if self.is_dir else 'file'}, {len(self.ops)} operations)"


@dataclass(frozen=True)
class Recorded:
    """One line of the journal, for people: the operation at this number."""

    operation: str
    path: str


class RecordingFile(UnreliableFile):
    """A file that reports its operations to the file system."""

    __slots__ = ()

    _fs: "RecordingFileSystem"

    def _try(self, operation: str, data: bytes, position: int) -> None:
        super()._try(operation, data, position)
        self._fs._content(self, operation, position, data)

    def truncate(self, size: int) -> None:
        super().truncate(size)
        self._fs._content(self, "truncate", size, None)

    def allocate(self, size: int) -> None:
        before = self.inode.length
        super().allocate(size)
        if self.inode.length > before:
            self._fs._content(self, "allocate", self.inode.length, None)

    def fsync(self) -> None:
        super().fsync()
        self._fs._synced(self)


class RecordingFileSystem(FaultyFileSystem):
    """A disk that records all operations, in order, in `journal`."""

    def __init__(self, before: FaultyFileSystem | None = None) -> None:
        super().__init__()
        self.journal: list[Recorded] = []
        self.root = Node()
        self._nodes: dict[int, Node] = {}
        self._inodes: dict[int, Inode] = {}
        if before is not None:
            self.total_bytes, self.now_ms = before.total_bytes, before.now_ms
            for path in sorted(before._directories):
                if path not in ("/", "."):
                    self._make_parents(path)
                    self._directory(path)
            for path, inode in before._files():
                content = inode.content()
                self.write_bytes(path, content)
                copy = self._inode(path)
                copy.mtime_ms = inode.mtime_ms
                node = self._node_of(copy, content)
                self._directory(_parent_of(path)).entries[os.path.basename(path)] = node
        self._settle(self.root)

    def _settle(self, directory: Node) -> None:
        """Take the current content of a directory as durable."""
        directory.synced_names = [(-1, dict(directory.entries))]
        directory.name_ops = []
        for node in directory.entries.values():
            if node.is_dir:
                self._settle(node)

    # --- recording

    @property
    def now(self) -> int:
        """The number of recorded operations."""
        return len(self.journal)

    def _record(self, operation: str, path: str) -> int:
        self.journal.append(Recorded(operation, path))
        return self.now - 1

    def _node_of(self, inode: Inode, content: bytes = b"") -> Node:
        node = self._nodes.get(id(inode))
        if node is None:
            node = self._nodes[id(inode)] = Node(content)
            self._inodes[id(inode)] = inode  # kept alive, so that its id stays unique
        return node

    def _content(
        self, file: RecordingFile, operation: str, position: int, data: bytes | None
    ) -> None:
        node = self._node_of(file.inode)
        at = self._record(operation, file.path)
        node.ops.append(Op(at, position, data))

    def _synced(self, file: RecordingFile) -> None:
        at = self._record("fsync", file.path)
        self._node_of(file.inode).synced.append((at, file.inode.content()))

    def _directory(self, path: str) -> Node:
        """Return the directory's node; make it and its parents if there is none yet."""
        node = self.root
        for name in _names(path):
            if name not in node.entries:
                node.entries[name] = Node()
            node = node.entries[name]
        return node

    def _change(self, operation: str, path: str, *changes: tuple[str, Node | None]) -> None:
        """Record one atomic change of names in the directory of `path`; changes have full paths."""
        at = self._record(operation, path)
        directory = self._directory(_parent_of(path))
        named = tuple((os.path.basename(name), node) for name, node in changes)
        directory.name_ops.append(NameOp(at, named))
        _change(directory.entries, named)

    # --- the interface

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> RecordingFile:
        path = normpath(path)
        is_new = self._find(path) is None
        file = super().open(path, create=create, writable=writable)
        if is_new:
            self._change("create", path, (path, self._node_of(file.inode)))
        return RecordingFile(self, path, file.inode, writable)

    def make_dirs(self, path: str) -> None:
        path = normpath(path)
        missing: list[str] = []
        at = path
        while at not in self._directories:
            missing.append(at)
            at = _parent_of(at)
        super().make_dirs(path)
        for one in reversed(missing):
            self._change("make_dirs", one, (one, Node()))

    def rename(self, old: str, new: str) -> None:
        old, new = normpath(old), normpath(new)
        super().rename(old, new)
        assert _parent_of(old) == _parent_of(new), "a rename between directories is not modelled"
        node = self._directory(_parent_of(old)).entries[os.path.basename(old)]
        self._change("rename", old, (old, None), (new, node))

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        path = normpath(path)
        there = self._find(path) is not None
        super().unlink(path, missing_ok=missing_ok)
        if there:
            self._change("unlink", path, (path, None))

    def remove_tree(self, path: str) -> None:
        path = normpath(path)
        everything = (*(name for name, _ in self._files()), *self._directories)
        inside = sorted((p for p in everything if p.startswith(path + "/")), reverse=True)
        super().remove_tree(path)
        for one in (*inside, path):
            self._change("unlink", one, (one, None))

    def fsync_dir(self, path: str) -> None:
        super().fsync_dir(path)
        at = self._record("fsync_dir", normpath(path))
        directory = self._directory(normpath(path))
        directory.synced_names.append((at, dict(directory.entries)))


class PowerLoss:
    """Builds any number of legal states after a power loss, from one journal."""

    def __init__(self, fs: RecordingFileSystem) -> None:
        self._fs = fs
        self.last = fs.now

    def kept(self, at: int) -> FaultyFileSystem:
        """Build the state after the process died at operation `at`: all is kept."""
        return self._build(at, Everything())

    def lost(self, at: int) -> FaultyFileSystem:
        """Build the state with only what was synced."""
        return self._build(at, Nothing())

    def names(self, at: int) -> FaultyFileSystem:
        """Build the state with all names, and with the contents that were synced."""
        return self._build(at, NamesOnly())

    def state(self, at: int, random: Random) -> FaultyFileSystem:
        """Build a random legal state: operations 0 to `at` - 1 were begun, synced data is kept."""
        return self._build(at, Chance(random))

    def _build(self, at: int, choice: "Everything") -> FaultyFileSystem:
        after = FaultyFileSystem(total_bytes=self._fs.total_bytes)
        after.now_ms = self._fs.now_ms
        self._fill(after, "", self._fs.root, at, choice)
        return after

    def _fill(
        self, after: FaultyFileSystem, path: str, directory: Node, at: int, choice: "Everything"
    ) -> None:
        synced, entries = _last_before(directory.synced_names, at)
        pending = _between(directory.name_ops, synced, at)
        entries = dict(entries)
        for op in pending[: choice.names(len(pending))]:
            _change(entries, op.changes)
        for name, node in entries.items():
            inside = f"{path}/{name}"
            if node.is_dir:
                after._make_parents(inside)
                self._fill(after, inside, node, at, choice)
            else:
                synced, content = _last_before(node.synced, at)
                ops = _between(node.ops, synced, at)
                after.write_bytes(inside, choice.content(content, ops) if ops else content)


def _change(entries: dict[str, Node], changes: Iterable[tuple[str, Node | None]]) -> None:
    for name, node in changes:
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


def _last_before(history: list[Any], at: int) -> Any:
    return history[bisect_left(history, at, key=lambda entry: entry[0]) - 1]


def _between(ops: list[Any], after: int, at: int) -> list[Any]:
    first = bisect_left(ops, after + 1, key=lambda op: op.at)
    return ops[first : bisect_left(ops, at, key=lambda op: op.at)]


def _parent_of(path: str) -> str:
    return _split(path)[0]


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name and name != "."]
