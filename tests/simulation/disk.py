"""The disk of a simulated broker: it may fail, and it forgets what was not synced.

Between two syncs of a file it remembers what was done to it, and of a directory which names came
and went: `after_power_loss` draws one of the legal states from that (`tests.support.torn_content`).
`after_kill` is the same disk, with the same unsynced writes, as another object: the old one refuses
all operations of the dead broker's tasks.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.support.faulty_filesystem import Directory, FaultyFileSystem, UnsyncedInode
from tests.support.torn_content import Chance, Everything

CHANGES: Final = frozenset(
    ("pwrite", "pwritev", "truncate", "fsync", "rename", "unlink", "remove_tree", "fsync_dir")
)
"""Operations between which a crash makes a difference."""

Failure = Callable[[str, str], OSError | None]
"""(operation, path) -> the error to raise."""


class Stopped(OSError):
    """The machine stopped at this very operation; the broker that gets this error is dead."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ESHUTDOWN, os.strerror(errno.ESHUTDOWN), path)


@dataclass(slots=True)
class Strike:
    """A stop of the machine that is to come in the middle of its work."""

    left: int
    """The number of `CHANGES` that still go through."""
    suffix: str
    """The suffix of the files that count."""
    happen: Callable[[], None]


class SimulatedDisk(FaultyFileSystem):
    """A disk in memory, in whose operations the plan's failures happen."""

    def __init__(self, now_ms: Callable[[], int], random: Random) -> None:
        super().__init__(now_ms)
        self.random = random
        self.failure: Failure | None = None
        """Called before every operation that changes or reads something."""
        self.strike: Strike | None = None

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

    def _done_before(self, error: OSError, size: int) -> int | None:
        """A write that fails may have put down a part, and the one that a stop hits is whole."""
        if isinstance(error, Stopped):
            return size
        return None if error.errno == errno.ESHUTDOWN else self.random.randint(0, size)

    # --- after the end of a broker

    def after_kill(self) -> "SimulatedDisk":
        """Return the disk after a kill: all writes are there, unsynced ones may still be lost."""
        after = SimulatedDisk(self._now_ms, self.random)
        after._directories, after._tree = self._directories, self._tree
        for _, inode in self._files():
            inode.lock_holder = None
        self._directories = {"/": {}, ".": {}}
        self._tree = {"/": Directory(), ".": Directory()}
        self.failure = is_dead
        return after

    def after_power_loss(self, random: Random) -> "SimulatedDisk":
        """Return a legal state: all that was synced, and any part of the rest."""
        after = SimulatedDisk(self._now_ms, self.random)
        after._fill("/", self._tree["/"], Chance(random, hollow=0.7))
        self.failure = is_dead
        return after

    def _fill(self, path: str, directory: Directory, choice: Everything) -> None:
        """Make what is left of `directory` at `path`."""
        copy = self._tree[path]
        entries = self._directories[path]
        for name, node in directory.left(choice).items():
            if isinstance(node, Directory):
                below = f"/{name}" if path == "/" else f"{path}/{name}"
                self._make_directory(below)
                self._fill(below, node, choice)
            else:
                inode = UnsyncedInode(node.mtime_ms)
                inode.write(node.left(choice), 0)
                entries[name] = copy.names[name] = inode
        copy.sync()


def is_dead(operation: str, path: str) -> OSError:
    """The `Failure` of a disk whose broker is dead."""
    return disk_error(errno.ESHUTDOWN, path)


def disk_error(code: int, path: str) -> OSError:
    """Return the error as the operating system raises it."""
    return OSError(code, os.strerror(code), path)
