"""Which leader wrote which part of a log: leader epochs and the offsets at which they began.

File `leader-epoch-checkpoint` in the partition's directory, a checkpoint (`storage.checkpoint`)
with one `<epoch> <start offset>` per line, both rising strictly.

A new epoch is durable before its first record counts (`assign` writes and syncs). Cutting the log
only removes entries, so that may be written later (`flush`): what a crash brings back is cut off
again when the log is loaded (S-REC-6). Kafka's LeaderEpochFileCache.

Only `storage.log` and replication use this; not thread-safe.
"""

from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

from storage.checkpoint import read_entries, write_entries
from storage.filesystem import FileSystem
from storage.paths import file_name, join

UNDEFINED_EPOCH: Final = -1
UNDEFINED_EPOCH_OFFSET: Final = -1


class EpochEntry(NamedTuple):
    """A leader epoch and the first offset written in it."""

    epoch: int
    start_offset: int


class LeaderEpochCache:
    """The epochs of one log. Raises CheckpointError, OSError when the file cannot be read."""

    __slots__ = ("_dirty", "_epochs", "_fs", "_starts", "path")

    def __init__(self, fs: FileSystem, path: str) -> None:
        self._fs = fs
        self.path = path
        self._epochs: list[int] = []
        self._starts: list[int] = []
        for entry in read_entries(fs, path, _parse):
            self._assign(*entry)
        self._dirty = False

    @property
    def is_dirty(self) -> bool:
        """Whether the file holds more than the cache."""
        return self._dirty

    @property
    def is_empty(self) -> bool:
        """Whether no epoch is known: a log of old message formats, or a new one."""
        return not self._epochs

    @property
    def entries(self) -> list[EpochEntry]:
        """All epochs, ascending."""
        return [EpochEntry(*pair) for pair in zip(self._epochs, self._starts, strict=True)]

    @property
    def latest_epoch(self) -> int | None:
        """The epoch being written."""
        return self._epochs[-1] if self._epochs else None

    @property
    def latest_entry(self) -> EpochEntry | None:
        """The epoch being written and where it began."""
        return EpochEntry(self._epochs[-1], self._starts[-1]) if self._epochs else None

    @property
    def earliest_entry(self) -> EpochEntry | None:
        """The first epoch that still has records."""
        return EpochEntry(self._epochs[0], self._starts[0]) if self._epochs else None

    def previous_epoch(self, epoch: int) -> int | None:
        """The largest known epoch below `epoch`."""
        slot = bisect_left(self._epochs, epoch)
        return self._epochs[slot - 1] if slot else None

    def next_epoch(self, epoch: int) -> int | None:
        """The smallest known epoch above `epoch`."""
        slot = bisect_right(self._epochs, epoch)
        return self._epochs[slot] if slot < len(self._epochs) else None

    def start_offset_of(self, epoch: int) -> int | None:
        """Where `epoch` began; None when it is not known."""
        slot = bisect_left(self._epochs, epoch)
        if slot < len(self._epochs) and self._epochs[slot] == epoch:
            return self._starts[slot]
        return None

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch in which the record at `offset` was written; None below the first."""
        slot = bisect_right(self._starts, offset)
        return self._epochs[slot - 1] if slot else None

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Where the records of `epoch` end in this log (S-READ-12): (epoch, end offset).

        A. the undefined epoch, or one above the latest: (-1, -1).
        B. the latest epoch: the log end offset.
        C. below every known epoch: the asked epoch and where the first one begins, as what lies
           before is gone.
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
        """`epoch` begins at `start_offset`; True when that was news (then it is durable now).

        An entry that contradicts it (same or higher epoch, same or higher start) is dropped.
        Raises ValueError for negative numbers, OSError.
        """
        epochs = self._epochs
        if epochs and epoch == epochs[-1] and start_offset >= self._starts[-1]:
            return False  # the append path's usual answer
        if not self._assign(epoch, start_offset):
            return False
        self._write()
        return True

    def _assign(self, epoch: int, start_offset: int) -> bool:
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"{self.path}: invalid leader epoch {epoch} at {start_offset}")
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]:
            return False
        keep = min(bisect_left(self._epochs, epoch), bisect_left(self._starts, start_offset))
        self._epochs[keep:] = [epoch]
        self._starts[keep:] = [start_offset]
        return True

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drop epochs that begin at or above `end_offset`; True when any did. See `flush`."""
        if end_offset < 0:
            return False
        keep = bisect_left(self._starts, end_offset)
        if keep == len(self._starts):
            return False
        del self._epochs[keep:]
        del self._starts[keep:]
        self._dirty = True
        return True

    def truncate_from_start(self, start_offset: int) -> bool:
        """Drop epochs that end at or below `start_offset`; the one it lies in begins there now.

        True when something changed. See `flush`.
        """
        covering = bisect_right(self._starts, start_offset) - 1
        if covering < 0 or (covering == 0 and self._starts[0] == start_offset):
            return False
        del self._epochs[:covering]
        del self._starts[:covering]
        self._starts[0] = start_offset
        self._dirty = True
        return True

    def clear(self) -> None:
        """Forget every epoch, durably. Raises OSError."""
        self._epochs.clear()
        self._starts.clear()
        self._write()

    def flush(self) -> None:
        """Write what truncation has changed, if anything. Raises OSError."""
        if self._dirty:
            self._write()

    def _write(self) -> None:
        lines = [f"{e} {s}" for e, s in zip(self._epochs, self._starts, strict=True)]
        write_entries(self._fs, self.path, lines)
        self._dirty = False

    def update_parent_dir(self, directory: str) -> None:
        """The partition directory was renamed."""
        self.path = join(directory, file_name(self.path))

    def _check(self) -> None:
        assert len(self._epochs) == len(self._starts)
        assert self._epochs == sorted(set(self._epochs))
        assert self._starts == sorted(set(self._starts))
        assert all(value >= 0 for value in self._epochs + self._starts)


def _parse(words: list[str]) -> tuple[int, int] | None:
    if len(words) != 2:
        return None
    return int(words[0]), int(words[1])
