"""The snapshot files of one partition directory: listing, writing and removing them.

This knows files; `storage.producers.state` knows producers. A snapshot is named by its offset
(`storage.paths.snapshot_file`). Every method may raise OSError.

The append that rolls the log does not write a large snapshot (`storage.producers.image`): it is
`pending`, in memory, until the next flush writes it, before the rest is synced
(`storage.log.durability`). A crash before that loses it, as it may lose an unsynced one.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable
from contextlib import suppress
from random import Random
from typing import Final, NamedTuple

from storage.filesystem import FileSystem
from storage.paths import (
    DELETED_SUFFIX,
    SNAPSHOT_SUFFIX,
    file_name,
    join,
    parse_offset,
    snapshot_file,
    temporary_file,
)
from storage.producers.image import ProducerImage
from storage.producers.snapshot import write_snapshot
from storage.waits import call

MOST_PENDING: Final = 2
"""If a log rolls faster than its snapshots are written, only the newest ones are kept: each may
take tens of megabytes, and recovery can start from an older one. So no segment is deleted before a
snapshot above it is in its file (`storage.log.deleting`)."""


class PendingSnapshot(NamedTuple):
    """A pending snapshot that is being written."""

    offset: int
    image: ProducerImage
    temporary: str
    """Path of the file to write, which is then renamed if the snapshot still exists."""


class SnapshotFiles:
    """Sorted offsets of the snapshot files in `directory`.

    `names` are the directory's file names, if the caller has listed it already. `random` is for the
    names of temporary files; without it large snapshots are written at once, too.
    """

    __slots__ = ("_fs", "_offsets", "_pending", "_random", "_unsynced", "_writes", "directory")

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        names: Iterable[str] | None = None,
        random: Random | None = None,
    ) -> None:
        self._fs = fs
        self._random = random
        self.directory = directory
        self._pending: dict[int, ProducerImage] = {}
        self._offsets: list[int] = []
        self._unsynced: dict[int, int] = {}
        """Offset -> number of the write, for snapshots that a crash may still lose."""
        self._writes = 0
        self.reload(names)

    def reload(self, names: Iterable[str] | None = None) -> None:
        """List the snapshot files again, or take them from `names`."""
        if names is None:
            names = self._fs.list_dir(self.directory)
        offsets = (
            parse_offset(name.removesuffix(SNAPSHOT_SUFFIX))
            for name in names
            if name.endswith(SNAPSHOT_SUFFIX)
        )
        self._offsets = sorted(offset for offset in offsets if offset is not None)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Offsets of all snapshots, ascending."""
        return tuple(self._offsets)

    @property
    def latest(self) -> int | None:
        """Offset of the newest snapshot."""
        return self._offsets[-1] if self._offsets else None

    def path(self, offset: int) -> str:
        """The path of the snapshot at `offset`, whether that exists or not."""
        return snapshot_file(self.directory, offset)

    def __contains__(self, offset: int) -> bool:
        index = bisect_left(self._offsets, offset)
        return index < len(self._offsets) and self._offsets[index] == offset

    def write(self, offset: int, image: ProducerImage, *, sync: bool) -> None:
        """Make a snapshot of `image`: durable on return if `sync`, else after the next flush."""
        if sync or self._random is None or not image.is_large:
            write_snapshot(self._fs, self.path(offset), image.encode(), sync=sync)
            self._pending.pop(offset, None)
        else:
            self._pending[offset] = image
            if len(self._pending) > MOST_PENDING:
                self.delete(min(self._pending))
        self.add(offset, is_synced=sync)

    def add(self, offset: int, *, is_synced: bool = True) -> None:
        """Note a snapshot at `offset` that is in its file or pending."""
        if offset not in self:
            insort(self._offsets, offset)
        if not is_synced:
            self._writes += 1
            self._unsynced[offset] = self._writes

    @property
    def are_pending(self) -> bool:
        """Whether any waits to be written."""
        return bool(self._pending)

    @property
    def latest_written(self) -> int | None:
        """Offset of the newest snapshot that is in its file."""
        written = (offset for offset in reversed(self._offsets) if offset not in self._pending)
        return next(written, None)

    def pending(self, offset: int) -> ProducerImage | None:
        """The image of the snapshot at `offset`, if that is not in a file yet."""
        return self._pending.get(offset)

    async def write_pending(self, end_offset: int) -> bool:
        """Write the pending snapshots up to `end_offset`; False: there were none.

        Snapshots that are deleted or written again meanwhile are left alone.
        """
        due = [
            PendingSnapshot(
                offset, image, temporary_file(self.path(offset), random.getrandbits(64))
            )
            for offset, image in self._pending.items()
            if offset <= end_offset and (random := self._random) is not None
        ]
        if not due:
            return False
        try:
            await call(_write, self._fs, due)
        except OSError:
            for one in due:
                self._discard(one)
            raise
        for one in due:
            if self._pending.get(one.offset) is one.image:
                self._fs.rename(self._temporary(one), self.path(one.offset))
                del self._pending[one.offset]
            else:
                self._discard(one)
        return True

    def _temporary(self, one: PendingSnapshot) -> str:
        """The path of its file now: the directory may have been renamed."""
        return join(self.directory, file_name(one.temporary))

    def _discard(self, one: PendingSnapshot) -> None:
        with suppress(OSError):
            self._fs.unlink(self._temporary(one), missing_ok=True)

    def delete(self, offset: int) -> None:
        """Remove a snapshot, if it exists."""
        if offset in self:
            self._forget(offset)
            self._fs.unlink(self.path(offset), missing_ok=True)

    def _forget(self, offset: int) -> None:
        self._offsets.remove(offset)
        self._unsynced.pop(offset, None)
        self._pending.pop(offset, None)

    def delete_above(self, offset: int) -> None:
        """Remove the snapshots above `offset`."""
        for candidate in self._offsets[bisect_right(self._offsets, offset) :]:
            self.delete(candidate)

    def delete_all(self) -> None:
        """Remove every snapshot."""
        for candidate in self.offsets:
            self.delete(candidate)

    def delete_outside(self, first_offset: int, log_end_offset: int) -> None:
        """Remove the snapshots below `first_offset` and above `log_end_offset`."""
        for candidate in self.offsets:
            if candidate > log_end_offset or candidate < first_offset:
                self.delete(candidate)

    def delete_strays(self, segment_base_offsets: Collection[int]) -> None:
        """Remove snapshots that belong to no segment (Kafka's removeStraySnapshots).

        The newest of them stays if it is above all base offsets: a clean shutdown wrote it.
        """
        strays = [offset for offset in self._offsets if offset not in segment_base_offsets]
        if strays and strays[-1] >= max(segment_base_offsets, default=-1):
            strays.pop()
        for offset in strays:
            self.delete(offset)

    def mark_deleted(self, offset: int) -> str | None:
        """Rename the snapshot at `offset` to `.deleted`; returns the path to be unlinked later.

        None when there is none, or when it has no file.
        """
        if offset not in self:
            return None
        self._forget(offset)
        renamed = snapshot_file(self.directory, offset, DELETED_SUFFIX)
        try:
            self._fs.rename(self.path(offset), renamed)
        except FileNotFoundError:
            return None
        return renamed

    def unsynced(self, end_offset: int) -> tuple[tuple[int, int], ...]:
        """(offset, number of the write) of the snapshots up to `end_offset` that a flush has to
        sync; pending ones have to be written before."""
        return tuple(
            (offset, write) for offset, write in self._unsynced.items() if offset <= end_offset
        )

    def mark_synced(self, snapshots: Iterable[tuple[int, int]]) -> None:
        """Note that these, as `unsynced` returned them, are durable, unless written again since."""
        for offset, write in snapshots:
            if self._unsynced.get(offset) == write:
                del self._unsynced[offset]

    def _check(self) -> None:
        assert self._offsets == sorted(set(self._offsets))
        assert set(self._unsynced) <= set(self._offsets)
        assert set(self._pending) <= set(self._unsynced)
        assert len(self._pending) <= MOST_PENDING
        assert all(
            self._fs.exists(self.path(offset))
            for offset in self._offsets
            if offset not in self._pending
        )


def _write(fs: FileSystem, snapshots: Iterable[PendingSnapshot]) -> None:
    for one in snapshots:
        write_snapshot(fs, one.temporary, one.image.encode(), sync=False)
