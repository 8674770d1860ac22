"""A log in memory whose keys and values a test chooses, and which the test cleans."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from protocol.records.batch import BatchHeader, iter_batches
from protocol.records.builder import build_batch
from protocol.records.compression import CompressionType
from protocol.records.control import ControlType
from protocol.records.record import Record, iter_records
from storage.cleaner.cleaning import clean_here, request_for
from storage.cleaner.request import CleanerStats
from storage.log.results import AppendInfo
from tests.support.committed_records import committed_records
from tests.support.log_builder import DIRECTORY, LogBuilder

__all__ = ["CODECS", "DIRECTORY", "CompactedLog", "Pair"]

Pair = tuple[bytes | None, bytes | None]
"""Key and value."""

MAP_BYTES = 24 * 4096


@dataclass(frozen=True, slots=True)
class Seen:
    """A record as a reader sees it."""

    offset: int
    key: bytes | None
    value: bytes | None


class CompactedLog(LogBuilder):
    """`cleaned_to` is the offset where the next cleaning begins, in place of the checkpoint."""

    def __init__(self, **config: Any) -> None:
        config.setdefault("cleanup_policy", frozenset({"compact"}))
        super().__init__(**config)
        self.cleaned_to = 0

    def put(self, *pairs: Pair, leader_epoch: int = 0, **fields: Any) -> AppendInfo:
        """Append one batch of these records with the current time."""
        now = self.clock.wall_ms()
        data = bytearray(build_batch([(now, key, value, ()) for key, value in pairs], **fields))
        info = self.log.append_as_leader(data, leader_epoch=leader_epoch)
        self.log.update_high_watermark(self.log.log_end_offset)
        return info

    def append_unchecked(self, *pairs: Pair) -> None:
        """Append one batch that a compacted topic would refuse from a client."""
        now, base = self.clock.wall_ms(), self.log.log_end_offset
        data = build_batch([(now, key, value, ()) for key, value in pairs], base_offset=base)
        self.log.appender.append_as_follower(data)
        self.log.update_high_watermark(self.log.log_end_offset)

    def keys(self, *keys: int, **fields: Any) -> AppendInfo:
        """Append one batch of records whose keys are these numbers, each with a value."""
        return self.put(*((str(key).encode(), b"v%d" % key) for key in keys), **fields)

    def transactional(self, producer_id: int, sequence: int, *pairs: Pair) -> AppendInfo:
        return self.put(
            *pairs,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )

    def abort(self, producer_id: int) -> AppendInfo:
        return self.end_transaction(producer_id, ControlType.ABORT)

    def commit(self, producer_id: int) -> AppendInfo:
        return self.end_transaction(producer_id, ControlType.COMMIT)

    def request(self, *, end: int | None = None, **options: Any) -> Any:
        options.setdefault("map_bytes", MAP_BYTES)
        end = self.log.segments.active.base_offset if end is None else end
        return request_for(self.log, self.cleaned_to, end, now_ms=self.clock.wall_ms(), **options)

    def clean(
        self,
        *,
        roll: bool = True,
        end: int | None = None,
        step_bytes: int = 1 << 20,
        **options: Any,
    ) -> CleanerStats:
        """Clean up to the active segment; with `roll`, roll it first."""
        if roll and self.log.segments.active.size:
            self.log.roll()
        request = self.request(end=end, **options)
        stats = clean_here(self.log, request, step_bytes=step_bytes)
        self.cleaned_to = stats.end_offset
        return stats

    # The log's content.

    def batches(self) -> list[tuple[BatchHeader, list[Record]]]:
        """Return every batch with its records, from the files."""
        found = []
        for segment in self.log.segments:
            data = segment.file.pread(segment.size, 0)
            for position, header in iter_batches(data):
                found.append((header, list(iter_records(data, position))))
        return found

    def seen(self) -> list[Seen]:
        """Return data records, aborted ones too."""
        return [
            Seen(record.offset, record.key, record.value)
            for header, records in self.batches()
            if not header.is_control
            for record in records
        ]

    def offsets(self) -> list[int]:
        return [one.offset for one in self.seen()]

    def committed(self) -> list[Seen]:
        """Return what a read_committed consumer sees, which it decides by the aborted list."""
        records = committed_records(self.log, most=1 << 14)
        return [Seen(record.offset, record.key, record.value) for record in records]

    @staticmethod
    def state_of(seen: Iterable[Seen]) -> dict[bytes, bytes]:
        """Return the last value of each key, as a reader from the beginning finds it."""
        state: dict[bytes, bytes] = {}
        for one in seen:
            if one.key is None:
                continue
            if one.value is None:
                state.pop(one.key, None)
            else:
                state[one.key] = one.value
        return state


CODECS = tuple(CompressionType)
