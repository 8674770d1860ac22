"""A file system with a journal, from which every state after a power loss can be built.

    fs = RecordingFileSystem(before)         what stands in `before` is on the disk
    … work …
    PowerLoss(fs).state(k, random)           the disk after a power loss that followed operation k

`tests.support.torn_content` defines the legal states.
"""

from collections.abc import Callable
from dataclasses import dataclass
from posixpath import normpath
from random import Random
from typing import Any

from storage.memory_filesystem import _joined, _split
from tests.support.faulty_filesystem import (
    Directory,
    FaultyFileSystem,
    PathChange,
    UnreliableFile,
    UnsyncedInode,
)
from tests.support.torn_content import Chance, Everything, NamesOnly, Nothing

Node = UnsyncedInode | Directory
Picture = dict[Node, Callable[[Everything], Any]]
"""By file or directory, the content or the names that a choice leaves; without one it is empty."""


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
        self._fs._record(operation, self.path, self.inode)

    def truncate(self, size: int) -> None:
        super().truncate(size)
        self._fs._record("truncate", self.path, self.inode)

    def allocate(self, size: int) -> None:
        before = self.inode.length
        super().allocate(size)
        if self.inode.length > before:
            self._fs._record("allocate", self.path, self.inode)

    def fsync(self) -> None:
        super().fsync()
        self._fs._record("fsync", self.path, self.inode)


class RecordingFileSystem(FaultyFileSystem):
    """A disk that records all operations, in order, in `journal`."""

    file_type = RecordingFile

    def __init__(self, before: FaultyFileSystem | None = None) -> None:
        super().__init__()
        self.journal: list[Recorded] = []
        self._pictures: list[Picture] = [{}]
        """The picture ahead of each operation, and the one after the last."""
        if before is not None:
            self.total_bytes, self.now_ms = before.total_bytes, before.now_ms
            for path in sorted(before._directories):
                self._make_parents(path)
            for path, inode in before._files():
                self.write_bytes(path, inode.content())
                self._inode(path).mtime_ms = inode.mtime_ms
        self.journal.clear()
        del self._pictures[:-1]
        for directory in self._tree.values():
            directory.sync()
            self._pictures[-1][directory] = _taken(directory)

    @property
    def now(self) -> int:
        """The number of recorded operations."""
        return len(self.journal)

    def _record(self, operation: str, path: str, node: Node) -> None:
        """Note an operation that has changed `node`."""
        self.journal.append(Recorded(operation, path))
        self._pictures.append({**self._pictures[-1], node: _taken(node)})

    def _change(self, operation: str, path: str, *changes: PathChange) -> None:
        super()._change(operation, path, *changes)
        self._record(operation, path, self._tree[_split(path)[0]])

    def write_bytes(self, path: str, data: bytes) -> None:
        super().write_bytes(path, data)
        path = normpath(path)
        nodes: tuple[Any, ...] = (self._tree[_split(path)[0]], self._inode(path))
        self._pictures[-1] |= {node: _taken(node) for node in nodes}

    def fsync_dir(self, path: str) -> None:
        super().fsync_dir(path)
        self._record("fsync_dir", normpath(path), self._tree[normpath(path)])


def _taken(node: Node) -> Callable[[Everything], Any]:
    if isinstance(node, Directory):
        return Directory(synced=dict(node.synced), changes=[*node.changes]).left
    content, ops = node.durable_content(), [*node.ops]
    return lambda choice: choice.content(content, ops) if ops else content


def _empty(_: Everything) -> bytes:
    return b""


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

    def _build(self, at: int, choice: Everything) -> FaultyFileSystem:
        after = FaultyFileSystem(total_bytes=self._fs.total_bytes)
        after.now_ms = self._fs.now_ms
        self._fill(after, "/", self._fs._tree["/"], self._fs._pictures[at], choice)
        return after

    def _fill(
        self,
        after: FaultyFileSystem,
        path: str,
        directory: Directory,
        picture: Picture,
        choice: Everything,
    ) -> None:
        for name, node in picture.get(directory, Directory().left)(choice).items():
            inside = _joined(path, name)
            if isinstance(node, Directory):
                after._make_parents(inside)
                self._fill(after, inside, node, picture, choice)
            else:
                after.write_bytes(inside, picture.get(node, _empty)(choice))
