"""The disk of a simulated broker: it may fail, and it forgets what was not synced.

Between two syncs of a file it remembers what was done to it, and of a directory which names came
and went: `after_power_loss` draws one of the legal states from that (`tests.support.torn_content`).
`after_kill` is the same disk, still owing what it owed, in other hands: whoever holds the old
object (a task of the dead broker) can do nothing with it any more.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from posixpath import normpath
from random import Random
from typing import Final

from storage.memory_filesystem import Inode, MemoryFile, MemoryFileSystem, Piece, _split
from tests.support.torn_content import Chance, Everything, Op

CHANGES: Final = frozenset(
    ("pwrite", "pwritev", "truncate", "fsync", "rename", "unlink", "remove_tree", "fsync_dir")
)
"""Operations between which a crash makes a difference."""

Failure = Callable[[str, str], OSError | None]
"""(operation, path) -> what it is to raise."""


class Stopped(OSError):
    """The machine stopped at this very operation; whoever sees this does not live any more."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ESHUTDOWN, os.strerror(errno.ESHUTDOWN), path)


@dataclass(slots=True)
class Strike:
    """The machine is going to stop in the middle of its work."""

    left: int
    """Of `CHANGES` that still go through."""
    suffix: str
    """Of the files that count."""
    happen: Callable[[], None]


class UnsyncedInode(Inode):
    """What was done since the last sync, and what was there then."""

    __slots__ = ("base", "ops")

    def __init__(self, mtime_ms: int) -> None:
        super().__init__(mtime_ms)
        self.base = b""
        self.ops: list[Op] = []

    def note(self, position: int, data: bytes | None) -> None:
        """About to write `data` at `position`, or to truncate to it."""
        if not self.ops:
            self.base = self.content()
        self.ops.append(Op(len(self.ops), position, data))

    def sync(self) -> None:
        """All of it is on the disk."""
        self.ops.clear()
        self.base = b""

    def after_power_loss(self, choice: Everything) -> "UnsyncedInode":
        """The file as it is found then."""
        content = self._left(choice)
        inode = UnsyncedInode(self.mtime_ms)
        inode.write(content, 0)
        return inode

    def _left(self, choice: Everything) -> bytes:
        return choice.content(self.base, self.ops) if self.ops else self.content()


class SimulatedFile(MemoryFile):
    """Tells its inode what it does."""

    __slots__ = ()

    inode: UnsyncedInode
    _fs: "SimulatedDisk"

    def pwrite(self, data: Piece, position: int) -> None:
        self._try("pwrite", bytes(data), position)

    def pwritev(self, pieces: list[Piece], position: int) -> None:
        self._try("pwritev", b"".join(pieces), position)

    def _try(self, operation: str, data: bytes, position: int) -> None:
        try:
            self._writing(operation)
        except Stopped:
            self.inode.note(position, data)
            self._put(data, position)
            raise
        except OSError as error:
            if error.errno == errno.ESHUTDOWN:
                raise  # of a dead process
            # A write that fails may have put down a part.
            part = data[: self._fs.random.randint(0, len(data))]
            self.inode.note(position, part)
            self._put(part, position)
            raise
        self.inode.note(position, data)
        self._put(data, position)

    def truncate(self, size: int) -> None:
        self._writing("truncate")
        self.inode.note(size, None)
        self.inode.resize(size)
        self.inode.mtime_ms = self._fs._now_ms()

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


@dataclass(eq=False, slots=True)
class Directory:
    """Names as they are, as they were synced, and what came between."""

    names: Names = field(default_factory=dict)
    synced: Names = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    def change(self, *named: tuple[str, "UnsyncedInode | Directory | None"]) -> None:
        """One atomic step."""
        self.changes.append(named)
        _apply(self.names, named)

    def sync(self) -> None:
        """What is here now stays here."""
        self.synced = dict(self.names)
        self.changes.clear()

    def after_power_loss(self, choice: Everything) -> Names:
        """The names that are left."""
        names = dict(self.synced)
        for change in self.changes[: choice.names(len(self.changes))]:
            _apply(names, change)
        return names


class SimulatedDisk(MemoryFileSystem):
    """A disk in memory, in whose operations the plan's failures happen."""

    def __init__(self, now_ms: Callable[[], int], random: Random) -> None:
        super().__init__(now_ms)
        self.random = random
        self.failure: Failure | None = None
        """Asked ahead of every operation that changes something, or reads."""
        self.strike: Strike | None = None
        self._tree = {"/": Directory()}

    def _before(self, operation: str, path: str) -> None:
        strike = self.strike
        if strike is not None and operation in CHANGES and path.endswith(strike.suffix):
            strike.left -= 1
            if strike.left < 0:
                self.strike = None
                strike.happen()
                raise Stopped(path)
        if self.failure is not None:
            error = self.failure(operation, path)
            if error is not None:
                raise error

    # --- the interface

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> SimulatedFile:
        file = super().open(path, create=create, writable=writable)
        return SimulatedFile(self, file.path, file.inode, writable)

    def _make_file(self, path: str) -> UnsyncedInode:
        inode = UnsyncedInode(self._now_ms())
        parent, name = _split(path)
        self._directories[parent][name] = inode
        self._tree[parent].change((name, inode))
        return inode

    def _make_directory(self, path: str) -> None:
        super()._make_directory(path)
        parent, name = _split(path)
        self._tree[path] = Directory()
        self._tree[parent].change((name, self._tree[path]))

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        old, new = normpath(old), normpath(new)
        (parent, name), (target, new_name) = _split(old), _split(new)
        assert parent == target, "a rename between directories is not modelled"
        node = self._tree[parent].names[name]
        self._tree[parent].change((name, None), (new_name, node))
        if isinstance(node, Directory):
            for path in [p for p in self._tree if p == old or p.startswith(old + "/")]:
                self._tree[new + path[len(old) :]] = self._tree.pop(path)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        path = normpath(path)
        there = self._find(path) is not None
        super().unlink(path, missing_ok=missing_ok)
        if there:
            parent, name = _split(path)
            self._tree[parent].change((name, None))

    def remove_tree(self, path: str) -> None:
        path = normpath(path)
        super().remove_tree(path)
        for one in sorted(p for p in self._tree if p == path or p.startswith(path + "/"))[::-1]:
            directory = self._tree.pop(one)
            for name in sorted(directory.names):
                directory.change((name, None))
        parent, name = _split(path)
        self._tree[parent].change((name, None))

    def fsync_dir(self, path: str) -> None:
        super().fsync_dir(path)
        self._tree[normpath(path)].sync()

    # --- what becomes of it

    def after_kill(self) -> "SimulatedDisk":
        """The process died: everything is there, and what was not synced may still be lost."""
        after = SimulatedDisk(self._now_ms, self.random)
        after._directories, after._tree = self._directories, self._tree
        for _, inode in self._files():
            inode.lock_holder = None
        self._directories, self._tree = {"/": {}, ".": {}}, {"/": Directory()}
        self.failure = is_dead
        return after

    def after_power_loss(self, random: Random) -> "SimulatedDisk":
        """Some legal state: all that was synced is there, and any part of the rest."""
        after = SimulatedDisk(self._now_ms, self.random)
        after._fill("/", self._tree["/"], Chance(random, hollow=0.7))
        self.failure = is_dead
        return after

    def _fill(self, path: str, directory: Directory, choice: Everything) -> None:
        """Make what is left of `directory` at `path`."""
        copy = self._tree[path]
        entries = self._directories[path]
        for name, node in directory.after_power_loss(choice).items():
            if isinstance(node, Directory):
                below = f"/{name}" if path == "/" else f"{path}/{name}"
                self._make_directory(below)
                self._fill(below, node, choice)
            else:
                entries[name] = copy.names[name] = node.after_power_loss(choice)
        copy.sync()


def _apply(names: Names, change: Change) -> None:
    for name, node in change:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def is_dead(operation: str, path: str) -> OSError:
    """The `Failure` of a disk whose broker is dead."""
    return disk_error(errno.ESHUTDOWN, path)


def disk_error(code: int, path: str) -> OSError:
    """As the operating system says it."""
    return OSError(code, os.strerror(code), path)


FULL, BROKEN = errno.ENOSPC, errno.EIO
