"""One partition of `__consumer_offsets` in memory (Kafka's `GroupCoordinatorShard`).

Its groups, its offsets, and what concerns both: deletion, expiry, replay. Pure: `coordinator.py`
writes what an `Outcome` says and calls `replay` with what became durable; the loader
(`broker.coordinator.runtime`) hands over what the log holds, and that ends in the same `replay`.
"""

import logging
from collections.abc import Callable, Iterator

from broker.coordinator.group.classic.group import Group
from broker.coordinator.group.classic.limits import GroupLimits
from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.group_manager import GroupMetadataManager
from broker.coordinator.group.offset_manager import OffsetMetadataManager
from broker.coordinator.group.offsets import OffsetStore
from broker.coordinator.group.outcome import Outcome
from broker.coordinator.group.records import decode_record, subscribed_topics
from broker.coordinator.group.stored import GroupMetadataRecord, GroupRecord, OffsetRecord
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.records.batch import BatchHeader
from protocol.records.record import Record

logger = logging.getLogger(__name__)

RECORDS_PER_YIELD = 100
"""Records decoded at a stretch while loading: about a millisecond."""


class GroupShard:
    """All that a coordinator knows of the groups of one partition, and the way to change it."""

    def __init__(
        self,
        limits: GroupLimits,
        *,
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
        retention_ms: int,
    ) -> None:
        self._now_ms = now_ms
        self.groups = GroupMetadataManager(
            limits, now_ms=now_ms, new_id=new_id, read_topics=subscribed_topics
        )
        self.offsets = OffsetStore()
        self.commits = OffsetMetadataManager(
            self.groups, self.offsets, now_ms=now_ms, retention_ms=retention_ms
        )
        self.skipped_records = 0
        """Records of the log that could not be read."""
        self._noted: dict[bytes, Record] = {}
        """While loading: the last record of each key."""

    def group(self, group_id: str) -> Group | None:
        """The group, dead ones included; None when there is none."""
        return self.groups.get(group_id)

    # ---- deletion and expiry

    def delete_group(self, group_id: str, out: Outcome) -> list[GroupRecord]:
        """DeleteGroups: tombstones for offsets and group. Raises KafkaError (S-GRP-6).

        The group is Dead at once, so that nobody joins it while the tombstones are written;
        `GroupMetadataManager.undo_delete` if that fails.
        """
        group = self.groups.get(group_id)
        if group is None or group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not GroupState.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        tombstones = self.commits.tombstones(group_id)
        self.groups.mark_dead(group, out)
        return [*tombstones, GroupMetadataRecord(group_id, None)]

    def expire(self, out: Outcome) -> list[GroupRecord]:
        """Tombstones for offsets whose retention is over, and for empty groups without any left.

        S-GRP-4; the rules are in `expiry.py`.
        """
        now_ms = self._now_ms()
        records: list[GroupRecord] = []
        for group in self.groups:
            if group.state is GroupState.DEAD:
                continue
            expired, all_gone = self.commits.expired(group, now_ms)
            records.extend(expired)
            if all_gone and self.commits.may_vanish(group):
                self.groups.mark_dead(group, out)
                records.append(GroupMetadataRecord(group.group_id, None))
        return records

    # ---- replay

    def replay(self, record: GroupRecord, offset: int) -> None:
        """One durable record that lies at `offset`, from a write just done or from the log."""
        if isinstance(record, OffsetRecord):
            self.commits.replay(record, offset)
        else:
            self.groups.replay(record)

    def load_record(self, header: BatchHeader, record: Record) -> None:
        """One record of the log.

        Of each key only the last value counts, and a busy group writes the same keys all day: so
        records are noted by key, and `settle` decodes what is left. Open transactions make the
        order matter; while there are any each record is replayed as it comes.
        """
        if header.is_transactional or self.offsets.has_transactions:
            for _ in self.settle():
                pass
            self._load_now(record, header.producer_id if header.is_transactional else None)
        elif record.key is None:
            self.skipped_records += 1
        else:
            self._noted[record.key] = record

    def load_marker(self, producer_id: int, *, commit: bool) -> None:
        """A transaction that committed offsets has ended."""
        self.offsets.end_transaction(producer_id, commit)

    def settle(self) -> Iterator[None]:
        """Replay the noted records; yields now and then."""
        noted, self._noted = self._noted, {}
        for turn, record in enumerate(noted.values(), 1):
            self._load_now(record, None)
            if turn % RECORDS_PER_YIELD == 0:
                yield

    def _load_now(self, record: Record, producer_id: int | None) -> None:
        """What cannot be read is logged and left out, not fatal: a group without one offset is
        better than a partition without its groups."""
        try:
            decoded = decode_record(record.key or b"", record.value)
        except ProtocolError as error:
            self.skipped_records += 1
            logger.warning("Skipped the record at offset %d: %s", record.offset, error)
            return
        if decoded is None:
            return
        if producer_id is None:
            self.replay(decoded, record.offset)
        elif isinstance(decoded, OffsetRecord) and decoded.committed is not None:
            decoded.committed.record_offset = record.offset
            self.commits.put_pending(producer_id, decoded.key, decoded.committed)

    def on_loaded(self, out: Outcome) -> None:
        """The log has been replayed: sessions begin."""
        for group_id in self.offsets.group_ids():
            self.groups.ensure(group_id)
        self.groups.on_loaded(out)

    def _check(self) -> None:
        """Invariants, for tests."""
        self.offsets._check()
        self.groups._check()
