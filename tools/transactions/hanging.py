"""Finds hanging transactions, which nobody will end. Pure; after Kafka's `kafka-transactions`.

A transaction that is open in a partition hangs if

    (a) no coordinator knows a transactional id with its producer id, or
    (b) the coordinator has forgotten the id since, or
    (c) the id's transaction does not include this partition.

Then no coordinator sends a marker to the partition, and read_committed consumers wait for ever. A
search considers only transactions without a record for longer than a transaction may last: a
younger one may have begun a moment ago.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from tools.transactions.survey import Producer, Transaction


class Hangs(Enum):
    """Why no coordinator ends the transaction."""

    NO_ID = "no coordinator knows its producer id"
    NOT_IN_TRANSACTION = "its coordinator does not count this partition to the transaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A transaction that is open in a partition, with its coordinator's description."""

    producer: Producer
    transactional_id: str | None
    transaction: Transaction | None

    @property
    def hangs(self) -> Hangs | None:
        """Why it hangs; None if its coordinator will end it."""
        if self.transaction is None:  # (a), (b)
            return Hangs.NO_ID
        if self.producer.place not in self.transaction.places:  # (c)
            return Hangs.NOT_IN_TRANSACTION
        return None


def open_transactions(
    producers: Iterable[Producer],
    names: Mapping[int, str],
    transactions: Mapping[str, Transaction],
) -> list[Open]:
    """Return open transactions, sorted by partition and start.

    `names` are transactional ids by producer id.
    """
    found = [
        Open(
            producer=each,
            transactional_id=names.get(each.producer_id),
            transaction=transactions.get(names.get(each.producer_id, "")),
        )
        for each in producers
        if each.start_offset is not None
    ]
    return sorted(found, key=lambda each: (each.producer.place, each.producer.start_offset))


def silent_for(producers: Iterable[Producer], longest_ms: int, now_ms: int) -> list[Producer]:
    """Return producers with an open transaction whose last record is older than `longest_ms`."""
    return [
        each
        for each in producers
        if each.start_offset is not None and now_ms - each.last_timestamp > longest_ms
    ]
