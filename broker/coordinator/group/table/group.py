"""The protocol that every kind of group implements (Kafka's `Group`).

The group table, the offsets and their expiry, and the requests that concern every group (describe,
list, delete, commit) use only this. Membership and assignment are specific to a kind:
`broker.coordinator.group.classic` has Kafka's rebalance protocol.
"""

from enum import Enum
from typing import Final, Protocol

from broker.coordinator.group.data.records import GroupRecord
from broker.coordinator.group.data.values import CommitRequest, DescribedGroup, ListedGroup
from broker.coordinator.group.decision import GroupDecision

DEAD: Final = "Dead"
"""The state that is shown for a group which does not exist or is being deleted."""


class ExpiryBase(Enum):
    """The moment from which the retention of a group's offsets counts."""

    GROUP_EMPTY = "the group has been empty"
    COMMIT = "the offset was committed"
    NEVER = "the group is in use"


class Group(Protocol):
    """One group. Everything here is pure; `check_…` raises KafkaError when the group refuses."""

    @property
    def group_id(self) -> str:
        """Its name."""
        ...

    @property
    def state_name(self) -> str:
        """As Kafka shows it."""
        ...

    @property
    def member_count(self) -> int:
        """How many members it has."""
        ...

    @property
    def is_vacant(self) -> bool:
        """Whether it has no members and none is about to join: without offsets it may expire."""
        ...

    @property
    def expiry_base(self) -> ExpiryBase:
        """Which rule of KIP-211 applies to its offsets in its current state."""
        ...

    @property
    def state_timestamp_ms(self) -> int | None:
        """Wall time of the last change of state; None when the record is too old to have it."""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads `topic`; if so, its offsets must not expire or be deleted."""
        ...

    def check_commit(self, request: CommitRequest, out: GroupDecision) -> None:
        """Refuse an invalid OffsetCommit; a valid one renews the member's session (S-GRP-2)."""
        ...

    def check_commit_in_transaction(self, request: CommitRequest) -> None:
        """Refuse an invalid TxnOffsetCommit (KIP-447, S-TXN-5)."""
        ...

    def check_offset_delete(self) -> None:
        """Refuse OffsetDelete if no offset of the group may be deleted (S-GRP-6)."""
        ...

    def check_delete(self) -> None:
        """Refuse DeleteGroups of a group in use (S-GRP-6)."""
        ...

    def tombstones(self) -> list[GroupRecord]:
        """Tombstones for its own records; not for its offsets."""
        ...

    def gone(self, out: GroupDecision) -> None:
        """The group was deleted or closed: cancel all of its timers."""
        ...

    def describe(self) -> DescribedGroup:
        """DescribeGroups."""
        ...

    def listed(self) -> ListedGroup:
        """ListGroups."""
        ...
