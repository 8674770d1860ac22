"""Which open transactions nobody will end any more. Pure; after Kafka's `kafka-transactions`.

A transaction that is open in a partition hangs when its coordinator

    (a) knows no transactional id with its producer id, or
    (b) has forgotten the id since, or
    (c) does not count this partition to the id's transaction.

It then sends no marker there, and read_committed consumers wait for ever. A search looks only at
those that were silent for longer than transactions may last: a younger one may just be beginning.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from tools.transactions.survey import Producer, Transaction


class Hangs(Enum):
    """Why nobody ends it."""

    NO_ID = "no coordinator knows its producer id"
    NOT_IN_TRANSACTION = "its coordinator does not count this partition to the transaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A transaction that is open in a partition, with what its coordinator says."""

    producer: Producer
    transactional_id: str | None
    transaction: Transaction | None

    @property
    def hangs(self) -> Hangs | None:
        """None: its coordinator will end it."""
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
    """By partition and start; `names` are transactional ids by producer id."""
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
    """Those whose transaction is open and whose last record is older than that."""
    return [
        each
        for each in producers
        if each.start_offset is not None and now_ms - each.last_timestamp > longest_ms
    ]
