"""The snapshot files of one partition directory: listing, writing and removing them.

This knows files; `storage.producers.state` knows producers. A snapshot is named by its offset
(`storage.paths.snapshot_file`). Every method may raise OSError.

The append that rolls the log does not write a large snapshot (`storage.producers.image`): it is
`pending`, in memory, until a job of the next flush writes it, before the rest is synced
(`storage.log.durability`). A crash before that loses it, as it may lose an unsynced one.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from random import Random
from typing import Any, Final

from storage.filesystem import FileSystem
from storage.jobs import Job
from storage.paths import (
    DELETED_SUFFIX,
    SNAPSHOT_SUFFIX,
    file_name,
    join,
    snapshot_file,
    temporary_file,
)
from storage.producers.image import ProducerImage
from storage.producers.snapshot import write_snapshot

MOST_PENDING: Final = 2
"""If a log rolls faster than its snapshots are written, only the newest ones are kept: each may
take tens of megabytes, and recovery can start from an older one. So no segment is deleted before a
snapshot above it is in its file (`storage.log.deleting`)."""

Written = Callable[[OSError | None], Job[Any] | None]
"""Called on the loop with the error or None. May return the job to run next."""


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
        found = []
        for name in names:
            if name.endswith(SNAPSHOT_SUFFIX):
                digits = name[: -len(SNAPSHOT_SUFFIX)]
                if digits.isdigit() and digits.isascii():
                    found.append(int(digits))
        self._offsets = sorted(found)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Offsets of all snapshots, ascending."""
        return tuple(self._offsets)

    @property
    def latest(self) -> int | None:
        """Offset of the newest snapshot."""
        return self._offsets[-1] if self._offsets else None

    def path(self, offset: int) -> str:
        """Where the snapshot at `offset` is or would be."""
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

    def begin_write(self, end_offset: int, written: Written) -> "SnapshotJob | None":
        """A job that writes the pending snapshots up to `end_offset`; None: there are none.

        Snapshots that are deleted or written again meanwhile are left alone.
        """
        due = [
            PendingSnapshot(
                offset, image, temporary_file(self.path(offset), random.getrandbits(64))
            )
            for offset, image in self._pending.items()
            if offset <= end_offset and (random := self._random) is not None
        ]
        return SnapshotJob(self._fs, due, self._install, written) if due else None

    def _install(self, snapshots: "Iterable[PendingSnapshot]", error: OSError | None) -> None:
        for one in snapshots:
            temporary = join(self.directory, file_name(one.temporary))
            if error is None and self._pending.get(one.offset) is one.image:
                self._fs.rename(temporary, self.path(one.offset))
                del self._pending[one.offset]
            else:
                with suppress(OSError):
                    self._fs.unlink(temporary, missing_ok=True)

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


class PendingSnapshot:
    """A pending snapshot that a job writes."""

    __slots__ = ("image", "offset", "temporary")

    def __init__(self, offset: int, image: ProducerImage, temporary: str) -> None:
        self.offset = offset
        self.image = image
        self.temporary = temporary
        """Path of the file to write, which the loop then renames if the snapshot still exists."""


class SnapshotJob:
    """Job: writes pending snapshots; see `SnapshotFiles.begin_write`."""

    __slots__ = ("_fs", "_install", "_snapshots", "_written")

    def __init__(
        self,
        fs: FileSystem,
        snapshots: list[PendingSnapshot],
        install: Callable[[Iterable[PendingSnapshot], OSError | None], None],
        written: Written,
    ) -> None:
        self._fs = fs
        self._snapshots = snapshots
        self._install = install
        self._written = written

    def run(self) -> OSError | None:
        """See `storage.jobs`."""
        try:
            for one in self._snapshots:
                write_snapshot(self._fs, one.temporary, one.image.encode(), sync=False)
        except OSError as error:
            return error
        return None

    def complete(self, error: OSError | None, /) -> Job[Any] | None:
        """See `storage.jobs`. Raises what `written` raises."""
        try:
            self._install(self._snapshots, error)
        except OSError as failure:
            error = error or failure
        return self._written(error)
