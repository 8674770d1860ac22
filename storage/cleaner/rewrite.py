"""The second pass of a cleaning: writes a group of segments into one `.cleaned` segment.

Adjacent batches that are kept whole are copied together; others are rebuilt (`rebuilding`),
emptied, or left out. `retained` and `transactions` decide.

When the group is done its segment is complete: record file, offset and time index, a transaction
index with the aborted transactions that still have data; all cut to size, dated as the last of its
sources (S-CMP-10), and synced. So it may replace them at once (`storage.log.replacing`).
"""

from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np

from protocol.records.batch import CODEC_MASK, read_header
from protocol.records.compression import CompressionType, compress
from protocol.records.deflating import OutputFull, deflate
from storage.cleaner.errors import SegmentOverflow, UncleanableLog, UncleanableReason
from storage.cleaner.fates import FATE_OF_RULE, UNOPENED, BatchFate, BatchRule, RecordFate
from storage.cleaner.legacy import Legacy, converted, open_legacy
from storage.cleaner.mapping import keyed, keys_of
from storage.cleaner.offset_map import OffsetMap
from storage.cleaner.opening import OpenedBatches, Records, chunks_of, open_records
from storage.cleaner.output import CleanedWriter, Output
from storage.cleaner.rebuilding import (
    MOST,
    OriginalHeader,
    empty_batch,
    filled_batch,
    redated_records,
)
from storage.cleaner.redating import NewDates
from storage.cleaner.request import (
    CleanedSegment,
    CleanerStats,
    CleanRequest,
    RewriteStep,
    SourceSegment,
)
from storage.cleaner.retained import (
    BatchPlan,
    BatchVerdicts,
    Codes,
    Columns,
    Flags,
    decide_batches,
    decide_records,
    has_delete_horizon,
    if_empty,
    stays,
    tombstones_stay,
)
from storage.cleaner.transactions import TransactionWalk, control_types, judge_markers
from storage.cleaner.walking import SegmentWalk
from storage.filesystem import FileSystem
from storage.index.mapped_index import MAX_RELATIVE_OFFSET
from storage.reader.frames import Frames

_PLACE: Final = OriginalHeader._fields


class Watcher(Protocol):
    """Gets the fate of every record, in the order of the log: for a dry run."""

    def records(self, batches: Columns, records: Records, fates: Codes) -> None:
        """Called with the records of opened batches; `Records.owners` are indexes of `batches`."""
        ...

    def messages(self, legacy: Legacy, fates: Codes) -> None:
        """Called with messages of formats 0 and 1."""
        ...

    def batches(self, batches: Columns, rules: Codes) -> None:
        """Called with batches and the `BatchRule` of each, for those that were not opened."""
        ...


class GroupRewriter:
    """Writes one group, step by step. All groups of a cleaning share map and transactions."""

    __slots__ = (
        "_fates",
        "_group",
        "_map",
        "_out",
        "_request",
        "_transactions",
        "_walk",
        "_watcher",
        "messages_read",
        "messages_written",
    )

    def __init__(
        self,
        fs: FileSystem,
        request: CleanRequest,
        group: tuple[SourceSegment, ...],
        offset_map: OffsetMap,
        transactions: TransactionWalk,
        *,
        out: Output | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        """`out`: where to write instead of `.cleaned` files, which replace an earlier attempt's.

        Raises OSError.
        """
        self._request = request
        self._group = group
        self._map = offset_map
        self._transactions = transactions
        self._walk = SegmentWalk(fs, request.directory, group, request.io_buffer_bytes)
        self._out: Output = out or CleanedWriter(fs, request, group[0].base_offset)
        self._watcher = watcher
        self._fates = np.zeros(len(RecordFate), np.int64)
        self.messages_read = 0
        self.messages_written = 0

    def step(self, budget: int) -> RewriteStep:
        """Continue until about `budget` bytes are read.

        Raises UncleanableLog, SegmentOverflow, OSError.
        """
        read, written = 0, self._out.size
        self._fates[:] = 0
        self.messages_read = self.messages_written = 0
        while self._walk.current is not None and read < budget:
            for frames, batches in self._walk.pieces():
                self._rewrite(frames, batches)
                read += int(batches["size"].sum())
                if read >= budget:
                    break
            if self._walk.is_at_end:
                self._walk.next_segment()
        written = self._out.size - written
        cleaned = None if self._walk.current is not None else self._finish()
        return RewriteStep(
            read_bytes=read,
            written_bytes=written,
            is_done=cleaned is not None,
            cleaned=cleaned,
            stats=CleanerStats(
                bytes_read=read,
                bytes_written=written,
                messages_read=self.messages_read,
                messages_written=self.messages_written,
                invalid_messages_read=int(self._fates[RecordFate.DROPPED_NO_KEY]),
                fates=tuple(self._fates.tolist()),
            ),
        )

    def discard(self) -> None:
        """Remove what was written. Raises OSError."""
        self._walk.close()
        self._out.discard()

    def close(self) -> None:
        """Close the files and keep what was written."""
        self._walk.close()
        self._out.close()

    def _finish(self) -> CleanedSegment:
        last = self._group[-1]
        checksum = self._out.finish(self._transactions.take_indexed(), last.last_modified_ms)
        return CleanedSegment(
            base_offset=self._group[0].base_offset,
            size=self._out.size,
            sources=tuple(segment.base_offset for segment in self._group),
            aborted_sum=checksum,
            leaves_open=self._transactions.leaves_open,
        )

    # One piece of the log.

    def _rewrite(self, frames: Frames, batches: Columns) -> None:
        source = self._walk.current
        assert source is not None
        self._check_distance(source, batches)
        legacy_stay = source.last_modified_ms > self._request.legacy_horizon_ms
        plan = self._plan(frames, batches, legacy_stay=legacy_stay)
        if frames.legacy:
            self._rewrite_legacy(frames, batches, plan)
        else:
            for opened in open_records(frames, batches, plan.is_opened, self._walk.where):
                part = _part(batches, opened.first, opened.after)
                part_plan = plan.part(opened.first, opened.after)
                starts = frames.starts[opened.first : opened.after]
                if opened.is_large:
                    self._rewrite_large(frames.chunk, starts[0], part, part_plan)
                else:
                    self._rewrite_opened(frames.chunk, starts, part, part_plan, opened)
        self._out.write_down()

    def _check_distance(self, source: SourceSegment, batches: Columns) -> None:
        """Raises SegmentOverflow (S-CMP-15)."""
        last = int(batches["last_offset"][-1])
        if last - self._out.base_offset > MAX_RELATIVE_OFFSET:
            raise SegmentOverflow(source.base_offset, last)

    def _plan(self, frames: Frames, batches: Columns, *, legacy_stay: bool) -> BatchPlan:
        request = self._request
        rules, is_free = self._transactions.rules(batches, control_types(frames, self._walk.where))
        passed = has_delete_horizon(batches) & (batches["base_timestamp"] <= request.now_ms)
        rules, sets_horizon = judge_markers(rules, is_free, passed)
        return BatchPlan(
            rules,
            sets_horizon,
            if_empty(batches, request.active_producers, request.high_watermark),
            tombstones_stay(batches, request.now_ms, legacy_stay=legacy_stay),
        )

    def _judge(self, records: Records, batches: Columns, plan: BatchPlan) -> tuple[Codes, Flags]:
        """The fate of each record, and whether it has a value."""
        owners, columns = records.owners, records.columns
        offsets = batches["base_offset"][owners] + columns.offset_deltas
        rules = plan.rules[owners]
        latest = np.full(len(records), -1, np.int64)
        rows = keyed(records)
        rows = rows[(offsets[rows] <= self._map.latest_offset) & (rules[rows] == BatchRule.BY_KEY)]
        latest[rows] = self._map.latest_of(self._map.hashes_of(keys_of(records, rows)))
        has_value = columns.value_lengths >= 0
        fates = decide_records(
            rules=rules,
            tombstones_stay=plan.tombstones_stay[owners],
            offsets=offsets,
            has_key=columns.key_lengths >= 0,
            has_value=has_value,
            latest=latest,
            map_end=self._map.latest_offset,
        )
        return fates, has_value

    def _count(self, fates: Codes) -> None:
        self._fates += np.bincount(fates, minlength=len(RecordFate))
        self.messages_read += len(fates)

    def _rewrite_opened(
        self,
        chunk: memoryview,
        starts: list[int],
        batches: Columns,
        plan: BatchPlan,
        opened: OpenedBatches,
    ) -> None:
        records = opened.records
        fates, has_value = self._judge(records, batches, plan)
        self._count(fates)
        self._count_unopened(batches, plan)
        if self._watcher is not None:
            self._watcher.batches(batches, plan.rules)
            self._watcher.records(batches, records, fates)
        kept = stays(fates)
        self.messages_written += int(kept.sum())
        verdicts = decide_batches(batches, plan, records.owners, kept, has_value)
        rebuilt = self._rebuilt(batches, verdicts, records, kept)
        self._emit(chunk, starts, batches, verdicts.fates, rebuilt)

    def _count_unopened(self, batches: Columns, plan: BatchPlan) -> None:
        for rule in UNOPENED:
            self._fates[FATE_OF_RULE[rule]] += int(
                batches["record_count"][plan.rules == rule].sum()
            )

    def _emit(
        self,
        chunk: memoryview,
        starts: list[int],
        batches: Columns,
        fates: Codes,
        rebuilt: dict[int, tuple[bytes, int]],
    ) -> None:
        """Write the batches that are kept, in their order."""
        sizes, last, dated = (
            batches[name].tolist() for name in ("size", "last_offset", "max_timestamp")
        )
        run = run_end = 0
        out = self._out
        staying = np.flatnonzero(fates != BatchFate.GONE)
        for index, fate in zip(staying.tolist(), fates[staying].tolist(), strict=True):
            if fate == BatchFate.KEPT_WHOLE:
                start = starts[index]
                if start != run_end:
                    out.add(chunk[run:run_end])
                    run = start
                run_end = start + sizes[index]
                out.note(sizes[index], last[index], dated[index])
                continue
            out.add(chunk[run:run_end])
            run = run_end = 0
            if fate == BatchFate.REWRITTEN:
                data, timestamp = rebuilt[index]
            else:
                data, timestamp = empty_batch(_place(batches, index)), dated[index]
            out.add(data)
            out.note(len(data), last[index], timestamp)
        out.add(chunk[run:run_end])

    def _rebuilt(
        self, batches: Columns, verdicts: BatchVerdicts, records: Records, kept: Flags
    ) -> dict[int, tuple[bytes, int]]:
        """The rewritten batches: index -> (bytes, max timestamp)."""
        anew = verdicts.fates == BatchFate.REWRITTEN
        if not anew.any():
            return {}
        rows = np.flatnonzero(kept & anew[records.owners])
        owners = records.owners[rows]
        indexes, firsts = np.unique(owners, return_index=True)
        bounds = [*firsts.tolist(), len(rows)]
        dates = NewDates(batches, indexes, verdicts.new_horizon, self._request)
        deltas = records.columns.timestamp_deltas[rows]
        timestamps = dates.of_records(np.searchsorted(indexes, owners), deltas)
        bases = dates.bases(timestamps[firsts])
        greatest = dates.greatest(np.maximum.reduceat(timestamps, firsts))
        payloads = redated_records(
            records.payload,
            records.starts[rows],
            records.ends[rows],
            deltas,
            timestamps - bases[np.searchsorted(indexes, owners)],
            bounds,
        )
        found: dict[int, tuple[bytes, int]] = {}
        counts = np.diff(bounds).tolist()
        codecs = (batches["attributes"][indexes] & CODEC_MASK).tolist()
        places = zip(*(batches[name][indexes].tolist() for name in _PLACE), strict=True)
        listed = zip(
            indexes.tolist(),
            places,
            payloads,
            counts,
            codecs,
            bases.tolist(),
            greatest.tolist(),
            dates.horizons.tolist(),
            strict=True,
        )
        for index, place, payload, count, codec, base, most, horizon in listed:
            data = filled_batch(
                compress(CompressionType(codec), payload) if codec else payload,
                OriginalHeader(*place),
                count=count,
                base_timestamp=base,
                max_timestamp=most,
                horizon=horizon,
            )
            found[index] = data, most
        return found

    # One batch that is too large to be opened at once.

    def _rewrite_large(self, chunk: memoryview, at: int, batches: Columns, plan: BatchPlan) -> None:
        """Rewrite a batch in two passes over its records: judge them, then write those kept."""
        judged: list[Codes] = []
        owners = np.zeros(1, np.int64)
        staying = tombstones = 0
        first_delta: int | None = None
        greatest_delta = 0
        for records in chunks_of(chunk, at, self._walk.where):
            fates, has_value = self._judge(records, batches, plan)
            self._count(fates)
            if self._watcher is not None:
                self._watcher.records(batches, records, fates)
            judged.append(fates)
            kept = stays(fates)
            deltas = records.columns.timestamp_deltas[kept]
            if len(deltas):
                if first_delta is None:
                    first_delta = greatest_delta = int(deltas[0])
                greatest_delta = max(greatest_delta, int(deltas.max()))
            staying += len(deltas)
            tombstones += int((kept & ~has_value).sum())
        self.messages_written += staying
        # Decided as for other batches, from stand-ins for the records that are kept.
        sample = np.zeros(staying, np.int64) if staying else owners[:0]
        valued = np.arange(staying) >= tombstones
        verdicts = decide_batches(batches, plan, sample, np.ones(staying, np.bool_), valued)
        rebuilt: dict[int, tuple[bytes, int]] = {}
        if verdicts.fates[0] == BatchFate.REWRITTEN:
            assert first_delta is not None
            dates = NewDates(batches, owners, verdicts.new_horizon, self._request)
            ends = dates.of_records(
                np.zeros(2, np.int64), np.array([first_delta, greatest_delta], np.int64)
            )
            base = int(dates.bases(ends[:1])[0])
            most = int(dates.greatest(ends[1:])[0])
            codec = CompressionType(int(batches["attributes"][0]) & CODEC_MASK)
            pieces = self._pieces_of_large(chunk, at, judged, dates, base)
            try:
                payload = deflate(codec, pieces, most=MOST)
            except OutputFull as error:
                raise UncleanableLog(
                    UncleanableReason.MESSAGE_TOO_LARGE,
                    f"{self._walk.where}: a batch would take more than {error.size} bytes",
                ) from None
            horizon = int(dates.horizons[0])
            data = filled_batch(
                payload,
                _place(batches, 0),
                count=staying,
                base_timestamp=base,
                max_timestamp=most,
                horizon=horizon,
            )
            rebuilt[0] = data, most
        self._emit(chunk, [at], batches, verdicts.fates, rebuilt)

    def _pieces_of_large(
        self, chunk: memoryview, at: int, judged: list[Codes], dates: NewDates, base: int
    ) -> Iterator[bytes]:
        parts = chunks_of(chunk, at, self._walk.where)
        for records, fates in zip(parts, judged, strict=True):
            rows = np.flatnonzero(stays(fates))
            if not rows.size:
                continue
            deltas = records.columns.timestamp_deltas[rows]
            timestamps = dates.of_records(np.zeros(len(rows), np.int64), deltas)
            yield from redated_records(
                records.payload,
                records.starts[rows],
                records.ends[rows],
                deltas,
                timestamps - base,
                (0, len(rows)),
            )

    # Formats 0 and 1.

    def _rewrite_legacy(self, frames: Frames, batches: Columns, plan: BatchPlan) -> None:
        legacy = open_legacy(frames, self._walk.where)
        fates, has_value = self._judge_legacy(legacy, plan)
        self._count(fates)
        if self._watcher is not None:
            self._watcher.messages(legacy, fates)
        kept = stays(fates)
        verdicts = decide_batches(batches, plan, legacy.owners, kept, has_value)
        self.messages_written += int(kept.sum())
        rebuilt: dict[int, tuple[bytes, int]] = {}
        last = batches["last_offset"].copy()
        for index in np.flatnonzero(verdicts.fates == BatchFate.REWRITTEN).tolist():
            rows = np.flatnonzero(kept & (legacy.owners == index)).tolist()
            rebuilt[index] = converted(
                read_header(frames.chunk, frames.starts[index]),
                _place(batches, index),
                [legacy.records[row] for row in rows],
                self._request.new_horizon_ms if verdicts.new_horizon[index] else -1,
            )
            last[index] = legacy.records[rows[-1]].offset
        # A message whose last offset must be kept becomes an empty batch (decision 53). (Kafka
        # marks the log uncleanable.)
        moved = {**batches, "last_offset": last}
        self._emit(frames.chunk, frames.starts, moved, verdicts.fates, rebuilt)

    def _judge_legacy(self, legacy: Legacy, plan: BatchPlan) -> tuple[Codes, Flags]:
        latest = np.full(len(legacy.offsets), -1, np.int64)
        rows = np.flatnonzero(legacy.has_key)
        latest[rows] = self._map.latest_of(self._map.hashes_of(legacy.keys()))
        fates = decide_records(
            rules=plan.rules[legacy.owners],
            tombstones_stay=plan.tombstones_stay[legacy.owners],
            offsets=legacy.offsets,
            has_key=legacy.has_key,
            has_value=legacy.has_value,
            latest=latest,
            map_end=self._map.latest_offset,
        )
        return fates, legacy.has_value


def _part(batches: Columns, first: int, after: int) -> Columns:
    return {name: column[first:after] for name, column in batches.items()}


def _place(batches: Columns, index: int) -> OriginalHeader:
    return OriginalHeader(*(int(batches[name][index]) for name in _PLACE))
