"""All transactional ids of one partition of `__transaction_state`.

A table and its loading; what may be done with an id is decided in `decisions.py`, what follows
from it is done by `coordinator.py`. While the log is read only the last record of each key is
kept, and `settle` decodes what is left (S-TXN-6).
"""

import logging
from collections.abc import Iterator

from broker.coordinator.transaction.records import decode_key, decode_value
from broker.coordinator.transaction.state import Transaction, TransactionState
from protocol.errors import ProtocolError
from protocol.records.batch import BatchHeader
from protocol.records.record import Record
from protocol.types import NO_PRODUCER_ID

logger = logging.getLogger(__name__)

RECORDS_PER_YIELD = 100
"""Records decoded at a stretch while loading: about a millisecond."""


class TransactionShard:
    """The transactional ids of one partition, with what each of them is in the middle of."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.transactions: dict[str, Transaction] = {}
        self.largest_producer_id = NO_PRODUCER_ID
        """Of those that the log names; none that is given out may be below."""
        self.skipped_records = 0
        """Records of the log that could not be read."""
        self._noted: dict[bytes, Record] = {}

    def load_record(self, header: BatchHeader, record: Record) -> None:
        """One record of the log."""
        if record.key is None:
            self.skipped_records += 1
            return
        # A later record takes the place of an earlier one, a tombstone too.
        self._noted[bytes(record.key)] = record

    def load_marker(self, producer_id: int, *, commit: bool) -> None:
        """Transactions are not written to in transactions."""

    def settle(self) -> Iterator[None]:
        """Decode the noted records; yields now and then."""
        noted, self._noted = self._noted, {}
        for turn, (key, record) in enumerate(noted.items(), 1):
            self._load(key, record)
            if turn % RECORDS_PER_YIELD == 0:
                yield

    def _load(self, key: bytes, record: Record) -> None:
        """What cannot be read is logged and left out: one id less is better than none at all."""
        try:
            transactional_id = decode_key(key)
            if transactional_id is None or record.value is None:
                return
            value = decode_value(record.value)
        except ProtocolError as error:
            self.skipped_records += 1
            logger.warning("Skipped the record at offset %d: %s", record.offset, error)
            return
        if value.state is not TransactionState.DEAD:
            self.largest_producer_id = max(
                self.largest_producer_id, value.producer_id, value.next_producer_id
            )
            self.transactions[transactional_id] = Transaction(transactional_id, value)

    def _check(self) -> None:
        """Invariants, for tests."""
        for transactional_id, transaction in self.transactions.items():
            assert transaction.transactional_id == transactional_id
            transaction._check()
