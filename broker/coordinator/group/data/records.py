"""The records of `__consumer_offsets` as plain values.

Decisions make them and replay applies them; `serde.py` turns them into Kafka's bytes and back.
Those of which a decision makes many are tuples: a frozen dataclass takes twice as long.
"""

from dataclasses import dataclass
from typing import NamedTuple

from broker.coordinator.group.data.offsets import CommittedOffset, OffsetKey


class OffsetRecord(NamedTuple):
    """An offset was committed; `committed` None: it was deleted (tombstone)."""

    key: OffsetKey
    committed: CommittedOffset | None


@dataclass(slots=True)
class PendingOffsetRecord:
    """An offset was committed within a transaction; visible when that commits (S-TXN-5)."""

    key: OffsetKey
    committed: CommittedOffset
    producer_id: int
    ended: bool | None = None
    """Set if the transaction's marker came while the record was in flight: whether it committed."""


class StoredMember(NamedTuple):
    """A member in the group metadata, which keeps only its metadata for the chosen protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGroup:
    """A generation of a group with its assignments; without members: the group became empty."""

    protocol_type: str | None
    generation: int
    protocol_name: str | None
    leader_id: str | None
    state_timestamp_ms: int | None
    members: tuple[StoredMember, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupMetadataRecord:
    """The metadata of a group; `value` None: the group was deleted (tombstone)."""

    group_id: str
    value: StoredGroup | None

    @property
    def key(self) -> str:
        """The group that the record describes."""
        return self.group_id


GroupRecord = OffsetRecord | PendingOffsetRecord | GroupMetadataRecord
