"""A partition's memory of one producer: its epoch, its last five batches, its transaction.

Five, because the Java client keeps at most five requests in flight per connection when it is
idempotent: a retry of any of them must be recognised as such (S-IDEM-1). Kafka's
ProducerStateEntry and BatchMetadata. Made and changed by `storage.producers.state` only.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from protocol.types import MAX_SEQUENCE, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP

BATCHES_TO_RETAIN: Final = 5
NO_RECORD_OFFSET: Final = -1


def decrement_sequence(sequence: int, by: int) -> int:
    """`sequence - by`, where 2147483647 comes before 0."""
    if sequence < by:
        return MAX_SEQUENCE - (by - sequence) + 1
    return sequence - by


class BatchMetadata(NamedTuple):
    """One appended batch: the fields by which a duplicate is recognised and answered."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    """Last offset minus first offset."""
    timestamp: int
    """The greatest of the batch, in milliseconds."""

    @property
    def first_sequence(self) -> int:
        """Sequence of the batch's first record."""
        return decrement_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        """Offset of the batch's first record."""
        return self.last_offset - self.offset_delta


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedTxn:
    """A transaction whose marker was appended."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the marker."""
    is_aborted: bool


_FIELDS: Final = len(BatchMetadata._fields)
_KEPT: Final = _FIELDS * (BATCHES_TO_RETAIN - 1)
"""How many numbers of `recent` stay when a batch is added."""


class ProducerStateEntry:
    """State of one producer id in one partition. Absent values are -1, as in the snapshot.

    A partition may know half a million of them, so the batches are one flat tuple: five tuples in a
    deque take four times as much.
    """

    __slots__ = (
        "_recent",
        "coordinator_epoch",
        "current_txn_first_offset",
        "is_changed",
        "last_sequence",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        *,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = NO_TIMESTAMP,
        current_txn_first_offset: int = NO_RECORD_OFFSET,
        recent: tuple[int, ...] = (),
    ) -> None:
        """`recent`: the fields of up to five `BatchMetadata`, one batch after the other."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        """Time of the last batch or marker, in milliseconds: expiry counts from it (S-IDEM-2)."""
        self.current_txn_first_offset = current_txn_first_offset
        """First offset of the open transaction; -1 when there is none."""
        self._recent = recent
        self.last_sequence = recent[-_FIELDS] if recent else NO_SEQUENCE
        """Last sequence of the last batch in this epoch; -1 when there is none."""
        self.is_changed = False
        """Whether `ProducerTable` has yet to update the row of this entry."""

    def __repr__(self) -> str:
        return (
            f"ProducerStateEntry(producer_id={self.producer_id}, epoch={self.producer_epoch}, "
            f"coordinator_epoch={self.coordinator_epoch}, last_timestamp={self.last_timestamp}, "
            f"current_txn_first_offset={self.current_txn_first_offset}, batches={self.batches})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProducerStateEntry):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self.producer_id)

    def _fields(self) -> tuple[object, ...]:
        return (
            self.producer_id,
            self.producer_epoch,
            self.coordinator_epoch,
            self.last_timestamp,
            self.current_txn_first_offset,
            self._recent,
        )

    @property
    def recent(self) -> tuple[int, ...]:
        """The fields of `batches`, one batch after the other."""
        return self._recent

    @property
    def batches(self) -> tuple[BatchMetadata, ...]:
        """The remembered batches of the current epoch, oldest first."""
        recent = self._recent
        return tuple(
            BatchMetadata(*recent[at : at + _FIELDS]) for at in range(0, len(recent), _FIELDS)
        )

    @property
    def last_batch(self) -> BatchMetadata | None:
        """The batch appended last in this epoch."""
        return BatchMetadata(*self._recent[-_FIELDS:]) if self._recent else None

    @property
    def is_empty(self) -> bool:
        """Whether no batch of this epoch is remembered, as when only a marker was appended."""
        return not self._recent

    def restore(self, recent: tuple[int, ...]) -> None:
        """Set the remembered batches to those of another entry's `recent`, which is not empty."""
        self._recent = recent
        self.last_sequence = recent[-_FIELDS]

    def find_duplicate(self, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        """The remembered batch with exactly these sequences."""
        if last_sequence not in self._recent[::_FIELDS]:
            return None  # Most batches are no duplicates: no loop for them.
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                return batch
        return None

    def start_epoch(self, producer_epoch: int) -> None:
        """Set the producer epoch and forget the batches: sequences begin again at 0."""
        self.producer_epoch = producer_epoch
        self._recent = ()
        self.last_sequence = NO_SEQUENCE

    def add_batch(
        self,
        producer_epoch: int,
        last_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
    ) -> None:
        """Remember an appended batch, forgetting the oldest of five."""
        if producer_epoch != self.producer_epoch:
            self.start_epoch(producer_epoch)
        self._recent = self._recent[-_KEPT:] + (  # noqa: RUF005 - unpacking takes a list first
            last_sequence,
            last_offset,
            last_offset - first_offset,
            timestamp,
        )
        self.last_sequence = last_sequence
        self.last_timestamp = timestamp

    def end_transaction(self, producer_epoch: int, coordinator_epoch: int, timestamp: int) -> None:
        """Note an appended marker; if its epoch is newer, that fences the old one (S-TXN-2)."""
        if producer_epoch != self.producer_epoch:
            self.start_epoch(producer_epoch)
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = NO_RECORD_OFFSET
        self.last_timestamp = timestamp

    def _check(self) -> None:
        assert len(self._recent) <= BATCHES_TO_RETAIN * _FIELDS
        assert len(self._recent) % _FIELDS == 0
        offsets = [batch.last_offset for batch in self.batches]
        assert offsets == sorted(set(offsets))
        last = self.last_batch
        assert self.last_sequence == (last.last_sequence if last else NO_SEQUENCE)
        assert self.current_txn_first_offset >= NO_RECORD_OFFSET
