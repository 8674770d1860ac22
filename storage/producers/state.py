"""The producer state of a partition: idempotence, fencing and open transactions.

Two steps per batch, with the write to the file between them:

    verdict = producers.analyze(header, origin)     refuse, recognise a duplicate, or accept
    …append…
    completed = producers.update(header, first, last, timestamp)    remember

and when `completed` is not None: `last_stable_offset(completed)`, a `.txnindex` entry if it was
aborted, then `complete_txn(completed)`. `map_end_offset` is set by the log after each append.

Rules (Kafka 4.3's ProducerStateManager and ProducerAppendInfo), besides those of
`storage.producers.analysis`:

1. The first unstable offset is the first offset of the oldest transaction that is open, or whose
   marker the high watermark has not passed (S-TXN-1).
2. A producer is forgotten when its last batch is older than `expiration_ms`, never while its
   transaction is open (S-IDEM-2).
3. Deleting a producer's records does not forget the producer (S-IDEM-3).

All producers are in memory, in few bytes each (`storage.producers.table`), and on disk in snapshots
(`storage.producers.snapshot`). The log is the truth: after a crash the newest usable snapshot is
read and the log replayed from there (S-REC-5).

Another place asks a transaction's coordinator before its first append (KIP-890,
`TransactionCoordinator.verify_partition`). Only `storage` changes a state; the broker reads it. Not
thread-safe.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Final

from protocol.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader
from protocol.records.control import EndTransactionMarker
from protocol.types import NO_PRODUCER_EPOCH, NO_TIMESTAMP, TopicPartition
from storage.append_origin import CLIENT, REPLICATION, AppendOrigin
from storage.errors import CorruptSnapshot, InvalidProducerEpoch
from storage.filesystem import FileSystem
from storage.producers.analysis import (
    NOT_SEQUENCED,
    REPLICATED,
    UNKNOWN_PRODUCER,
    ProducerVerdict,
    Refused,
    analyze_data,
    check_marker,
)
from storage.producers.entry import CompletedTxn, ProducerStateEntry
from storage.producers.image import ProducerImage
from storage.producers.snapshot import snapshot_rows
from storage.producers.snapshots import SnapshotFiles
from storage.producers.table import ProducerTable

LATE_TRANSACTION_BUFFER_MS: Final = 5 * 60 * 1000
"""How long after its greatest timeout a transaction counts as late: the coordinator's time to end
it."""
DEFAULT_EXPIRATION_MS: Final = 86_400_000

_log = logging.getLogger(__name__)


class ProducerStateManager:
    """The producers of one partition, as its log knows them.

    `directory` is the partition's. `names` are its file names, if the caller has listed it already;
    otherwise it is listed here (OSError). `random`: see `SnapshotFiles`. `truncate_and_reload`
    loads the state.
    """

    __slots__ = (
        "_at_hand",
        "_fetch",
        "_fs",
        "_last_snapshot_offset",
        "_ongoing",
        "_table",
        "_unreplicated",
        "expiration_ms",
        "map_end_offset",
        "snapshots",
        "topic_partition",
    )

    def __init__(
        self,
        fs: FileSystem,
        topic_partition: TopicPartition,
        directory: str,
        *,
        expiration_ms: int = DEFAULT_EXPIRATION_MS,
        names: Iterable[str] | None = None,
        random: Random | None = None,
    ) -> None:
        self._fs = fs
        self.topic_partition = topic_partition
        self.expiration_ms = expiration_ms
        """`producer.id.expiration.ms`; may be changed at any time."""
        self.snapshots = SnapshotFiles(fs, directory, names, random)
        self.map_end_offset = 0
        """The state covers all batches below this offset; the log sets it after each append."""
        self._last_snapshot_offset = 0
        self._table = ProducerTable()
        # Used for each batch: `at_hand.get(id) or fetch(id)`.
        self._at_hand = self._table.at_hand
        self._fetch = self._table.fetch
        # First offset -> producer id. Transactions begin at rising offsets, so insertion order is
        # offset order.
        self._ongoing: dict[int, int] = {}
        # First offset -> offset of the marker, of transactions that end above the high watermark.
        self._unreplicated: dict[int, int] = {}

    # --- queries

    @property
    def producers(self) -> Mapping[int, ProducerStateEntry]:
        """Producer id to state, of all producers; to be read only, and before the next change."""
        return self._table

    def entry(self, producer_id: int) -> ProducerStateEntry | None:
        """The state of one producer; None if it is unknown."""
        return self._at_hand.get(producer_id) or self._fetch(producer_id)

    @property
    def producer_count(self) -> int:
        """How many producers are remembered."""
        return len(self._table)

    @property
    def is_empty(self) -> bool:
        """Whether no producer is remembered and no transaction waits for the high watermark."""
        return not self._table and not self._unreplicated

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset a committed reader must not see yet (rule 1); None if there is none."""
        if not self._unreplicated:
            return next(iter(self._ongoing), None)
        first = min(self._unreplicated)
        if self._ongoing:
            return min(first, next(iter(self._ongoing)))
        return first

    @property
    def oldest_transaction(self) -> tuple[int, int] | None:
        """(first offset, producer id) of the oldest open transaction."""
        return next(iter(self._ongoing.items()), None)

    def image(self) -> ProducerImage:
        """All producers at this moment, for any thread; takes microseconds (`ProducerImage`)."""
        return self._table.image()

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """The log's last stable offset once `completed` is stable, for its `.txnindex` entry.

        Call it before `complete_txn`.
        """
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def has_late_transaction(self, now_ms: int, max_timeout_ms: int) -> bool:
        """Whether the oldest open transaction has outlived every allowed timeout: it hangs.

        `max_timeout_ms` is `transaction.max.timeout.ms`, what a producer may ask for.
        """
        last = self._oldest_transaction_timestamp()
        allowed = max_timeout_ms + LATE_TRANSACTION_BUFFER_MS
        return last > 0 and now_ms - last > allowed

    def _oldest_transaction_timestamp(self) -> int:
        for producer_id in self._ongoing.values():
            entry = self.entry(producer_id)
            return entry.last_timestamp if entry is not None else NO_TIMESTAMP
        return NO_TIMESTAMP

    # --- before the append

    def analyze(
        self,
        header: BatchHeader,
        origin: AppendOrigin,
        marker: EndTransactionMarker | None = None,
        *,
        transaction_version: int = 0,
    ) -> ProducerVerdict:
        """Whether a batch that carries a producer id may be appended. Changes nothing.

        `marker` is the parsed content of a control batch. With `transaction_version` 2 (KIP-890)
        markers must carry a higher epoch than the transaction's data.

        Raises OutOfOrderSequence, InvalidProducerEpoch, InvalidTransactionState,
        TransactionCoordinatorFenced.
        """
        if origin is REPLICATION:
            return REPLICATED
        producer_id = header.producer_id
        entry = self._at_hand.get(producer_id) or self._fetch(producer_id)
        if entry is None:
            if header.producer_epoch < NO_PRODUCER_EPOCH:
                raise InvalidProducerEpoch(
                    f"Epoch is {header.producer_epoch}, which is smaller than any "
                    f"(producer {header.producer_id}, partition {self.topic_partition})"
                )
            return UNKNOWN_PRODUCER
        try:
            if header.attributes & CONTROL_BIT:
                if marker is not None:
                    check_marker(entry, header.producer_epoch, marker, transaction_version)
                return NOT_SEQUENCED
            return analyze_data(entry, header, is_client=origin is CLIENT)
        except Refused as refused:
            raise refused.error(
                f"{refused} (producer {producer_id}, partition {self.topic_partition}, "
                f"log end offset {self.map_end_offset})"
            ) from None

    # --- after the append

    def update(
        self,
        header: BatchHeader,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        marker: EndTransactionMarker | None = None,
    ) -> CompletedTxn | None:
        """Remember an appended (or replayed) batch that carries a producer id.

        `timestamp` is the greatest of the batch as stored, or the marker's, in milliseconds.
        Returns the transaction that a marker has closed, if it has data in this partition.
        """
        producer_id = header.producer_id
        entry = self._at_hand.get(producer_id) or self._fetch(producer_id)
        attributes = header.attributes
        if attributes & CONTROL_BIT:
            if marker is None:
                return None  # compaction has removed the batch's record
            if entry is None:
                entry = ProducerStateEntry(producer_id)
                self._table.add(entry)
            return self._close_transaction(
                entry, header.producer_epoch, last_offset, timestamp, marker
            )
        if entry is None:
            entry = ProducerStateEntry(producer_id)
            self._table.add(entry)
        elif header.producer_epoch < entry.producer_epoch:
            _log.warning(
                "Epoch of producer %d at offset %d in %s is %d, below the last seen epoch %d",
                producer_id,
                first_offset,
                self.topic_partition,
                header.producer_epoch,
                entry.producer_epoch,
            )
        entry.add_batch(
            header.producer_epoch, header.last_sequence, first_offset, last_offset, timestamp
        )
        if not entry.is_changed:
            self._table.note_changed(entry)
        if attributes & TRANSACTIONAL_BIT and entry.current_txn_first_offset < 0:
            entry.current_txn_first_offset = first_offset
            self._ongoing[first_offset] = producer_id
        return None

    def _close_transaction(
        self,
        entry: ProducerStateEntry,
        epoch: int,
        last_offset: int,
        timestamp: int,
        marker: EndTransactionMarker,
    ) -> CompletedTxn | None:
        if marker.coordinator_epoch < entry.coordinator_epoch:
            _log.info(
                "Marker of coordinator epoch %d, producer %d, offset %d in %s is older than %d",
                marker.coordinator_epoch,
                entry.producer_id,
                last_offset,
                self.topic_partition,
                entry.coordinator_epoch,
            )
        first_offset = entry.current_txn_first_offset
        entry.end_transaction(epoch, marker.coordinator_epoch, timestamp)
        self._table.note_changed(entry)
        if first_offset < 0:
            return None
        return CompletedTxn(
            producer_id=entry.producer_id,
            first_offset=first_offset,
            last_offset=last_offset,
            is_aborted=not marker.is_commit,
        )

    def complete_txn(self, completed: CompletedTxn) -> None:
        """Close a transaction whose marker is in the log (and in the `.txnindex`): from now on it
        only waits for the high watermark.

        Raises ValueError when no such transaction is open: a bug.
        """
        if self._ongoing.pop(completed.first_offset, None) is None:
            raise ValueError(f"{completed} of {self.topic_partition} was not started")
        self._unreplicated[completed.first_offset] = completed.last_offset

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Forget completed transactions whose marker is below `high_watermark`: they are stable."""
        if self._unreplicated:
            self._forget_replicated(high_watermark)

    def _forget_replicated(self, offset: int) -> None:
        self._unreplicated = {
            first: last for first, last in self._unreplicated.items() if last >= offset
        }

    def start_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Forget the batches of a known producer, and set its epoch, during a replay."""
        entry = self.entry(producer_id)
        if entry is not None:
            entry.start_epoch(producer_epoch)
            self._table.note_changed(entry)

    # --- forgetting

    async def expire(self, now_ms: int) -> int:
        """Forget producers that were idle for `expiration_ms` (rule 2); returns how many.

        `now_ms` is wall-clock milliseconds.
        """
        return await self._table.forget(self._is_expired(now_ms))

    def _is_expired(self, now_ms: int) -> Callable[[int, int], bool]:
        """A predicate on (timestamp, current txn first offset)."""
        latest = now_ms - self.expiration_ms
        return lambda timestamp, first_offset: timestamp <= latest and first_offset < 0

    def _clear(self) -> None:
        self._table.clear()
        self._ongoing.clear()
        # A log is cut at or below its high watermark, so no completed transaction waits for that.
        self._unreplicated.clear()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forget all and delete all snapshots: the log is empty at `offset`. Raises OSError."""
        self._clear()
        self.snapshots.delete_all()
        self._last_snapshot_offset = 0
        self.map_end_offset = offset

    def truncate_and_reload(self, first_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Load the newest usable snapshot of a log that ends at `log_end_offset` (S-REC-5).

        `first_offset` is the first segment's base, whatever the log start: the snapshot there holds
        the producers whose records are all gone (S-IDEM-3). Snapshots outside the range are
        deleted. A state that already ends at `log_end_offset` stays. Otherwise the caller replays
        the log from `map_end_offset` on. Raises OSError.
        """
        self.snapshots.delete_outside(first_offset, log_end_offset)
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset_incremented(first_offset)
        else:
            self._clear()
            self._load_newest(first_offset, now_ms)

    def _load_newest(self, first_offset: int, now_ms: int) -> None:
        while (offset := self.snapshots.latest) is not None:
            try:
                rows = self._read_snapshot(offset)
            except CorruptSnapshot as error:
                _log.warning("Deleting a producer snapshot that cannot be used: %s", error)
                self.snapshots.delete(offset)
                continue
            self._table.load(rows, self._is_expired(now_ms))
            self._ongoing = dict(sorted(self._table.open_transactions()))
            break
        else:
            offset = first_offset
        self._last_snapshot_offset = offset
        self.map_end_offset = offset

    def _read_snapshot(self, offset: int) -> Sequence[bytes | bytearray]:
        """The rows of a snapshot, in blocks. Raises CorruptSnapshot, OSError."""
        pending = self.snapshots.pending(offset)
        if pending is not None:
            return pending.pieces
        path = self.snapshots.path(offset)
        return (snapshot_rows(self._fs.read_bytes(path), path),)

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Forget completed transactions below `log_start_offset`; producers stay (S-IDEM-3)."""
        self._forget_replicated(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        latest = self.snapshots.latest
        self._last_snapshot_offset = log_start_offset if latest is None else latest

    # --- snapshots

    def take_snapshot(self, *, sync: bool = True) -> int | None:
        """Make a snapshot at `map_end_offset`, unless nothing was appended since the last one.

        Returns its offset. Without `sync`, the next flush of the log syncs it, and writes it if it
        is large. Raises OSError.
        """
        offset = self.map_end_offset
        if offset <= self._last_snapshot_offset:
            return None
        self.snapshots.write(offset, self._table.image(), sync=sync)
        self._last_snapshot_offset = offset
        return offset

    def update_parent_dir(self, directory: str) -> None:
        """Note that the partition directory was renamed to `directory`."""
        self.snapshots.directory = directory

    def _check(self) -> None:
        self._table._check()
        for producer_id, entry in self._table.items():
            first = entry.current_txn_first_offset
            assert first < 0 or self._ongoing.get(first) == producer_id
        assert list(self._ongoing) == sorted(self._ongoing)
        assert not self._ongoing.keys() & self._unreplicated.keys()
        self.snapshots._check()
