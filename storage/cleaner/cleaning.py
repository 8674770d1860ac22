"""One cleaning of one log from beginning to end.

    stats = await clean(log, request_for(log, first_dirty, first_uncleanable, …), child)

`child(function, *args)` has a child process call `function(state, *args)`, a step of
`storage.cleaner.work`. The steps do everything that blocks or computes. Between them, on the loop,
a group that was written replaces its segments (S-CMP-9: `storage.log.replacing`). So readers see
the log before a group or after it, and a cleaning that ends early leaves nothing half done:

  * if a step fails (the disk failed, the child died, the log is uncleanable, the cleaning is not
    wanted any more), or the work is ended, it removes the `.cleaned` files of the group in
    progress;
  * if the log was cut, moved or replaced meanwhile (its generation has changed), it raises
    CleaningAborted, and removes them as well;
  * groups that were installed before stay installed: they are valid, and are cleaned again later.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from storage.cleaner import work
from storage.cleaner.errors import CleaningAborted, SegmentOverflow
from storage.cleaner.grouping import SegmentGroup, groups_of
from storage.cleaner.request import (
    CleanedSegment,
    CleanerStats,
    CleanRequest,
    LastRecords,
    MapStep,
    RewriteStep,
    SourceSegment,
)
from storage.errors import StaleGeneration
from storage.filesystem import FileSystem
from storage.log.log import Log
from storage.log.segment import LogSegment
from storage.log.segment_files import LEAST_INDEX_SIZE
from storage.paths import (
    CLEANED_SUFFIX,
    INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    join,
    log_file,
    parse_segment_file,
    segment_file,
)
from storage.producers.last_records import last_records_in
from storage.waits import Work, at_once

STEP_BYTES: Final = 4 << 20
"""Bytes that one call of a child reads: some tens of milliseconds."""


Child = Callable[..., Work[Any]]
"""`await child(function, *args)` returns `function(state, *args)`; the state lives in the child."""


def request_for(  # noqa: PLR0913 - what the log does not know
    log: Log,
    first_dirty_offset: int,
    first_uncleanable_offset: int,
    *,
    now_ms: int,
    map_bytes: int,
    io_buffer_bytes: int = 1 << 20,
    load_factor: float = 0.9,
    hash_seed: int = 0,
    active_producers: LastRecords | None = None,
    sources: tuple[SourceSegment, ...] | None = None,
) -> CleanRequest:
    """The request for a cleaning of the log as it is now.

    `sources`: the result of `describe` for its `closed_segments`; None: read from the disk here.

    `active_producers`: see `storage.producers.last_records`; None: collected here from all
    producers.

    `first_uncleanable_offset` is the base of a segment, at most that of the active one, and not
    above the last stable offset. Raises BeingRepaired while a transaction index is being compared
    with the log (try again soon), StorageError.
    """
    config = log.config
    if sources is None:
        places = closed_segments(log, first_uncleanable_offset)
        sources = describe(log.store.fs, log.dir, places)
    if active_producers is None:
        active_producers = last_records_in(
            log.producers.image(), log.segments.first.base_offset, first_uncleanable_offset
        )
    clean = [s.last_modified_ms for s in sources if s.base_offset < first_dirty_offset]
    return CleanRequest(
        directory=log.dir,
        topic_partition=log.topic_partition,
        segments=sources,
        first_dirty_offset=first_dirty_offset,
        first_uncleanable_offset=first_uncleanable_offset,
        high_watermark=log.high_watermark,
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=max(config.segment_index_bytes, LEAST_INDEX_SIZE),
        index_interval_bytes=config.index_interval_bytes,
        map_bytes=map_bytes,
        io_buffer_bytes=io_buffer_bytes,
        load_factor=load_factor,
        hash_seed=hash_seed,
        legacy_horizon_ms=clean[-1] - config.delete_retention_ms if clean else 0,
        active_producers=active_producers,
        aborted=log.reader.packed_aborted(first_uncleanable_offset),
    )


def closed_segments(log: Log, first_uncleanable_offset: int) -> list[tuple[int, int]]:
    """(base offset, size in bytes) of the segments that begin below, for `describe`."""
    found = log.segments.between(0, first_uncleanable_offset)
    return [(segment.base_offset, segment.size) for segment in found]


def describe(
    fs: FileSystem, directory: str, places: Sequence[tuple[int, int]]
) -> tuple[SourceSegment, ...]:
    """Read times and index sizes of these segments from the disk; a missing index has size 0.

    May run in any thread. Raises OSError, FileNotFoundError when the log is gone.
    """
    sizes = fs.sizes(directory, unasked=SNAPSHOT_SUFFIX)
    return tuple(
        SourceSegment(
            base_offset=base,
            size=size,
            last_modified_ms=fs.mtime_ms(log_file(directory, base)),
            offset_index_size=sizes.get(segment_file(base, INDEX_SUFFIX), 0),
            time_index_size=sizes.get(segment_file(base, TIME_INDEX_SUFFIX), 0),
        )
        for base, size in places
    )


async def clean(
    log: Log, request: CleanRequest, child: Child, *, step_bytes: int = STEP_BYTES
) -> CleanerStats:
    """Carry out the cleaning that `request` describes; returns its counts.

    Raises CleaningAborted, StorageError, and whatever `child` raises.
    """
    generation = log.store.generation
    segments = _segments_of(log, request)
    await child(work.begin, log.store.fs, request)
    stats = CleanerStats()
    while True:
        mapped: MapStep = await child(work.map_some, step_bytes)
        stats = stats.plus(mapped.stats)
        if mapped.is_done:
            break
    for group in groups_of(request, mapped.end_offset):
        old = [segments[source.base_offset] for source in group]
        try:
            try:
                step = await _write(group, child, step_bytes)
            except SegmentOverflow as overflow:
                pieces = await _split(request, overflow, child, step_bytes)
                _install(log, pieces, [segments[overflow.base_offset]], generation)
                raise CleaningAborted(f"{overflow}; it was split") from None
            stats = stats.plus(step.stats)
            assert step.cleaned is not None
            generation = _install(log, (step.cleaned,), old, generation)
        except BaseException:
            _remove_cleaned(log.store.fs, request.directory)
            raise
    await child(work.end)
    return stats


def _segments_of(log: Log, request: CleanRequest) -> dict[int, LogSegment]:
    """The segments of the request. Raises CleaningAborted if any has changed or is gone."""
    found = {}
    for source in request.segments:
        segment = log.segments.get(source.base_offset)
        if segment is None or segment.size != source.size or log.dir != request.directory:
            raise CleaningAborted(f"{log.dir} has changed since the cleaning was decided")
        found[source.base_offset] = segment
    return found


async def _write(group: SegmentGroup, child: Child, step_bytes: int) -> RewriteStep:
    """Write a group; returns its last step, with the sums of all steps."""
    await child(work.begin_group, group)
    stats = CleanerStats()
    while True:
        step: RewriteStep = await child(work.rewrite_some, step_bytes)
        stats = stats.plus(step.stats)
        if step.is_done:
            return replace(step, stats=stats)


async def _split(
    request: CleanRequest, overflow: SegmentOverflow, child: Child, step_bytes: int
) -> list[CleanedSegment]:
    """Write a segment whose offsets lie too far apart as several."""
    (source,) = (s for s in request.segments if s.base_offset == overflow.base_offset)
    await child(work.begin_split, source)
    while True:
        steps: Sequence[RewriteStep] = await child(work.split_some, step_bytes)
        if steps[-1].is_done:
            return [step.cleaned for step in steps if step.cleaned is not None]


def _install(
    log: Log, cleaned: Sequence[CleanedSegment], old: Sequence[LogSegment], generation: int
) -> int:
    """Replace `old` by what was written; returns the log's new generation."""
    new = [log.replacer.open_cleaned(one.base_offset, size=one.size) for one in cleaned]
    try:
        log.replacer.replace(new, old, generation=generation)
    except StaleGeneration as stale:
        raise CleaningAborted(str(stale)) from None
    for segment, one in zip(new, cleaned, strict=True):
        # The rewrite knows them, so no reader has to have the segment read through.
        segment.aborted.sum = one.aborted_sum
        segment.aborted.leaves_open = one.leaves_open
    return log.store.generation


def _remove_cleaned(fs: FileSystem, directory: str) -> None:
    """Remove files that were not installed; ignores errors, as the next start removes them, too."""
    with suppress(OSError):
        for name in fs.list_dir(directory):
            file = parse_segment_file(name)
            if file is not None and file.state == CLEANED_SUFFIX:
                fs.unlink(join(directory, name), missing_ok=True)


def clean_here(log: Log, request: CleanRequest, *, step_bytes: int = STEP_BYTES) -> CleanerStats:
    """`clean`, here and now and without a child: for tests and tools."""
    state: dict[str, Any] = {}

    async def child(function: Callable[..., Any], *args: Any) -> Any:
        return function(state, *args)

    try:
        return at_once(clean(log, request, child, step_bytes=step_bytes))
    finally:
        work.end(state)
