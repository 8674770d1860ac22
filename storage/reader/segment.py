"""One segment's files, read only."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from protocol.records.record import Record
from storage.filesystem import FileSystem
from storage.index.mapped_index import MappedIndex
from storage.index.offset_index import OffsetIndex
from storage.index.time_index import TimeIndex
from storage.index.transaction_index import AbortedTxn, TransactionIndex
from storage.paths import index_file, log_file, time_index_file, txn_index_file
from storage.reader.record_file import RecordFileView

if TYPE_CHECKING:
    from storage.reader.columns import Columns, RecordChunk
    from storage.reader.index_problem import IndexProblem

_ANY_SIZE: Final = 2**31 - 1
"""The greatest size of an index, which does not matter to a reader."""


class SegmentView(RecordFileView):
    """One segment's files; they need not all exist. Its record file is the `.log`."""

    def __init__(self, fs: FileSystem, directory: str, base_offset: int, state: str = "") -> None:
        """`state` is "" or the files' further suffix: `.deleted`, `.cleaned`, `.swap`."""
        super().__init__(fs, log_file(directory, base_offset, state))
        self._where = (directory, base_offset, state)
        self.base_offset = base_offset

    @property
    def offset_index_path(self) -> str:
        """Path of the offset index."""
        return index_file(*self._where)

    @property
    def time_index_path(self) -> str:
        """Path of the time index."""
        return time_index_file(*self._where)

    @property
    def txn_index_path(self) -> str:
        """Path of the index of aborted transactions."""
        return txn_index_file(*self._where)

    # Python values.

    def records(self, start_offset: int = 0) -> Iterator[Record]:
        """Every record from `start_offset` on, control records included.

        Raises the records errors at a bad batch, OSError.
        """
        from storage.reader.values import VALUES_CHUNK, iter_values

        records = iter_values(self.frames(chunk=VALUES_CHUNK), start_offset)
        if start_offset <= self.base_offset:
            return records
        return (record for record in records if record.offset >= start_offset)

    def offset_index(self) -> list[tuple[int, int]]:
        """(offset, position) of each entry, padding left out."""
        index = self._offset_index()
        base = self.base_offset
        return [(base + entry, position) for entry, position in index.as_array().tolist()]

    def time_index(self) -> list[tuple[int, int]]:
        """(timestamp, offset) of each entry, padding left out."""
        times = self._times().tolist()
        return [(time, self.base_offset + entry) for time, entry in times]

    def aborted(self) -> list[AbortedTxn]:
        """Aborted transactions with their marker in this segment."""
        return self._txn_index().all_aborted()

    # Columns.

    def batch_columns(self) -> "Columns":
        """One row per batch: dict of numpy arrays, see `columns.BATCH_COLUMNS`."""
        from storage.reader.columns import BATCH_COLUMNS, batch_columns, concatenate

        return concatenate([batch_columns(frames) for frames in self.frames()], BATCH_COLUMNS)

    def iter_columns(self) -> "Iterator[RecordChunk]":
        """The records in chunks of some megabytes of log, with their bytes."""
        from storage.reader.columns import iter_record_columns

        return iter_record_columns(self.frames())

    def columns(self) -> "Columns":
        """One row per record: dict of numpy arrays, see `columns.RECORD_COLUMNS`."""
        from storage.reader.columns import RECORD_COLUMNS, concatenate

        return concatenate([chunk.columns for chunk in self.iter_columns()], RECORD_COLUMNS)

    def offset_index_columns(self) -> "Columns":
        """`offset` (int64, absolute) and `position` (int32), shape (entries,)."""
        table = self._table(self._offset_index())
        return {
            "offset": table["relative_offset"].astype("i8") + self.base_offset,
            "position": table["position"].astype("i4"),
        }

    def time_index_columns(self) -> "Columns":
        """`timestamp` (int64, ms) and `offset` (int64, absolute), shape (entries,)."""
        table = self._times()
        return {
            "timestamp": table["timestamp"].astype("i8"),
            "offset": table["relative_offset"].astype("i8") + self.base_offset,
        }

    @property
    def time_index_size(self) -> int:
        """Bytes of the time index, padding included. Raises OSError when there is none."""
        return self._fs.size(self.time_index_path)

    def aborted_columns(self) -> "Columns":
        """`producer_id`, `first_offset`, `last_offset`, `last_stable_offset`: int64, (entries,)."""
        import numpy

        aborted = self.aborted()
        return {
            name: numpy.array([getattr(txn, name) for txn in aborted], "i8")
            for name in ("producer_id", "first_offset", "last_offset", "last_stable_offset")
        }

    # Checks.

    def sanity_check(self) -> "list[IndexProblem]":
        """Contradictions within the index files, by which a broker decides to rebuild them."""
        from storage.reader.index_check import sanity_of

        parts = (self._offset_index(), self._time_index(), self._txn_index())
        return sanity_of(*parts, self.size if self._fs.exists(self.path) else None)

    def compare_indexes(self, max_batch_size: int | None = None) -> "list[IndexProblem]":
        """Entries of offset and time index that contradict the log, or lead to a larger batch."""
        from storage.reader.index_check import offset_mismatches, oversized, time_mismatches

        # The indexes first: a broker appends to the log and then to them.
        offsets, times = self.offset_index_columns(), self.time_index_columns()
        batches = self.batch_columns()
        problems = offset_mismatches(self.offset_index_path, offsets, batches)
        problems += time_mismatches(self.time_index_path, times, batches)
        if max_batch_size is not None:
            problems += oversized(self.offset_index_path, offsets, batches, max_batch_size)
        return problems

    def check_indexes(self) -> list[str]:
        """Check the indexes alone, then against the batches; return a sentence for each problem."""
        return [str(problem) for problem in self.sanity_check() or self.compare_indexes()]

    def _offset_index(self) -> OffsetIndex:
        return OffsetIndex(self._fs, self.offset_index_path, self.base_offset, _ANY_SIZE)

    def _time_index(self) -> TimeIndex:
        return TimeIndex(self._fs, self.time_index_path, self.base_offset, _ANY_SIZE)

    def _times(self) -> Any:
        """The time index's entries. One of zeros is a record of 1970, or padding if more follow."""
        table = self._table(self._time_index())
        padded = len(table) == 1 and self.time_index_size > table.nbytes and not any(table[0])
        return table[:0] if padded else table

    def _txn_index(self) -> TransactionIndex:
        return TransactionIndex(self._fs, self.txn_index_path, self.base_offset)

    def _table(self, index: MappedIndex) -> Any:
        return index.as_array()
