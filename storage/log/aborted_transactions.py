"""The aborted transactions of one segment, and whether its transaction index is known to be right.

The index is compared with a checksum (`sum`): of the entries that this process wrote, of those that
were noted beside the recovery point (`storage.aborted_checkpoint`), or of those that were found by
reading the log through once (`storage.log.mending`). An index with another checksum is not used:
readers get IndexInDoubt.

Everything here raises OSError.
"""

from collections.abc import Iterable

from storage.errors import IndexInDoubt, IndexKind, InvalidIndexAppend
from storage.index.transaction_index import NO_ABORTED, AbortedTxn, Checksum, TransactionIndex
from storage.log.segment_files import SegmentFiles
from storage.paths import TEMPORARY_SUFFIX


class AbortedTransactions:
    """The transactions whose ABORT markers lie in one segment."""

    __slots__ = ("_files", "_index", "leaves_open", "sum")

    def __init__(self, files: SegmentFiles, *, is_empty: bool) -> None:
        """`is_empty`: the segment has no batches."""
        self._files = files
        self._index: TransactionIndex | None = None
        self.sum: Checksum | None = NO_ABORTED if is_empty else None
        """The right checksum of the index (`TransactionIndex.checksum`); None: not known."""
        self.leaves_open = True
        """Whether a transaction may be open at the end, with an ABORT marker in a later segment."""

    @property
    def index(self) -> TransactionIndex:
        """The transaction index, whose file is made at the first abort."""
        if self._index is None:
            files = self._files
            self._index = TransactionIndex(files.home.fs, files.txn_index_path, files.base_offset)
        return self._index

    # Reading.

    def overlapping(self, offset: int, upper: int) -> tuple[list[AbortedTxn], bool]:
        """Aborted transactions that overlap [offset, upper), and whether later segments have none.

        Raises IndexInDoubt when the index is wrong or was not compared with the log yet.
        """
        return self._trusted().collect_aborted(offset, upper)

    def marker_after(self, offset: int, count: int) -> int | None:
        """The offset of the ABORT marker after the first `count` at or above `offset`; None if this
        segment has no more. Raises IndexInDoubt."""
        return self._trusted().marker_after(offset, count)

    def packed(self) -> bytes:
        """The entries of all transactions. Raises IndexInDoubt."""
        return self._trusted().packed

    def _trusted(self) -> TransactionIndex:
        index = self.index
        if index.checksum != self.sum:
            reason = "is not what was noted" if self.sum is not None else "not known yet"
            raise IndexInDoubt(index.path, index.base_offset, IndexKind.TRANSACTION, reason)
        return index

    def sum_below(self, offset: int) -> Checksum | None:
        """The checksum of the entries of markers below `offset`; None: unknown."""
        if self.sum is None or self.sum == NO_ABORTED:
            return self.sum
        return self.index.checksum_below(offset) if self._is_right() else None

    def _is_right(self) -> bool:
        return self.index.checksum == self.sum

    # Changing.

    def add(self, txn: AbortedTxn) -> None:
        """Index an ABORT marker that was appended."""
        known = self._is_right()
        try:
            self.index.append(txn)
        except InvalidIndexAppend:
            known = False  # the next committed read has the index rebuilt
        self.sum = self.index.checksum if known else None

    def trust(self, *, leaves_open: bool) -> None:
        """Take the index as right: it was compared with the log.

        `leaves_open`: whether a transaction was open at the end.
        """
        self.sum = self.index.checksum
        self.leaves_open = leaves_open

    def rewrite(self, transactions: Iterable[AbortedTxn]) -> None:
        """Make these the content of the index."""
        fs, path = self._files.home.fs, self._files.txn_index_path
        file = fs.open(path + TEMPORARY_SUFFIX, create=True)
        file.truncate(0)
        file.pwrite(b"".join(txn.pack() for txn in transactions), 0)
        file.close()
        fs.rename(path + TEMPORARY_SUFFIX, path)
        self._index = None

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of markers at or above `offset`."""
        known = self._is_right()
        self.index.truncate_to(offset)
        self.sum = self.index.checksum if known else None
        self.leaves_open = True

    def restart(self) -> None:
        """Know of none, before recovery reads every batch again."""
        self.sum = NO_ABORTED
        self.leaves_open = True

    def release(self) -> None:
        """Drop the entries that were read; the next use reads the file again."""
        self._index = None
