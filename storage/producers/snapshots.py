"""The snapshot files of one partition directory: which there are, and removing them.

Kept apart from `storage.producers.state` because this is about files and that about producers.
Offsets stand for files (`storage.paths.snapshot_file`). Every method may raise OSError.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable

from storage.filesystem import FileSystem
from storage.paths import DELETED_SUFFIX, SNAPSHOT_SUFFIX, parse_segment_file, snapshot_file


class SnapshotFiles:
    """Sorted offsets of the snapshot files in `directory`.

    `names` are the directory's file names where the caller has listed it already.
    """

    __slots__ = ("_fs", "_offsets", "_unsynced", "_writes", "directory")

    def __init__(self, fs: FileSystem, directory: str, names: Iterable[str] | None = None) -> None:
        self._fs = fs
        self.directory = directory
        self._offsets: list[int] = []
        self._unsynced: dict[int, int] = {}
        """Offset -> which write it was, of snapshots that a crash may still take."""
        self._writes = 0
        self.reload(names)

    def reload(self, names: Iterable[str] | None = None) -> None:
        """Look again which files there are."""
        if names is None:
            names = self._fs.list_dir(self.directory)
        found = []
        for name in names:
            if not name.endswith(SNAPSHOT_SUFFIX):
                continue
            file = parse_segment_file(name)
            if file is not None:
                found.append(file.base_offset)
        self._offsets = sorted(found)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Offsets of all snapshots, ascending."""
        return tuple(self._offsets)

    @property
    def latest(self) -> int | None:
        """Offset of the newest snapshot."""
        return self._offsets[-1] if self._offsets else None

    @property
    def oldest(self) -> int | None:
        """Offset of the oldest snapshot."""
        return self._offsets[0] if self._offsets else None

    def path(self, offset: int) -> str:
        """Where the snapshot at `offset` is or would be."""
        return snapshot_file(self.directory, offset)

    def __contains__(self, offset: int) -> bool:
        index = bisect_left(self._offsets, offset)
        return index < len(self._offsets) and self._offsets[index] == offset

    def add(self, offset: int, *, is_synced: bool = True) -> None:
        """A snapshot was written."""
        if offset not in self:
            insort(self._offsets, offset)
        if not is_synced:
            self._writes += 1
            self._unsynced[offset] = self._writes

    def delete(self, offset: int) -> None:
        """Remove a snapshot if it is there."""
        if offset in self:
            self._forget(offset)
            self._fs.unlink(self.path(offset), missing_ok=True)

    def _forget(self, offset: int) -> None:
        self._offsets.remove(offset)
        self._unsynced.pop(offset, None)

    def delete_before(self, offset: int) -> None:
        """Remove the snapshots below `offset`."""
        for candidate in self._offsets[: bisect_left(self._offsets, offset)]:
            self.delete(candidate)

    def delete_above(self, offset: int) -> None:
        """Remove the snapshots above `offset`."""
        for candidate in self._offsets[bisect_right(self._offsets, offset) :]:
            self.delete(candidate)

    def delete_all(self) -> None:
        """Remove every snapshot."""
        for candidate in self.offsets:
            self.delete(candidate)

    def delete_outside(self, first_offset: int, log_end_offset: int) -> None:
        """Remove what a log of these offsets cannot use: below the first, above the end."""
        for candidate in self.offsets:
            if candidate > log_end_offset or candidate < first_offset:
                self.delete(candidate)

    def delete_strays(self, segment_base_offsets: Collection[int]) -> None:
        """Remove snapshots that belong to no segment (Kafka's removeStraySnapshots).

        The newest of them stays if it lies above all segments: a clean shutdown wrote it.
        """
        strays = [offset for offset in self._offsets if offset not in segment_base_offsets]
        if strays and strays[-1] >= max(segment_base_offsets, default=-1):
            strays.pop()
        for offset in strays:
            self.delete(offset)

    def mark_deleted(self, offset: int) -> str | None:
        """Rename the snapshot at `offset` to `.deleted`; the new path, to be unlinked later.

        None when there is none, or when it is gone already.
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
        """(offset, which write) of the snapshots up to there that a flush has to sync."""
        return tuple(
            (offset, write) for offset, write in self._unsynced.items() if offset <= end_offset
        )

    def mark_synced(self, snapshots: Iterable[tuple[int, int]]) -> None:
        """These, as `unsynced` has named them, are durable; not what was written since."""
        for offset, write in snapshots:
            if self._unsynced.get(offset) == write:
                del self._unsynced[offset]

    def _check(self) -> None:
        assert self._offsets == sorted(set(self._offsets))
        assert set(self._unsynced) <= set(self._offsets)
        assert all(self._fs.exists(self.path(offset)) for offset in self._offsets)
