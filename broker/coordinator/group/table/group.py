"""What is asked of a group of any kind (Kafka's `Group`).

The table, offsets and their expiry, and the requests that concern every group (describe, list,
delete, commit) know no more than this. How members join and who is assigned what is the kind's own:
`broker.coordinator.group.classic` has Kafka's rebalance protocol.
"""

from enum import Enum
from typing import Final, Protocol

from broker.coordinator.group.data.records import GroupRecord
from broker.coordinator.group.data.values import CommitRequest, DescribedGroup, ListedGroup
from broker.coordinator.group.outcome import Outcome

DEAD: Final = "Dead"
"""The state that is shown of a group which is not there, or is being deleted."""


class ExpiryBase(Enum):
    """From when the retention of a group's offsets counts."""

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
        """Nobody uses it or is about to: without offsets it may vanish."""
        ...

    @property
    def expiry_base(self) -> ExpiryBase:
        """Which rule of KIP-211 holds for its offsets as it stands."""
        ...

    @property
    def state_timestamp_ms(self) -> int | None:
        """Wall time of the last change of state; None when an old record did not say."""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads `topic`: its offsets stay."""
        ...

    def check_commit(self, request: CommitRequest, out: Outcome) -> None:
        """OffsetCommit, which keeps the member's session alive (S-GRP-2)."""
        ...

    def check_commit_in_transaction(self, request: CommitRequest) -> None:
        """TxnOffsetCommit (KIP-447, S-TXN-5)."""
        ...

    def check_offset_delete(self) -> None:
        """OffsetDelete of anything (S-GRP-6)."""
        ...

    def check_delete(self) -> None:
        """DeleteGroups (S-GRP-6)."""
        ...

    def tombstones(self) -> list[GroupRecord]:
        """Of its own records, not of its offsets."""
        ...

    def gone(self, out: Outcome) -> None:
        """Its tombstones are durable: nothing of it waits for a timer any more."""
        ...

    def describe(self) -> DescribedGroup:
        """DescribeGroups."""
        ...

    def listed(self) -> ListedGroup:
        """ListGroups."""
        ...
