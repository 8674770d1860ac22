"""Opening a partition directory: from whatever files are there to a consistent `Log`.

Passes over the files, then the state beside them (Kafka's `LogLoader`)

  1. and 2. A replacement of segments that was interrupted is undone or finished
     (`storage.leftovers`, S-REC-2).
  3. Segments are listed. Index files without a record file are removed. A segment whose indexes are
     missing, or whose sizes cannot be right, is recovered. Below the recovery point no file is
     opened here: a log of thousands of segments costs a listing with sizes, and damage inside an
     index shows when it is used.
  4. A segment whose offsets lie too far apart for an index is split (`storage.splitting`), here or
     as soon as it was recovered.
  5. After an unclean stop, everything from the recovery point on is read and recovered
     (`storage.segment_recovery`). The first byte that is not part of a good batch ends the log:
     later segments are removed, then the file is cut there (S-REC-3).

Then the log end offset is known. Above it nothing is believed: epochs are cut, snapshots beyond are
removed, producer state is replayed up to it. Recovery itself does not advance the recovery point,
because it does not sync what it kept (S-REC-10): after a crash in the middle the next start reads
all of it again, unless `LoadOptions.synced` was called with a higher offset meanwhile.

At the end the log is synced if at least `flush.messages` records are unsynced, or if its recovery
took long (`LoadOptions.sync_above_s`). The records of a killed process may be in the page cache
only. Consumers read them, other logs rely on them, and producers that retry get them acknowledged:
after that a power loss must not take them.

`load_log` is synchronous and touches one directory only, so that several may run in threads. Raises
OSError; damaged data is repaired, not reported by exception.
"""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from random import Random
from typing import Final

from config.topic_config import TopicConfig
from protocol.records.batch import MIN_LEGACY_SIZE
from protocol.types import ZERO_UUID, TopicPartition
from storage.aborted_checkpoint import NOTHING_NOTED, NotedAborted, line_of, word_of
from storage.clock import Clock
from storage.epochs import LeaderEpochCache
from storage.errors import CheckpointError, CorruptIndex, StorageError
from storage.filesystem import FileSystem
from storage.index.offset_index import ENTRY_SIZE as OFFSET_ENTRY_SIZE
from storage.index.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from storage.index.transaction_index import ENTRY_SIZE as TXN_ENTRY_SIZE
from storage.leftovers import finish_swaps, remove_leftovers
from storage.log import replay
from storage.log.log import Log
from storage.log.results import DeletionReason
from storage.log.scan import HEADERS, Ended, Walk
from storage.log.segment import LogSegment
from storage.log.store import SegmentStore
from storage.paths import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    INDEX_SUFFIXES,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    MAX_OFFSET,
    SNAPSHOT_SUFFIX,
    STATE_SUFFIXES,
    SUFFIXES,
    SWAP_SUFFIX,
    TEMPORARY_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    join,
    log_file,
    parse_offset,
    segment_file,
)
from storage.producers.state import (
    DEFAULT_EXPIRATION_MS,
    ProducerStateManager,
)
from storage.segment_recovery import ResumePoint, SegmentRecovery, cut_indexes, resume_point
from storage.splitting import is_forced, overflows, put_in_place, split
from storage.syncing import sync_files
from storage.waits import at_once

_log = logging.getLogger(__name__)

_SYNC_EVERY_S: Final = 3.0
"""Seconds between syncs within one long recovery, so that another crash does not undo all of it."""
_NEVER_ENDED: Final = 2**63

_OF_SEGMENTS: Final = frozenset(
    suffix + state for suffix in SUFFIXES for state in ("", *STATE_SUFFIXES)
)
_LEFTOVERS: Final = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, TEMPORARY_SUFFIX)


def _by_kind(names: Iterable[str]) -> dict[str, list[str]]:
    """Names by suffix (from the first dot on), without it."""
    found: dict[str, list[str]] = {}
    for name in names:
        stem, dot, rest = name.partition(".")
        found.setdefault(dot + rest, []).append(stem)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """Facts about one log, from the log directory's files and from its owner."""

    config: TopicConfig
    clean: bool
    """The broker stopped in order: nothing needs to be recovered."""
    log_start_offset: int = 0
    """From the checkpoint; 0 when it names none."""
    recovery_point: int = 0
    """From the checkpoint: everything below was synced."""
    sync_above_s: float = math.inf
    """Sync a log that took at least so many seconds to recover, which moves its recovery point to
    its end: the next start need not recover it again."""
    synced: Callable[[int, str], None] | None = None
    """Called during a long recovery with the offset below which all is recovered and synced, and
    with the log's line of `storage.aborted_checkpoint` for that offset."""
    topic_id: bytes = ZERO_UUID
    aborted: NotedAborted = NOTHING_NOTED
    """Checksums of the transaction indexes, from when recovery points were written last."""
    producer_expiration_ms: int = DEFAULT_EXPIRATION_MS


def load_log(
    fs: FileSystem,
    clock: Clock,
    directory: str,
    topic_partition: TopicPartition,
    options: LoadOptions,
    random: Random,
) -> Log:
    """Open the log in `directory`, which exists; an empty directory becomes an empty log.

    The log returned holds no file open: those of thousands of logs would be too many. `random` may
    be shared by logs that are loaded in several threads. Raises OSError.
    """
    begin = clock.monotonic()
    loader = _Loader(fs, clock, directory, topic_partition, options, random)
    log = loader.load()
    unsynced = log.log_end_offset - log.recovery_point
    wanted = loader.takes_long or clock.monotonic() - begin >= options.sync_above_s
    if unsynced >= options.config.flush_messages or (unsynced and wanted):
        try:
            at_once(log.flush())
            log.let_go_of_files()
        except StorageError as error:
            if isinstance(error.cause, OSError):
                raise error.cause from None
            raise
    return log


class _Loader:
    """One run of the passes."""

    def __init__(
        self,
        fs: FileSystem,
        clock: Clock,
        directory: str,
        topic_partition: TopicPartition,
        options: LoadOptions,
        random: Random,
    ) -> None:
        self._fs = fs
        self._clock = clock
        self._directory = directory
        self._topic_partition = topic_partition
        self._options = options
        self._random = random
        self._store = SegmentStore(fs, clock, directory, options.config, random)
        self._epochs_lost = False
        """The leader epoch checkpoint was malformed."""
        self._epochs = self._open_epochs()
        self._unsynced_from: int | None = None
        noted = options.aborted
        fits = noted.fits(options.topic_id, options.recovery_point, clean=options.clean)
        self._noted = noted if fits else NOTHING_NOTED
        self.takes_long = False
        """Recovery has passed `_SYNC_EVERY_S`, so its end is synced as well."""
        self._resumed: ResumePoint | None = None
        """The place where reading began within the segment that holds the recovery point; None: at
        its base, or no segment holds the point in its middle."""

    def load(self) -> Log:
        sizes = self._sizes()
        names = _by_kind(sizes)
        if any(kind.endswith(_LEFTOVERS) for kind in names):
            remove_leftovers(self._fs, self._directory)
            finish_swaps(self._fs, self._directory)
            sizes = self._sizes()
            names = _by_kind(sizes)
        self._set_foreign_aside(names)
        options, segments = self._options, self._store.segments
        self._producers = ProducerStateManager(
            self._fs,
            self._topic_partition,
            self._directory,
            names=[stem + SNAPSHOT_SUFFIX for stem in names.get(SNAPSHOT_SUFFIX, ())],
            expiration_ms=options.producer_expiration_ms,
            random=self._random,
        )
        self._open_segments(sizes, names)
        if not options.clean:
            self._recover(sizes)
            end = self._producers.map_end_offset
        else:
            end = self._end_offset()
        if end < options.log_start_offset:
            self._start_over(end)
            end = options.log_start_offset
        start = max(options.log_start_offset, segments.first.base_offset)
        self._epochs.truncate_from_end(end)
        if self._epochs_lost or not options.clean:
            self._relearn_epochs(start)
        self._epochs.truncate_from_start(start)
        self._epochs.flush()
        self._producers.snapshots.delete_strays(segments.base_offsets)
        replay.rebuild(self._producers, segments, end, self._clock.wall_ms(), clean=options.clean)
        # The high watermark begins at the log start, so transactions that ended below are decided.
        self._producers.on_high_watermark_updated(start)
        for segment in segments:
            segment.release()
        return Log(
            self._topic_partition,
            self._store,
            self._epochs,
            self._producers,
            log_start_offset=start,
            log_end_offset=end,
            recovery_point=self._synced_up_to(start, end),
            unsynced_from=self._unsynced_from if segments.size else None,
            topic_id=options.topic_id,
        )

    def _open_epochs(self) -> LeaderEpochCache:
        path = join(self._directory, LEADER_EPOCH_CHECKPOINT)
        try:
            return LeaderEpochCache(self._fs, path, self._random)
        except CheckpointError as error:
            _log.warning("Learning the leader epochs from the log: %s", error)
            self._epochs_lost = True
            self._fs.unlink(path)
            return LeaderEpochCache(self._fs, path, self._random)

    def _set_foreign_aside(self, names: dict[str, list[str]]) -> None:
        """Take files out of `names` that end as a segment's do and are named by no offset.

        They stay on the disk. (Kafka does not start then: `LogFileUtils.offsetFromFileName`.)
        """
        for kind, stems in names.items():
            if kind not in _OF_SEGMENTS:
                continue
            for stem in [stem for stem in stems if parse_offset(stem) is None]:
                stems.remove(stem)
                _log.warning(
                    "Leaving %s alone: a segment is named by its offset, 20 digits up to %d",
                    join(self._directory, stem + kind),
                    MAX_OFFSET,
                )

    # Pass 3.

    def _sizes(self) -> dict[str, int]:
        return self._fs.sizes(self._directory, unasked=SNAPSHOT_SUFFIX)

    def _open_segments(self, sizes: Mapping[str, int], names: Mapping[str, Sequence[str]]) -> None:
        store, options = self._store, self._options
        stems = names.get(LOG_SUFFIX, ())
        for suffix in INDEX_SUFFIXES:
            for stem in sorted(set(names.get(suffix, ())).difference(stems)):
                name = stem + suffix
                _log.warning(
                    "Found an orphaned index file %s, with no corresponding log file.", name
                )
                self._fs.unlink(join(self._directory, name), missing_ok=True)
        store.segments.add_all(
            store.open_segments((int(stem), sizes[stem + LOG_SUFFIX]) for stem in stems)
        )
        if not stems:
            store.create(options.log_start_offset)
        segments = tuple(store.segments)
        for segment, following in zip_longest(segments, segments[1:]):
            self._note_aborted(segment, following)
            if not self._indexes_look_good(segment, following, sizes):
                # Later segments stay: a damaged index does not mean damaged records.
                _log.warning("Rebuilding the indexes of %s", segment.files.path)
                self._recover_segment(segment, sync=True)
            elif self._has_overflow(segment, following):
                self._split(segment, sync=True)

    def _note_aborted(self, segment: LogSegment, following: LogSegment | None) -> None:
        """Set the noted `aborted_sum` of a segment that ends at or below the recovery point.

        If the segment is recovered later, recovery replaces the sum.
        """
        end = _NEVER_ENDED if following is None else following.base_offset
        if segment.size and end <= self._options.recovery_point:
            segment.aborted.sum = self._noted.of(segment.base_offset, end)

    def _indexes_look_good(
        self, segment: LogSegment, following: LogSegment | None, sizes: Mapping[str, int]
    ) -> bool:
        if not self._options.clean and self._is_unflushed(following):
            return True  # rebuilt anyway
        base = segment.base_offset
        index = sizes.get(segment_file(base, INDEX_SUFFIX))
        times = sizes.get(segment_file(base, TIME_INDEX_SUFFIX))
        aborted = sizes.get(segment_file(base, TXN_INDEX_SUFFIX), 0)
        if segment.size == 0:
            # An empty segment needs no index, and any entry of one would be wrong.
            return not (index or times or aborted)
        if index is None or times is None:
            return False
        if following is not None:
            if self._options.clean:
                return True  # looked at when it is first used
            if following.base_offset != self._options.recovery_point and self._have_sizes_of_done(
                segment.size, index, times, aborted
            ):
                return True
        return self._indexes_are_sane(segment, following)

    def _have_sizes_of_done(self, size: int, index: int, times: int, aborted: int) -> bool:
        """Whether indexes of these sizes in bytes may be those of a rolled segment.

        An index that was being rebuilt when the process died is empty, or pre-sized for far more
        entries than a segment of `size` bytes can have.
        """
        # At most one entry per batch, of at least Kafka's smallest size, and per index interval.
        most = size // max(self._options.config.index_interval_bytes, MIN_LEGACY_SIZE) + 1
        return (
            index % OFFSET_ENTRY_SIZE == 0
            and times % TIME_ENTRY_SIZE == 0
            and aborted % TXN_ENTRY_SIZE == 0
            and index <= most * OFFSET_ENTRY_SIZE
            and 0 < times <= (most + 1) * TIME_ENTRY_SIZE
        )

    def _indexes_are_sane(self, segment: LogSegment, following: LogSegment | None) -> bool:
        try:
            segment.indexes.offset.sanity_check(log_size=segment.size)
            segment.indexes.time.sanity_check()
            segment.aborted.index.sanity_check()
            if (
                following is not None
                and not self._options.clean
                and (
                    # The segment may have been rolled after the sync, and the roll wrote the last
                    # time index entry.
                    following.base_offset == self._options.recovery_point
                    # A rolled segment whose records have timestamps has entries. An interrupted
                    # start that rebuilt the index may have left none, or one of zeros.
                    or segment.indexes.time.last_entry[0] <= 0
                )
            ):
                return segment.indexes.time_is_complete(segment.size)
        except CorruptIndex as error:
            _log.warning("Found a corrupted index file: %s", str(error))
            return False
        finally:
            segment.release()
        return True

    def _has_overflow(self, segment: LogSegment, following: LogSegment | None) -> bool:
        """Whether a segment that is not recovered has to be split; reads it only if the next one
        begins far away. The last segment is checked when its end is read."""
        if following is None or not overflows(following.base_offset - 1, segment.base_offset):
            return False
        if not self._options.clean and self._is_unflushed(following):
            return False  # recovered anyway
        end, _ = segment.read_end()
        segment.release()
        return self._must_be_split(segment, end)

    def _must_be_split(self, segment: LogSegment, end: int) -> bool:
        """Whether a segment that ends at `end` is too long for an index, by offsets that may be
        true: none reaches into the next segment."""
        if not overflows(end - 1, segment.base_offset):
            return False
        following = self._store.segments.higher(segment.base_offset)
        if following is None or end <= following.base_offset:
            return True
        _log.warning(
            "%s ends at offset %d, which lies beyond the base of the next segment, %d: an offset "
            "in it is damaged",
            segment.files.path,
            end,
            following.base_offset,
        )
        return False

    def _split(self, segment: LogSegment, *, sync: bool) -> None:
        """Replace a segment whose offsets lie too far apart for an index by several."""
        segments, directory = self._store.segments, self._directory
        pieces = split(self._fs, directory, segment)
        _log.warning(
            "Splitting overflowed segment %s into %d, based at %s",
            segment.files.path,
            len(pieces),
            [piece.base_offset for piece in pieces],
        )
        segment.release()
        segments.remove(segment.base_offset)
        put_in_place(self._fs, directory, segment, pieces)
        for piece in pieces:
            segments.add(self._segment(piece.base_offset))
        for piece in pieces:
            self._recover_segment(segments[piece.base_offset], sync=sync)

    def _is_unflushed(self, following: LogSegment | None) -> bool:
        """Whether the segment before `following` may hold records that were never synced."""
        return following is None or following.base_offset > self._options.recovery_point

    def _segment(self, base_offset: int) -> LogSegment:
        size = self._fs.size(log_file(self._directory, base_offset))
        return self._store.open_segment(base_offset, size=size)

    def _synced_up_to(self, start: int, end: int) -> int:
        """The recovery point that a log from `start` to `end` may claim (S-FL-2).

        The checkpoint's, with two exceptions. A point beyond the end is from before a truncation
        that a crash interrupted: the log claims its start. A point inside a segment that had to be
        read from its first byte: the log claims that segment's base.
        """
        if self._options.clean:
            return end
        point = self._options.recovery_point
        if point > end:
            return start
        if self._resumed is not None:
            return point
        holder = self._store.segments.floor(point)
        return point if holder is None else holder.base_offset

    # Pass 5.

    def _recover(self, sizes: Mapping[str, int]) -> None:
        segments, point = self._store.segments, self._options.recovery_point
        unflushed = segments.from_offset(point)
        first = unflushed[0]
        if first.base_offset < point:
            self._resumed = resume_point(
                first,
                point,
                index_bytes=sizes.get(segment_file(first.base_offset, INDEX_SUFFIX), -1),
                time_index_bytes=sizes.get(segment_file(first.base_offset, TIME_INDEX_SUFFIX), -1),
                noted=self._noted.of(
                    first.base_offset,
                    unflushed[1].base_offset if len(unflushed) > 1 else _NEVER_ENDED,
                ),
            )
        # Epochs of batches that are read now are learned from the batches: after an unsynced
        # truncation or an unclean election the file may name a later epoch than the log holds.
        self._epochs.truncate_from_end(first.base_offset if self._resumed is None else point)
        rolled = segments.lower(point)
        if rolled is not None and first.base_offset == point:
            # The roll wrote its last time index entry, maybe after the sync.
            self._note_unsynced(rolled)
        begin, synced_to = self._clock.monotonic(), first.base_offset
        for at, segment in enumerate(unflushed):
            resume = self._resumed if at == 0 else None
            if self._recover_segment(segment, unflushed[at + 1 :], resume=resume):
                return
            if self._options.synced is not None:
                now = self._clock.monotonic()
                if now - begin >= _SYNC_EVERY_S:
                    self.takes_long = True
                    self._sync(synced_to, self._options.synced)
                    begin, synced_to = now, self._producers.map_end_offset

    def _sync(self, start: int, synced: Callable[[int, str], None]) -> None:
        """Sync what was recovered from `start` on, in the order of a flush (S-FL-2)."""
        snapshots = self._producers.snapshots
        end = self._producers.map_end_offset
        unsynced = snapshots.unsynced(end)
        for segment in self._store.segments.snapshot_from(start):
            if segment.base_offset < end:
                segment.flush()
        sync_files(self._fs, (snapshots.path(offset) for offset, _ in unsynced))
        self._fs.fsync_dir(self._directory)
        snapshots.mark_synced(unsynced)
        self._epochs.flush()
        below = (one for one in self._store.segments if one.base_offset < end)
        words = (word_of(one.base_offset, one.aborted.sum) for one in below)
        synced(end, line_of(self._topic_partition, self._options.topic_id, end, words))

    def _recover_segment(
        self,
        segment: LogSegment,
        later: Sequence[LogSegment] = (),
        *,
        sync: bool = False,
        resume: ResumePoint | None = None,
    ) -> bool:
        """Re-read one segment and rebuild its indexes, epochs and producer state.

        Returns True when the log now ends in this segment, because its end was damaged or because
        the next one does not follow it. The `later` segments are removed then, the last one first
        and all of them before the cut: whenever a crash stops this, what is left is the beginning
        of the log with the damage still in place (S-REC-10).

        `sync`: the segment may lie below the recovery point, so no flush will sync it later. Sync
        the indexes before trimming their zero padding: the padding tells the next start that a
        rebuild was unfinished.

        `resume`: where to begin reading, if not at the first byte. Everything below was synced; if
        nothing follows it in the segment, the segment stays as it is.
        """
        producers, start = self._producers, segment.base_offset
        if resume is not None:
            start = resume.offset
            cut_indexes(segment, resume)
        if producers.map_end_offset != start:
            replay.rebuild(producers, self._store.segments, start, self._clock.wall_ms())
        if resume is not None and resume.is_all and not self._is_hole(segment, start, later):
            segment.release()
            return False
        recovery = SegmentRecovery(segment, producers, self._epochs, resume)
        cut = recovery.run()
        lost = cut > 0 or self._is_hole(segment, producers.map_end_offset, later)
        if recovery.ended is Ended.ZEROS and not later:
            expected = self._options.config.preallocate
            _log.log(
                logging.INFO if expected else logging.WARNING,
                "%s holds records up to offset %d; the %d bytes behind them are %s",
                segment.files.path,
                producers.map_end_offset,
                cut,
                recovery.ended,
            )
        elif lost:
            _log.warning(
                "Corruption found in segment %s, which now ends at offset %d: %d bytes, %d later "
                "segments go",
                segment.files.path,
                producers.map_end_offset,
                cut,
                len(later),
            )
        if lost:
            self._drop(reversed(later))
            self._fs.fsync_dir(self._directory)
        if sync:
            segment.indexes.add_last_time_entry(segment.size)
            segment.flush()
        segment.become_inactive()
        if sync:
            segment.flush()
        elif cut:
            # After a power loss the bytes cut off must not come back behind the next append.
            segment.file.fsync()
        producers.take_snapshot(sync=sync)
        if resume is None or lost or producers.map_end_offset > start:
            self._note_unsynced(segment)
        if self._must_be_split(segment, producers.map_end_offset):
            self._split(segment, sync=sync)
        segment.release()
        return lost

    def _relearn_epochs(self, start: int) -> None:
        """Learn epochs from `start` up to the first known one from the batches.

        They are missing when the checkpoint was malformed, or when the log start went back because
        a crash undid a deletion.
        """
        earliest = self._epochs.earliest_entry
        known = earliest.start_offset if earliest is not None else 2**63 - 1
        if known <= start:
            return
        found: dict[int, int] = {}
        for segment in self._store.segments:
            if segment.base_offset >= known:
                break
            for _, header, _, _ in Walk(segment.file, 0, segment.size, chunk=HEADERS):
                if header.base_offset >= known or header.partition_leader_epoch < 0:
                    break
                found.setdefault(header.partition_leader_epoch, header.base_offset)
        for epoch, offset in (*found.items(), *self._epochs.entries):
            self._epochs.assign(epoch, offset)

    def _is_hole(self, segment: LogSegment, end: int, later: Sequence[LogSegment]) -> bool:
        """Whether the batches at the end of an unsynced segment, which ends at `end`, were lost
        while the segment after it survived (decision 15).

        Holes are normal in compacted logs, and between segments that were split or rolled because
        the next batch was too far away for an index. (Kafka believes every hole.)
        """
        if not later or self._options.config.compact:
            return False
        following = later[0].base_offset
        if end >= following or following <= self._options.recovery_point:
            return False
        return not is_forced(segment, later[0])

    def _note_unsynced(self, segment: LogSegment) -> None:
        if self._unsynced_from is None or segment.base_offset < self._unsynced_from:
            self._unsynced_from = segment.base_offset

    def _drop(self, segments: Iterable[LogSegment]) -> None:
        for gone in self._store.delete(segments, DeletionReason.RECOVERY):
            self._producers.snapshots.delete(gone.base_offset)

    def _start_over(self, end: int) -> None:
        start = self._options.log_start_offset
        _log.warning(
            "Deleting all segments of %s because its log end offset %d is smaller than log start "
            "offset %d. This could happen if segment files were deleted from the file system.",
            self._topic_partition,
            end,
            start,
        )
        doomed = list(self._store.segments)
        # Create the new segment first: a crash in between must not leave a log that begins at 0.
        self._note_unsynced(self._store.create(start))
        self._drop(doomed)
        self._epochs.clear()
        self._producers.truncate_fully_and_start_at(start)

    def _end_offset(self) -> int:
        """The offset after the last batch of a log that was closed by a clean stop; recovers the
        active segment if it does not end with a whole batch."""
        segment = self._store.segments.active
        end, whole = segment.read_end()
        if not whole:
            _log.warning(
                "%s, or its index, does not end with a whole batch: recovering it",
                segment.files.path,
            )
            self._recover_segment(segment)
        elif overflows(end - 1, segment.base_offset):
            self._split(segment, sync=True)
        else:
            if segment.size and end == self._options.recovery_point:
                segment.aborted.sum = self._noted.of(segment.base_offset, end)
            return end
        return self._store.segments.active.read_end()[0]
