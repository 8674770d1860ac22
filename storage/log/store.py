"""The segment files of one log: made, rolled, cut, replaced, deleted (`LocalLog`).

Deleting takes two steps (S-RET-7): the files get the suffix `.deleted` at once and the segment
leaves the table, so no read finds it; the log manager unlinks the files `file.delete.delay.ms`
later (`take_pending`). A crash in between leaves `.deleted` files, which the loader removes.

`generation` changes whenever segments are cut or replaced or their directory is renamed, so that a
job can tell whether the files it has seen are still those of the log. Retention does not change it:
it deletes whole segments, which need no sync any more.

This knows nothing of offsets, producers and epochs. Only the parts of a `Log` and the loader call
it; everything raises OSError.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from config.topic_config import TopicConfig
from storage.clock import Clock
from storage.filesystem import FileSystem
from storage.log.results import Deleted, DeletionReason, PendingDeletion
from storage.log.segment import LogSegment
from storage.log.segment_files import Openings, SegmentHome
from storage.log.segments import LogSegments
from storage.paths import CLEANED_SUFFIX, DELETED_SUFFIX, SWAP_SUFFIX

_log = logging.getLogger(__name__)


class SegmentStore:
    """The segments of one log and their files."""

    __slots__ = (
        "_home",
        "_pending",
        "clock",
        "config",
        "dir_is_synced",
        "fs",
        "generation",
        "random",
        "segments",
    )

    def __init__(
        self,
        fs: FileSystem,
        clock: Clock,
        directory: str,
        config: TopicConfig,
        random: Random,
    ) -> None:
        """`random`: for `segment.jitter.ms` and names; all logs may share one."""
        self.fs = fs
        self.clock = clock
        self.config = config
        self.segments = LogSegments()
        self._home = SegmentHome(
            fs,
            directory,
            index_interval=config.index_interval_bytes,
            index_size=config.segment_index_bytes,
        )
        self.random = random
        self._pending: list[PendingDeletion] = []
        self.dir_is_synced = False
        """Whether the directory's own name was synced, so that it survives a power loss."""
        self.generation = 0

    @property
    def directory(self) -> str:
        """The partition directory."""
        return self._home.directory

    @property
    def openings(self) -> Openings | None:
        """Notes which segments have files open; None: the log is not in service."""
        return self._home.openings

    def connect(self, openings: Openings | None) -> None:
        """Have all segments note opened files with `openings`: the log is in service."""
        for home in self._homes():
            home.openings = openings
        if openings is not None:
            for segment in self.segments:
                if segment.files.opened is not None:
                    openings.note(segment)

    def configure(self, config: TopicConfig) -> None:
        """Use this configuration from now on. Open segments keep the size of their indexes."""
        old = self._home
        self.config = config
        self._home = SegmentHome(
            self.fs,
            old.directory,
            index_interval=config.index_interval_bytes,
            index_size=config.segment_index_bytes,
        )
        self._home.openings = old.openings

    def _homes(self) -> Iterator[SegmentHome]:
        """That of new segments, and those of segments made under earlier configurations."""
        yield self._home
        for segment in self.segments:
            yield segment.files.home

    def open_segment(self, base_offset: int, *, size: int, state: str = "") -> LogSegment:
        """A segment over files that exist (or will be made at first use); not added to the list."""
        return next(self.open_segments(((base_offset, size),), state=state))

    def open_segments(
        self, found: Iterable[tuple[int, int]], *, state: str = ""
    ) -> Iterator[LogSegment]:
        """`open_segment` for many, given (base offset, size of the record file in bytes)."""
        now_ms = self.clock.wall_ms()
        for base_offset, size in found:
            yield LogSegment(self._home, base_offset, size=size, created_ms=now_ms, state=state)

    def unique(self) -> int:
        """A number for the name of a temporary file."""
        return self.random.getrandbits(64)

    def create(self, base_offset: int) -> LogSegment:
        """A new, empty active segment. Stray files of that name are deleted (S-ROLL-3)."""
        segment = self.open_segment(base_offset, size=0)
        for path in segment.files.paths:
            if self.fs.exists(path):
                _log.warning("Newly rolled segment file %s already exists; deleting it first", path)
                self.fs.unlink(path)
        return self._begin(segment)

    def _begin(self, segment: LogSegment) -> LogSegment:
        """Make the files of an empty segment and add it to the log."""
        segment.ensure_files()
        if self.config.preallocate:
            segment.preallocate(self.config.segment_bytes)
        self.segments.add(segment)
        return segment

    def _renew(self, old: LogSegment) -> LogSegment:
        """Empty `old` and open it with the current configuration.

        Its record file stays: if it were missing for a moment, a crash then would leave a log that
        ends before it. (Kafka renames the files away and makes new ones.)
        """
        old.clear()
        return self._begin(self.open_segment(old.base_offset, size=0))

    def roll(self, base_offset: int) -> LogSegment:
        """End the active segment and start one at `base_offset` (S-ROLL-3, S-ROLL-4).

        Rolling an empty active segment onto itself (its index has no room at all) begins it again
        (KAFKA-6388). Raises ValueError when `base_offset` is below the active segment or taken.
        """
        active = self.segments.active
        if base_offset == active.base_offset and active.size == 0:
            return self._renew(active)
        if base_offset <= active.base_offset:
            raise ValueError(
                f"cannot roll {self.directory} to offset {base_offset}: the active segment starts "
                f"at {active.base_offset}"
            )
        active.become_inactive()
        return self.create(base_offset)

    def delete(self, segments: Iterable[LogSegment], reason: DeletionReason) -> list[Deleted]:
        """Take segments out of the log and rename their files, to be unlinked later."""
        due = self.clock.wall_ms() + self.config.file_delete_delay_ms
        gone = []
        for segment in segments:
            self.segments.remove(segment.base_offset)
            for path in segment.rename(DELETED_SUFFIX):
                self.pend(path, due)
            gone.append(Deleted(base_offset=segment.base_offset, size=segment.size, reason=reason))
        return gone

    def pend(self, path: str, due_ms: int) -> None:
        """Unlink `path` once wall time reaches `due_ms`."""
        self._pending.append(PendingDeletion(path=path, due_ms=due_ms))

    def take_pending(self) -> list[PendingDeletion]:
        """Hand over the renamed files; from now on the caller unlinks them when due."""
        taken, self._pending = self._pending, []
        return taken

    def truncate_to(self, offset: int) -> None:
        """Drop all batches from the one that holds `offset` on; a segment starts at or below it."""
        self.generation += 1
        doomed = [segment for segment in self.segments if segment.base_offset > offset]
        # The last first: a crash in between leaves a shorter log, not one with a hole.
        self.delete(reversed(doomed), DeletionReason.TRUNCATION)
        self.fs.fsync_dir(self.directory)
        active = self.segments.active
        if active.truncate_to(offset, self.clock.wall_ms()):
            # After a power loss the bytes cut off must not come back behind the next append.
            active.file.fsync()

    def restart_at(self, offset: int) -> None:
        """Drop everything; one empty segment at `offset` is left."""
        self.generation += 1
        later = [segment for segment in self.segments if segment.base_offset > offset]
        earlier = [segment for segment in self.segments if segment.base_offset < offset]
        # Delete from the end, as in `truncate_to`, and never be without the segment at `offset`
        # once others are gone: a crash then would leave a log that begins at 0.
        self.delete(reversed(later), DeletionReason.TRUNCATION)
        stays = self.segments.get(offset)
        if stays is None:
            self.create(offset)
        else:
            self.fs.fsync_dir(self.directory)
            self._renew(stays).file.fsync()
        self.delete(earlier, DeletionReason.TRUNCATION)
        self.fs.fsync_dir(self.directory)

    def open_cleaned(self, base_offset: int, *, size: int | None = None) -> LogSegment:
        """A segment over `.cleaned` files, to be filled or already filled; not added to the list.

        `size`: bytes of a filled one, maybe 0. None: files that an earlier attempt left under these
        names are removed.
        """
        segment = self.open_segment(base_offset, size=size or 0, state=CLEANED_SUFFIX)
        if size is None:
            segment.files.remove()
        return segment

    def replace(
        self, new: Sequence[LogSegment], old: Sequence[LogSegment], reason: DeletionReason
    ) -> list[Deleted]:
        """Replace `old` by `new`, whose files are `.cleaned`; both ascending by base offset."""
        self.generation += 1
        for segment in reversed(new):
            segment.rename(SWAP_SUFFIX)
        gone = self.delete(old, reason)
        for segment in new:
            segment.rename("")
            segment.aborted.sum = None  # its transaction index was not compared with the log yet
            self.segments.add(segment)
        return gone

    def moved_to(self, directory: str) -> None:
        """Note that the partition directory was renamed to `directory`."""
        self.generation += 1
        self.dir_is_synced = False
        for segment in self.segments:
            segment.release()
        for home in self._homes():
            home.directory = directory
