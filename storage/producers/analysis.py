"""Whether a batch may be appended, given its producer's state: checks that change nothing.

Rules (Kafka 4.3's ProducerAppendInfo):

1. A duplicate of one of the last five batches of a producer (same epoch, same first and last
   sequence) is answered with the offsets of the first time (S-IDEM-1, S-APP-10).
2. A client's batch must continue the producer's sequence, 0 following 2147483647; a new epoch
   begins at 0; an older epoch is fenced. A producer that the partition does not know may begin
   anywhere: its records may have been deleted (S-IDEM-3).
3. Coordinators' batches have no sequences: only the epoch is checked. Replicated batches and those
   replayed by recovery were checked by the leader and never come here.
4. A transaction opens with its first batch and closes with a marker. While it is open, the
   producer's other batches are refused (S-TXN-1). Markers of a deposed coordinator are refused
   (S-TXN-2).

`broker.coordinator.transaction.gate` has asked before whether the transaction may write to the
partition at all (KIP-890). Called by `storage.producers.state` only.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from protocol.records.batch import TRANSACTIONAL_BIT, BatchHeader
from protocol.records.control import EndTransactionMarker
from protocol.types import MAX_SEQUENCE, NO_PRODUCER_EPOCH
from storage.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from storage.producers.entry import BatchMetadata, ProducerStateEntry

_MAX_EPOCH: Final = 2**15 - 1


class ProducerDecision(Enum):
    """Why a batch may be appended, or is not appended again."""

    IN_SEQUENCE = "it continues the producer's sequence"
    UNKNOWN_PRODUCER = "nothing is known of the producer, so any sequence is accepted"
    NEW_EPOCH = "it begins a new producer epoch at sequence 0"
    NOT_SEQUENCED = "a coordinator's batch or a marker: only epochs are checked"
    REPLICATED = "the leader has checked it"
    DUPLICATE = "it was appended before"


@dataclass(slots=True, eq=False)
class ProducerVerdict:
    """The decision about a batch that was not refused."""

    decision: ProducerDecision
    duplicate_of: BatchMetadata | None = None
    """The batch appended the first time, to be answered with instead of appending."""


# Shared: verdicts without a duplicate never differ.
IN_SEQUENCE: Final = ProducerVerdict(ProducerDecision.IN_SEQUENCE)
UNKNOWN_PRODUCER: Final = ProducerVerdict(ProducerDecision.UNKNOWN_PRODUCER)
NEW_EPOCH: Final = ProducerVerdict(ProducerDecision.NEW_EPOCH)
NOT_SEQUENCED: Final = ProducerVerdict(ProducerDecision.NOT_SEQUENCED)
REPLICATED: Final = ProducerVerdict(ProducerDecision.REPLICATED)


class Refused(Exception):
    """A check failed; the caller adds the partition to the message and raises `error`."""

    def __init__(
        self,
        error: type[
            OutOfOrderSequence
            | InvalidProducerEpoch
            | InvalidTransactionState
            | TransactionCoordinatorFenced
        ],
        message: str,
    ) -> None:
        super().__init__(message)
        self.error = error


def analyze_data(
    entry: ProducerStateEntry, header: BatchHeader, *, is_client: bool
) -> ProducerVerdict:
    """Check a data batch by rules 1 to 4. Raises Refused."""
    verdict = NOT_SEQUENCED
    if header.producer_epoch != entry.producer_epoch:
        verdict = _analyze_epoch(entry, header, is_client)
    elif is_client:
        sequence = header.base_sequence
        duplicate = entry.find_duplicate(sequence, header.last_sequence)
        if duplicate is not None:
            return ProducerVerdict(ProducerDecision.DUPLICATE, duplicate)
        last = entry.last_sequence
        if sequence == last + 1 or (sequence == 0 and last == MAX_SEQUENCE):
            verdict = IN_SEQUENCE
        elif entry.producer_epoch == NO_PRODUCER_EPOCH:
            verdict = UNKNOWN_PRODUCER
        else:
            raise Refused(
                OutOfOrderSequence,
                f"Out of order sequence number: {sequence} (incoming seq. number), "
                f"{last} (current end sequence number)",
            )
    if entry.current_txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL_BIT:
        raise Refused(InvalidTransactionState, "Expected a transactional write")
    return verdict


def check_marker(
    entry: ProducerStateEntry, epoch: int, marker: EndTransactionMarker, transaction_version: int
) -> None:
    """Check the epochs of an end-of-transaction marker (rule 4). Raises Refused."""
    current = entry.producer_epoch
    if epoch < current:
        raise Refused(InvalidProducerEpoch, _epoch_message(entry, epoch, "smaller than"))
    if transaction_version >= 2 and not has_raised_epoch(entry, epoch):
        raise Refused(InvalidProducerEpoch, _epoch_message(entry, epoch, "not larger than"))
    if marker.coordinator_epoch < entry.coordinator_epoch:
        raise Refused(
            TransactionCoordinatorFenced,
            f"Invalid coordinator epoch: {marker.coordinator_epoch} (zombie), "
            f"{entry.coordinator_epoch} (current)",
        )


def has_raised_epoch(entry: ProducerStateEntry, epoch: int) -> bool:
    """Whether a marker's epoch is above that of the open transaction it ends (KIP-890, rule 4).

    Also true without an open transaction, as a repeated marker does no harm, and at the greatest
    epoch, above which there is none.
    """
    is_open = entry.current_txn_first_offset >= 0
    return epoch != entry.producer_epoch or not is_open or epoch == _MAX_EPOCH


def _analyze_epoch(
    entry: ProducerStateEntry, header: BatchHeader, is_client: bool
) -> ProducerVerdict:
    epoch = header.producer_epoch
    if epoch < entry.producer_epoch:
        raise Refused(InvalidProducerEpoch, _epoch_message(entry, epoch, "smaller than"))
    if not is_client:
        return NOT_SEQUENCED
    if header.base_sequence != 0 and entry.producer_epoch != NO_PRODUCER_EPOCH:
        raise Refused(
            OutOfOrderSequence,
            f"Invalid sequence number for new epoch: {epoch} (request epoch), "
            f"{header.base_sequence} (seq. number), {entry.producer_epoch} (current epoch)",
        )
    return NEW_EPOCH


def _epoch_message(entry: ProducerStateEntry, epoch: int, relation: str) -> str:
    return f"Epoch is {epoch}, which is {relation} the last seen epoch {entry.producer_epoch}"
