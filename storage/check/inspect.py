"""Reads one partition directory whole, and reports what is wrong with it.

It checks more than a start does: every segment from its first byte, every index entry, and records
if asked. Batches are judged by recovery's own rule (`storage.log.batch_flaws`), so that "bad" means
the same. Damage is not raised; a disk that cannot be read is an OSError.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from protocol.records.errors import RecordsError
from storage.check.findings import Finding, Problem, reason_of
from storage.errors import CheckpointError, CorruptSnapshot
from storage.log.batch_flaws import flaw_of
from storage.log.scan import Ended
from storage.paths import (
    INDEX_SUFFIXES,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    PARTITION_METADATA,
    is_temporary,
    join,
    parse_segment_file,
    snapshot_file,
)
from storage.reader import EpochEntry, PartitionView, SegmentView

Progress = Callable[[int], None]
"""Called with the number of bytes read since the last call."""

_TICK: Final = 8 * 1024 * 1024
"""Bytes between two calls within one segment."""


@dataclass(slots=True)
class Inspection:
    """The results of reading one partition directory."""

    findings: list[Finding] = field(default_factory=list)
    bad_indexes: list[str] = field(default_factory=list)
    """Index files that a rebuild would correct."""
    epochs: list[EpochEntry] = field(default_factory=list)
    """The leader epochs in the batches: (epoch, first offset) at each change."""
    first_offset: int = 0
    """The first segment's base offset."""
    end_offset: int = 0
    """After the last good batch."""
    batches: int = 0
    bytes: int = 0

    def add(
        self, problem: Problem, path: str, detail: object = "", position: int | None = None
    ) -> None:
        """Add a finding."""
        self.findings.append(
            Finding(problem=problem, path=path, detail=str(detail), position=position)
        )


def inspect_partition(
    view: PartitionView,
    *,
    in_use: bool = False,
    records: bool = False,
    progress: Progress | None = None,
) -> Inspection:
    """Everything that is wrong in the directory.

    `in_use`: a broker is writing here; what it leaves to its next clean stop is no problem then.
    `records`: decode every record as well. Raises OSError.
    """
    seen = Inspection()
    names = view.names()
    _look_at_names(view, names, seen, in_use=in_use)
    segments = view.segments()
    seen.first_offset = segments[0].base_offset if segments else 0
    for at, segment in enumerate(segments):
        active = at == len(segments) - 1
        ticker = _Ticker(progress)
        _look_at_segment(
            segment,
            seen,
            set(names),
            active=active,
            in_use=in_use,
            records=records,
            ticker=ticker,
        )
        ticker.reached(segment.size)
    _look_at_snapshots(view, seen, in_use=in_use)
    _look_at_epochs(view, seen, in_use=in_use)
    try:
        view.topic_id()
    except CheckpointError as error:
        path = join(view.directory, PARTITION_METADATA)
        seen.add(Problem.METADATA_CORRUPT, path, reason_of(error))
    return seen


def _look_at_names(
    view: PartitionView, names: list[str], seen: Inspection, *, in_use: bool
) -> None:
    files = {name: parse_segment_file(name) for name in names}
    bases = {f.base_offset for f in files.values() if f and f.suffix == LOG_SUFFIX and not f.state}
    for name, file in files.items():
        path = join(view.directory, name)
        if file is None:
            expected = name in (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)
            if not expected and not (in_use and is_temporary(name)):
                seen.add(Problem.UNKNOWN_FILE, path)
        elif file.state:
            if not in_use:
                seen.add(Problem.LEFTOVER, path)
        elif file.suffix in INDEX_SUFFIXES and file.base_offset not in bases:
            seen.add(Problem.ORPHAN, path)


def _look_at_segment(
    segment: SegmentView,
    seen: Inspection,
    names: set[str],
    *,
    active: bool,
    in_use: bool,
    records: bool,
    ticker: "_Ticker",
) -> None:
    size = segment.size
    seen.bytes += size
    if segment.base_offset < seen.end_offset:
        end = seen.end_offset
        seen.add(Problem.OVERLAP, segment.path, f"the one before ends at offset {end}")
    good = _walk(segment, seen, records=records, ticker=ticker)
    if good < size and not (active and in_use):
        _tail(segment, seen, good, size)
    if size:
        _look_at_indexes(segment, seen, names, padding_is_fine=active and in_use)


class _Ticker:
    """Reports the progress within a segment, in steps of `_TICK` bytes."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._told = 0
        self.next = _TICK

    def reached(self, position: int) -> None:
        """Note that the segment was read up to `position`."""
        if self._progress is not None and position > self._told:
            self._progress(position - self._told)
        self._told = position
        self.next = position + _TICK


def _walk(segment: SegmentView, seen: Inspection, *, records: bool, ticker: _Ticker) -> int:
    """Returns where the good part ends, judged as recovery does."""
    last = segment.base_offset - 1
    position = 0
    for batch in segment.batches():
        header = batch.header
        flaw = flaw_of(
            header, batch.chunk, batch.at, base_offset=segment.base_offset, last_offset=last
        )
        position = batch.position
        if position >= ticker.next:
            ticker.reached(position)
        if flaw is not None:
            behind = segment.size - position - header.size
            detail = f"offsets {header.base_offset} to {header.last_offset}: {flaw}"
            if behind > 0:
                detail += f"; {behind} bytes behind it in the file were not judged"
            seen.add(Problem.BAD_BATCH, segment.path, detail, position)
            break
        last = header.last_offset
        position += header.size
        seen.batches += 1
        epoch = header.partition_leader_epoch
        if epoch >= 0 and (not seen.epochs or epoch != seen.epochs[-1].epoch):
            seen.epochs.append(EpochEntry(epoch, header.base_offset))
        if records:
            try:
                batch.check_records()
            except RecordsError as error:
                seen.add(Problem.BAD_RECORDS, segment.path, error, batch.position)
    else:
        position = segment.valid_bytes
    seen.end_offset = max(seen.end_offset, last + 1)
    return position


def _tail(segment: SegmentView, seen: Inspection, good: int, size: int) -> None:
    if any(f.path == segment.path and f.problem is Problem.BAD_BATCH for f in seen.findings):
        return  # reported already
    if segment.ended is Ended.ZEROS and segment.zeros_behind(good):
        seen.add(Problem.ZEROS, segment.path, f"{size - good} bytes", good)
        return
    torn = segment.ended in (Ended.TORN_BATCH, Ended.TORN_HEADER)
    why = "" if segment.ended is None else f"{segment.ended}, "
    problem = Problem.TORN_TAIL if torn else Problem.GARBAGE
    seen.add(problem, segment.path, f"{why}{size - good} bytes", good)


def _look_at_indexes(
    segment: SegmentView, seen: Inspection, names: set[str], *, padding_is_fine: bool
) -> None:
    missing = []
    for path in (segment.offset_index_path, segment.time_index_path):
        if path.rsplit("/", 1)[-1] not in names:
            seen.add(Problem.INDEX_MISSING, path)
            missing.append(path)
    insane = segment.sanity_check()
    corrupt = {problem.path for problem in insane}
    for problem in insane:
        if problem.is_padding and padding_is_fine:
            continue
        seen.add(Problem.INDEX_CORRUPT, problem.path, problem.detail)
        # Recovery notices that an offset index is missing, and then rebuilds all three.
        seen.bad_indexes += {problem.path, segment.offset_index_path}
    mismatches: dict[str, list[str]] = {}
    for problem in segment.compare_indexes():
        mismatches.setdefault(problem.path, []).append(problem.detail)
    for path, details in mismatches.items():
        if path not in corrupt and path not in missing:
            more = f" and {len(details) - 1} more" if len(details) > 1 else ""
            seen.add(Problem.INDEX_MISMATCH, path, details[0] + more)
            seen.bad_indexes += {path, segment.offset_index_path}


def _look_at_snapshots(view: PartitionView, seen: Inspection, *, in_use: bool) -> None:
    for offset in view.snapshots():
        path = snapshot_file(view.directory, offset)
        if offset > seen.end_offset and not in_use:
            detail = f"the log ends at {seen.end_offset}"
            seen.add(Problem.SNAPSHOT_BEYOND, path, detail)
        try:
            view.producers(offset)
        except CorruptSnapshot as error:
            seen.add(Problem.SNAPSHOT_CORRUPT, path, str(error).removeprefix(f"{path}: "))


def _look_at_epochs(view: PartitionView, seen: Inspection, *, in_use: bool) -> None:
    path = join(view.directory, LEADER_EPOCH_CHECKPOINT)
    try:
        known = view.leader_epochs()
    except (CheckpointError, ValueError) as error:
        seen.add(Problem.EPOCHS_CORRUPT, path, reason_of(error))
        return
    if in_use:
        return  # a running broker keeps new epochs in memory until the log is flushed
    for entry in known:
        if entry.start_offset > seen.end_offset:
            detail = f"epoch {entry.epoch} begins at {entry.start_offset}, beyond the log's end"
            seen.add(Problem.EPOCHS_WRONG, path, f"{detail} {seen.end_offset}")
    if not known and seen.epochs:
        seen.add(Problem.EPOCHS_WRONG, path, f"the batches know {len(seen.epochs)}, the file none")
        return
    starts = [entry.start_offset for entry in known]
    for epoch, first in seen.epochs:
        slot = bisect_right(starts, first)
        # Below the first entry: before the log's start, where epochs are forgotten.
        if slot and known[slot - 1].epoch != epoch:
            detail = f"the batch at offset {first} is of epoch {epoch}"
            seen.add(Problem.EPOCHS_WRONG, path, f"{detail}, the file says {known[slot - 1].epoch}")
