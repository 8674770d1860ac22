"""A cleaning that writes nothing: the fate of every record, by the rules that the cleaner runs.

The cleaner's own code reads and decides (`storage.cleaner.mapping`, `.rewrite`); its output is
dropped. It takes the memory of the map and of a piece of the log.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from storage.cleaner.cleaning import request_for
from storage.cleaner.fates import FATE_OF_RULE, UNOPENED, BatchRule, RecordFate
from storage.cleaner.grouping import groups_of
from storage.cleaner.legacy import Legacy
from storage.cleaner.mapping import MapBuilder
from storage.cleaner.offset_map import OffsetMap
from storage.cleaner.opening import Records
from storage.cleaner.planner import Extent
from storage.cleaner.request import CleanerStats, CleanRequest
from storage.cleaner.retained import Codes, Columns, Ints
from storage.cleaner.rewrite import GroupRewriter
from storage.cleaner.transactions import TransactionWalk
from storage.explain.opened import OpenedLog
from storage.filesystem import FileSystem
from storage.index.transaction_index import NO_ABORTED, Checksum

_STEP = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRecord:
    """One record, or several of a batch that was not opened because all of it is dropped."""

    offset: int
    last_offset: int
    timestamp: int
    """Milliseconds; the batch's if it was not opened."""
    key: bytes | None
    value_size: int | None
    """Bytes; None: null, or not opened."""
    fate: RecordFate
    is_opened: bool


Tell = Callable[[JudgedRecord], None]


def dry_run(
    opened: OpenedLog,
    extent: Extent,
    *,
    now_ms: int,
    map_bytes: int,
    load_factor: float = 0.9,
    tell: Tell | None = None,
    advance: Callable[[int], None] | None = None,
) -> CleanerStats:
    """Read what would be cleaned; `tell` is called with each record, in order.

    `advance` is called with the number of bytes read: of the dirty part first, then of everything.
    Raises UncleanableLog, SegmentOverflow, OSError.
    """
    request = request_for(
        opened.log,
        extent.first_dirty_offset,
        extent.first_uncleanable_offset,
        now_ms=now_ms,
        map_bytes=map_bytes,
        load_factor=load_factor,
    )
    offset_map = OffsetMap.of_bytes(map_bytes, load_factor)
    stats = _map(opened.fs, request, offset_map, advance)
    transactions = TransactionWalk(request.aborted)
    for group in groups_of(request, stats.end_offset):
        rewriter = GroupRewriter(
            opened.fs,
            request,
            group,
            offset_map,
            transactions,
            out=_Nowhere(group[0].base_offset),
            watcher=None if tell is None else _Teller(tell),
        )
        while True:
            step = rewriter.step(_STEP)
            stats = stats.plus(step.stats)
            if advance is not None:
                advance(step.read_bytes)
            if step.is_done:
                break
    return stats


def _map(
    fs: FileSystem,
    request: CleanRequest,
    offset_map: OffsetMap,
    advance: Callable[[int], None] | None,
) -> CleanerStats:
    stats, builder = CleanerStats(), MapBuilder(fs, request, offset_map)
    while True:
        step = builder.step(_STEP)
        stats = stats.plus(step.stats)
        if advance is not None:
            advance(step.read_bytes)
        if step.is_done:
            return stats


class _Nowhere:
    """An `Output` that only counts bytes."""

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.size = 0

    def add(self, data: bytes | memoryview) -> None:
        self.size += len(data)

    def note(self, size: int, last_offset: int, max_timestamp: int) -> None:
        pass

    def write_down(self) -> None:
        pass

    def finish(self, aborted: bytes, modified_ms: int) -> Checksum:
        return NO_ABORTED

    def discard(self) -> None:
        pass

    def close(self) -> None:
        pass


class _Teller:
    """A `Watcher` that puts records and unopened batches in their order."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._waiting: list[JudgedRecord] = []
        """Records of unopened batches, to be merged with the records that come next."""

    def batches(self, batches: Columns, rules: Codes) -> None:
        for index in np.flatnonzero(np.isin(rules, UNOPENED)).tolist():
            if not batches["record_count"][index]:
                continue
            self._waiting.append(
                JudgedRecord(
                    offset=int(batches["base_offset"][index]),
                    last_offset=int(batches["last_offset"][index]),
                    timestamp=int(batches["max_timestamp"][index]),
                    key=None,
                    value_size=None,
                    fate=FATE_OF_RULE[BatchRule(rules[index])],
                    is_opened=False,
                )
            )

    def records(self, batches: Columns, records: Records, fates: Codes) -> None:
        columns, owners = records.columns, records.owners
        offsets = batches["base_offset"][owners] + columns.offset_deltas
        dates = batches["base_timestamp"][owners] + columns.timestamp_deltas
        self._tell_all(
            offsets,
            dates,
            _slices(records.payload, columns.key_starts, columns.key_lengths),
            columns.value_lengths.tolist(),
            fates,
        )

    def messages(self, legacy: Legacy, fates: Codes) -> None:
        found = legacy.records
        self._tell_all(
            legacy.offsets,
            np.array([record.timestamp for record in found], np.int64),
            [record.key for record in found],
            [-1 if record.value is None else len(record.value) for record in found],
            fates,
        )

    def _tell_all(
        self,
        offsets: Ints,
        dates: Ints,
        keys: Sequence[bytes | None],
        value_sizes: Sequence[int],
        fates: Codes,
    ) -> None:
        told = [
            JudgedRecord(
                offset=offset,
                last_offset=offset,
                timestamp=timestamp,
                key=key,
                value_size=None if size < 0 else size,
                fate=RecordFate(fate),
                is_opened=True,
            )
            for offset, timestamp, key, size, fate in zip(
                offsets.tolist(), dates.tolist(), keys, value_sizes, fates.tolist(), strict=True
            )
        ]
        told += self._waiting
        self._waiting = []
        for record in sorted(told, key=lambda one: one.offset):
            self._tell(record)


def _slices(payload: bytes, starts: Ints, lengths: Ints) -> list[bytes | None]:
    return [
        None if length < 0 else payload[start : start + length]
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    ]
