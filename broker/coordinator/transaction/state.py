"""One transactional id: the value of its record, and which state may follow which.

Pure. `TransactionValue` is the value of a record of `__transaction_state`; `Transaction` is the id
with its last durable value. A change is

    record = transaction.becoming(…a new value…)      refuses what VALID_NEXT forbids
    …the record is written…                           it is in flight, and the id is in transition
    transaction.replay(record.value)                  it is durable; not called if the write fails

While it is in flight no other change may begin: requests get CONCURRENT_TRANSACTIONS.

Rules (Kafka's TransactionMetadata; S-TXN-4, S-TXN-7)

1. An epoch above 32765 is exhausted: the next owner gets a new producer id with epoch 0. The last
   epoch, 32767, is reserved: it is never given out, and fences the owner of 32766.
2. `last_producer_epoch` is the epoch before the last bump, by which a retry of that bump is
   recognised (KIP-360). It is not in the record, so it is unknown (-1) after a restart.
3. With transactions of version 2 (KIP-890) each end of a transaction raises the epoch. If the epoch
   is exhausted, the decision carries `next_producer_id`, the markers carry 32767, and the completed
   transaction has the new id with epoch 0.
4. Fencing an owner in an open transaction (timeout, or a new owner) writes an abort of version 2
   under a raised epoch; rule 3 holds for it. If that write fails the epoch is raised in memory, and
   the next fence does not raise it again.

`decisions.py` decides which request leads to which value.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from broker.coordinator.runtime.in_flight import InFlight
from protocol.types import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TopicPartition,
)

LAST_EPOCH: Final = 2**15 - 1
VERSION_2: Final = 2
"""The level of the feature transaction.version from which epochs rise with each transaction."""


class TransactionState(IntEnum):
    """States, with the numbers of the record's `transaction_status`."""

    EMPTY = 0
    """The id has an owner and no transaction."""
    ONGOING = 1
    """Partitions were added; they may have been written to."""
    PREPARE_COMMIT = 2
    """The commit is decided; the markers are being written."""
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    """All markers are written."""
    COMPLETE_ABORT = 5
    DEAD = 6
    """The id has expired; its tombstone is being written."""
    PREPARE_EPOCH_FENCE = 7
    """The owner is being fenced; never written."""

    @property
    def label(self) -> str:
        """The name that requests and Kafka's tools use."""
        return "".join(part.capitalize() for part in self.name.split("_"))


_STATES_BY_LABEL: Final = {state.label: state for state in TransactionState}


def state_from_label(label: str) -> TransactionState | None:
    """Return the state with this label; None when there is none."""
    return _STATES_BY_LABEL.get(label)


_S = TransactionState
VALID_NEXT: Final[dict[TransactionState, frozenset[TransactionState]]] = {
    _S.EMPTY: frozenset((_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD)),
    _S.ONGOING: frozenset(
        (_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT, _S.PREPARE_EPOCH_FENCE)
    ),
    _S.PREPARE_COMMIT: frozenset((_S.COMPLETE_COMMIT,)),
    _S.PREPARE_ABORT: frozenset((_S.COMPLETE_ABORT,)),
    _S.COMPLETE_COMMIT: frozenset((_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD)),
    _S.COMPLETE_ABORT: frozenset((_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT, _S.DEAD)),
    _S.PREPARE_EPOCH_FENCE: frozenset((_S.PREPARE_ABORT,)),
    _S.DEAD: frozenset(),
}
"""By state, the states that may follow. PREPARE_ABORT after Empty or Complete is version 2's abort
of a transaction that added no partition."""

PREPARED: Final = frozenset((_S.PREPARE_COMMIT, _S.PREPARE_ABORT))
COMPLETE: Final = frozenset((_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT))
AT_REST: Final = COMPLETE | {_S.EMPTY}
"""No transaction is open: the id may get a new owner, and may expire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionValue:
    """The value of a record. Times are wall-clock milliseconds."""

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    """When the first partition was added to the open transaction, or else to the last one."""
    updated_ms: int
    client_version: int = 0
    """The transaction.version that the owner of the transaction speaks."""

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the next owner needs a new producer id (rule 1)."""
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def bumps_epochs(self) -> bool:
        """Whether each end of a transaction raises the epoch (rule 3)."""
        return self.client_version >= VERSION_2


def is_epoch_exhausted(epoch: int) -> bool:
    """Whether no owner may get the epoch after this one (rule 1)."""
    return epoch >= LAST_EPOCH - 1


@dataclass(slots=True)
class TransactionRecord:
    """Gives the id `key` this value; None: the id is forgotten (tombstone).

    Never changed, but not frozen, because freezing costs more than everything else done with it.
    """

    key: str
    value: TransactionValue | None


class InvalidTransactionTransition(Exception):
    """A bug: a decision asked for a change that VALID_NEXT forbids."""


class Transaction:
    """A transactional id with its last durable value."""

    __slots__ = ("_in_flight", "fence_failed", "transactional_id", "value")

    def __init__(
        self, transactional_id: str, value: TransactionValue, in_flight: InFlight[TransactionRecord]
    ) -> None:
        """`in_flight` is the table of its shard."""
        self.transactional_id = transactional_id
        self.value = value
        """The last durable value; its epoch is raised after a failed fence (rule 4)."""
        self._in_flight = in_flight
        self.fence_failed = False
        """The epoch was raised to fence the owner, but that could not be written (rule 4)."""

    def __repr__(self) -> str:
        under_way = [
            "Dead" if record.value is None else record.value.state.label
            for record in self._in_flight.of(self.transactional_id)
        ]
        way = " -> ".join([self.value.state.label, *under_way])
        return f"Transaction({self.transactional_id!r}, {way})"

    @property
    def state(self) -> TransactionState:
        """The last durable state."""
        return self.value.state

    @property
    def in_transition(self) -> bool:
        """Whether a record of the id is in flight."""
        return self.transactional_id in self._in_flight

    def becoming(self, after: TransactionValue | None) -> TransactionRecord:
        """Return the record that changes it to `after`; None: a tombstone.

        Raises InvalidTransactionTransition.
        """
        state = TransactionState.DEAD if after is None else after.state
        if self.in_transition:
            raise InvalidTransactionTransition(f"{self} is asked for {state.label} meanwhile")
        if state not in VALID_NEXT[self.value.state]:
            raise InvalidTransactionTransition(f"{self} cannot become {state.label}")
        return TransactionRecord(self.transactional_id, after)

    def replay(self, value: TransactionValue) -> None:
        """Take over a durable value."""
        self.value = value
        if value.state in COMPLETE:
            self.fence_failed = False

    def note_failed_fence(self, epoch: int) -> None:
        """The write that fences the owner has failed: raise the epoch in memory, once (rule 4)."""
        if not self.fence_failed:
            last = self.value.producer_epoch
            self.value = replace(self.value, producer_epoch=epoch, last_producer_epoch=last)
        self.fence_failed = True

    def _check(self) -> None:
        """Invariants, for tests."""
        value = self.value
        assert NO_PRODUCER_EPOCH <= value.producer_epoch <= LAST_EPOCH
        assert value.state not in (_S.DEAD, _S.PREPARE_EPOCH_FENCE)
        assert not value.partitions or value.state in PREPARED | {_S.ONGOING}
        if value.state is not _S.EMPTY:
            assert value.start_ms >= 0
        if value.next_producer_id >= 0:
            assert value.state in PREPARED
