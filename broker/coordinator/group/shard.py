"""One partition of `__consumer_offsets` in memory (Kafka's `GroupCoordinatorShard`).

It holds the groups and the offsets, and does what concerns both: deletion, expiry, replay. Pure:
the runtime (`broker.coordinator.runtime`) appends the records of a `GroupDecision` and calls
`replay` when they are durable; its loader passes the records of the log, which end in
the same `replay`.
"""

import logging
from collections.abc import Callable, Collection, Sequence

from broker.coordinator.group.classic.group import ClassicGroup
from broker.coordinator.group.classic.groups import ClassicGroups
from broker.coordinator.group.classic.limits import GroupLimits
from broker.coordinator.group.data.records import (
    GroupMetadataRecord,
    GroupRecord,
    OffsetRecord,
    PendingOffsetRecord,
)
from broker.coordinator.group.data.serde import decode_record, subscribed_topics
from broker.coordinator.group.decision import GroupDecision, GroupTimer
from broker.coordinator.group.statistics import GroupCounters
from broker.coordinator.group.table.group import Group
from broker.coordinator.group.table.group_table import GroupTable
from broker.coordinator.group.table.offset_manager import OffsetMetadataManager
from broker.coordinator.group.table.offset_store import OffsetStore
from broker.coordinator.runtime.decision import Then
from broker.coordinator.runtime.in_flight import InFlight
from protocol.errors import ErrorCode, KafkaError, ProtocolError
from protocol.records.batch import BatchHeader
from protocol.records.record import Record
from storage.waits import PAUSE

logger = logging.getLogger(__name__)


class GroupShard:
    """The groups and committed offsets of one partition, and the decisions that change them."""

    def __init__(
        self,
        partition: int,
        limits: GroupLimits,
        counters: GroupCounters,
        *,
        now_ms: Callable[[], int],
        new_id: Callable[[], str],
        retention_ms: int,
    ) -> None:
        self.partition = partition
        self.in_flight: InFlight[GroupRecord] = InFlight()
        self._now_ms = now_ms
        self.groups = GroupTable(
            self.in_flight,
            new_simple_group=lambda group_id: ClassicGroup(group_id, state_timestamp_ms=now_ms()),
        )
        self.classic = ClassicGroups(
            self.groups,
            limits,
            counters,
            self.in_flight,
            now_ms=now_ms,
            new_id=new_id,
            read_topics=subscribed_topics,
        )
        self.offsets = OffsetStore()
        self.commits = OffsetMetadataManager(
            self.groups, self.offsets, self.in_flight, now_ms=now_ms, retention_ms=retention_ms
        )
        self.skipped_records = 0
        """Records of the log that could not be read."""
        self._noted: dict[bytes, Record] = {}
        """While loading: the last record of each key."""

    def group(self, group_id: str) -> Group | None:
        """Return the group, even while it is being deleted; None when there is none."""
        return self.groups.get(group_id)

    # ---- deletion and expiry

    def delete_group(self, group_id: str, out: GroupDecision) -> None:
        """Write tombstones for a group and its offsets. Raises KafkaError (S-GRP-6).

        No member can join while they are written; if the write fails the group is unchanged.
        """
        group = self.groups.living(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        group.check_delete()
        tombstones: list[GroupRecord] = [*self.commits.tombstones(group_id)]
        tombstones.extend(group.tombstones())
        out.write(tombstones, then=self._after_tombstones([group])).splits = True

    def _after_tombstones(self, groups: Sequence[Group]) -> Then:
        """After the tombstones of groups: cancel the timers of the groups that are gone."""

        def then(code: ErrorCode, following: GroupDecision) -> None:
            for group in groups:
                # The tombstones may be several batches; groups of a failed one are unchanged.
                if self.groups.get(group.group_id) is not group:
                    group.gone(following)

        return then

    def expire(self, out: GroupDecision) -> None:
        """Write tombstones for expired offsets, and for empty groups that have no offset left.

        S-GRP-4; the rules are in `table/expiry.py`.
        """
        now_ms = self._now_ms()
        records: list[GroupRecord] = []
        vanishing: list[Group] = []
        for group in self.groups:
            if self.groups.is_being_deleted(group.group_id):
                continue
            expired, all_gone = self.commits.expired(group, now_ms)
            records.extend(expired)
            if all_gone and self.commits.may_vanish(group):
                records.extend(group.tombstones())
                vanishing.append(group)
        if records:
            out.write(records, then=self._after_tombstones(vanishing)).splits = True

    def forget_topics(self, topics: Collection[str], out: GroupDecision) -> None:
        """Topics were deleted: write tombstones for all offsets committed for them."""
        tombstones = self.commits.forget_topics(topics)
        if tombstones:
            out.write(tombstones).splits = True

    def on_timer(self, timer: GroupTimer, out: GroupDecision) -> None:
        """A timer fired that a decision had set."""
        self.classic.on_timer(timer, out)

    # ---- replay

    def replay(self, record: GroupRecord, offset: int) -> None:
        """Apply one durable record at `offset`, from a write of this broker or from the log."""
        if isinstance(record, GroupMetadataRecord):
            self.classic.replay(record)
        else:
            self.commits.replay(record, offset)

    async def load_record(self, header: BatchHeader, record: Record) -> None:
        """Load one record of the log.

        Only the last value of each key counts, and a busy group writes the same keys all day: so
        records are noted by key, and `settle` decodes the last of each. Open transactions make the
        order matter; while there are any, each record is replayed as it comes.
        """
        if header.is_transactional or self.offsets.has_transactions:
            await self.settle()
            self._load_now(record, header.producer_id if header.is_transactional else None)
        elif record.key is None:
            self.skipped_records += 1
        else:
            self._noted[record.key] = record

    def load_marker(self, producer_id: int, *, commit: bool) -> None:
        """A transaction of `producer_id` has ended: show or drop its pending offsets."""
        self.commits.end_transaction(producer_id, commit=commit)

    async def settle(self) -> None:
        """Replay the noted records."""
        noted, self._noted = self._noted, {}
        for record in noted.values():
            self._load_now(record, None)
            await PAUSE

    def _load_now(self, record: Record, producer_id: int | None) -> None:
        """Decode and replay one record. An unreadable one is logged and skipped: losing one offset
        is better than losing all groups of the partition."""
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
            pending = PendingOffsetRecord(decoded.key, decoded.committed, producer_id)
            self.replay(pending, record.offset)

    def on_loaded(self, out: GroupDecision) -> None:
        """The log has been replayed: start the members' sessions."""
        for group_id in self.offsets.group_ids():
            self.groups.ensure(group_id)
        self.classic.on_loaded(out)

    def close(self, code: ErrorCode, out: GroupDecision) -> None:
        """This broker no longer leads the partition: answer parked requests, drop all groups."""
        self.classic.close(code, out)
        self.groups.clear()

    def _check(self) -> None:
        """Invariants, for tests."""
        self.in_flight._check()
        self.offsets._check()
        self.groups._check()
