"""Which leader wrote which part of a log: leader epochs and the offsets at which they began.

File `leader-epoch-checkpoint` in the partition's directory, a checkpoint (`storage.checkpoint`)
with one `<epoch> <start offset>` per line, both rising strictly.

Changes are kept in memory until `flush`, which the log calls before its recovery point moves: above
that point recovery learns the epochs from the batches again, and when a log is loaded, epochs
outside of it are cut off (S-REC-6). So no append ever waits for this file (decision 14). (Kafka's
LeaderEpochFileCache writes and syncs it with each new epoch.)

A flush in steps (`begin_flush`) is part of the log's flush. It writes the table as it was when the
flush began: a table is immutable, and each change replaces it.
"""

from bisect import bisect_left, bisect_right
from functools import partial
from random import Random
from typing import Final, NamedTuple

from protocol.types import NO_LEADER_EPOCH
from storage.checkpoint import encode_entries, number, read_entries
from storage.errors import CheckpointError
from storage.filesystem import FileSystem
from storage.paths import file_name, join
from storage.replaced_file import ReplacedFile, Replacement
from storage.waits import at_once

UNDEFINED_EPOCH: Final = -1
UNDEFINED_EPOCH_OFFSET: Final = -1


class EpochEntry(NamedTuple):
    """A leader epoch and the first offset written in it."""

    epoch: int
    start_offset: int


Table = tuple[tuple[int, ...], tuple[int, ...]]
"""Epochs and their start offsets, both ascending."""

_NO_EPOCHS: Final[Table] = ((), ())


def read_epochs(fs: FileSystem, path: str) -> list[EpochEntry]:
    """The entries of the file at `path`; none if it is absent. Raises CheckpointError, OSError."""
    return _entries(_read(fs, path))


class LeaderEpochCache:
    """The epochs of one log. Raises CheckpointError, OSError when the file cannot be read."""

    __slots__ = ("_file", "_table", "_written", "latest")

    latest: int
    """The epoch being written, -1 when none is known. Each append compares with it."""

    def __init__(self, fs: FileSystem, path: str, random: Random) -> None:
        self._file = ReplacedFile(fs, path, random)
        self._set(_read(fs, path))
        self._written: Table | None = self._table
        """The table that the file holds, even after a crash; None while it may be one of two."""

    @property
    def path(self) -> str:
        """Path of the file."""
        return self._file.path

    @property
    def _epochs(self) -> tuple[int, ...]:
        return self._table[0]

    @property
    def _starts(self) -> tuple[int, ...]:
        return self._table[1]

    def _set(self, table: Table) -> None:
        self._table = table
        self.latest = table[0][-1] if table[0] else NO_LEADER_EPOCH

    @property
    def is_empty(self) -> bool:
        """Whether no epoch is known: a log of old message formats, or a new one."""
        return not self._epochs

    @property
    def entries(self) -> list[EpochEntry]:
        """All epochs, ascending."""
        return _entries(self._table)

    @property
    def latest_epoch(self) -> int | None:
        """The epoch being written."""
        return self._epochs[-1] if self._epochs else None

    @property
    def earliest_entry(self) -> EpochEntry | None:
        """The first epoch that still has records."""
        return EpochEntry(self._epochs[0], self._starts[0]) if self._epochs else None

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch in which the record at `offset` was written; None below the first."""
        slot = bisect_right(self._starts, offset)
        return self._epochs[slot - 1] if slot else None

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The end of the records of `epoch` in this log (S-READ-12): (epoch, end offset).

        A. the undefined epoch, or one above the latest: (-1, -1).
        B. the latest epoch: the log end offset.
        C. below every known epoch: the asked epoch and where the first known one begins, because
           earlier records are gone.
        D. otherwise: the largest known epoch not above it, and where the next one begins.
        """
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET  # A
        if epoch == self.latest_epoch:
            return epoch, log_end_offset  # B
        higher = bisect_right(self._epochs, epoch)
        if higher == len(self._epochs):
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET  # A
        if higher == 0:
            return epoch, self._starts[0]  # C
        return self._epochs[higher - 1], self._starts[higher]  # D

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` begins at `start_offset`; True when the table changed. See `flush`.

        Entries that contradict it (same or higher epoch, same or higher start) are dropped. Raises
        ValueError for negative numbers.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"{self.path}: invalid leader epoch {epoch} at {start_offset}")
        before = self._table
        self._set(_assigned(before, epoch, start_offset))
        return self._table != before

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drop epochs that begin at or above `end_offset`; True when any did. See `flush`."""
        if end_offset < 0:
            return False
        epochs, starts = self._table
        keep = bisect_left(starts, end_offset)
        if keep == len(starts):
            return False
        self._set((epochs[:keep], starts[:keep]))
        return True

    def truncate_from_start(self, start_offset: int) -> bool:
        """Drop epochs that end at or below `start_offset`; the one that holds it begins there now.

        True when something changed. See `flush`.
        """
        epochs, starts = self._table
        covering = bisect_right(starts, start_offset) - 1
        if covering < 0 or (covering == 0 and starts[0] == start_offset):
            return False
        self._set((epochs[covering:], (start_offset, *starts[covering + 1 :])))
        return True

    def clear(self) -> None:
        """Forget every epoch. See `flush`."""
        self._set(_NO_EPOCHS)

    def flush(self) -> None:
        """Write the table here and now, durably, if the file does not hold it. Raises OSError."""
        table = self._table
        if table != self._written:
            self._written = None
            at_once(self._file.begin(partial(_encode, table)).finish())
            self._written = table

    def begin_flush(self) -> "EpochFlush | None":
        """`flush` in the parts of a `Replacement`; None when the file holds the table."""
        table = self._table
        if table == self._written:
            return None
        return EpochFlush(self, table, self._file.begin(partial(_encode, table)))

    def update_parent_dir(self, directory: str) -> None:
        """The partition directory was renamed."""
        self._file.path = join(directory, file_name(self._file.path))

    def _check(self) -> None:
        assert len(self._epochs) == len(self._starts)
        assert self.latest == (self._epochs[-1] if self._epochs else NO_LEADER_EPOCH)
        assert list(self._epochs) == sorted(set(self._epochs))
        assert list(self._starts) == sorted(set(self._starts))
        assert all(value >= 0 for value in self._epochs + self._starts)


class EpochFlush:
    """The table of one moment on its way into the file; see `storage.replaced_file`."""

    __slots__ = ("_cache", "_table", "replacement")

    def __init__(self, cache: LeaderEpochCache, table: Table, replacement: Replacement) -> None:
        self._cache = cache
        self._table = table
        self.replacement = replacement

    def install(self) -> None:
        """Give the written file its name. On the loop. Raises OSError."""
        self.replacement.install()
        if self.replacement.is_in_place:
            # Until the name is synced a crash may bring the old file back.
            self._cache._written = None

    def settle(self) -> None:
        """Note that the table is durable. On the loop, after the directory was synced."""
        if self.replacement.is_in_place:
            self._cache._written = self._table


def _read(fs: FileSystem, path: str) -> Table:
    table = _NO_EPOCHS
    for entry in read_entries(fs, path, _parse):
        if min(entry) < 0:
            raise CheckpointError(path, 0, f"invalid leader epoch {entry[0]} at {entry[1]}")
        table = _assigned(table, *entry)
    return table


def _assigned(table: Table, epoch: int, start_offset: int) -> Table:
    """The table in which `epoch` begins at `start_offset`, without the entries that contradict it;
    the same table if that is known already."""
    epochs, starts = table
    if epochs and epoch == epochs[-1] and start_offset >= starts[-1]:
        return table
    keep = min(bisect_left(epochs, epoch), bisect_left(starts, start_offset))
    return (*epochs[:keep], epoch), (*starts[:keep], start_offset)


def _entries(table: Table) -> list[EpochEntry]:
    return [EpochEntry(*pair) for pair in zip(*table, strict=True)]


def _encode(table: Table) -> bytes:
    return encode_entries(f"{epoch} {start}" for epoch, start in zip(*table, strict=True))


def _parse(words: list[str]) -> tuple[int, int] | None:
    if len(words) != 2:
        return None
    return number(words[0], bits=32), number(words[1], bits=64)
