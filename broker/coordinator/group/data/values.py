"""Group requests and replies as values, without the versions of the wire.

`broker/api` turns messages into these and back; the coordinator sees no messages. Times are
milliseconds; a missing text is None. A request that may be parked has the signal of its `reply`.
The values that a rebalance makes for each member, all in one turn of the loop, are tuples, because
a frozen dataclass takes twice as long.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from protocol.errors import ErrorCode
from storage.waits import Signal

UNKNOWN_MEMBER = ""
"""The member id of a member that has none yet."""
NO_GENERATION = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """JoinGroup."""

    group_id: str
    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    reason: str | None = None
    require_known_member_id: bool = False
    """v4+: a new dynamic member gets MEMBER_ID_REQUIRED with an id to join with (KIP-394)."""
    supports_skip_assignment: bool = False
    """v9: the reply to a returning static leader may have `skip_assignment` (KIP-814)."""
    replied: "Signal[JoinReply]" = field(default_factory=Signal, compare=False)


class JoinedMember(NamedTuple):
    """One member as listed in the leader's reply."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinReply(NamedTuple):
    """Answer to JoinGroup; `members` only for the leader."""

    error: ErrorCode = ErrorCode.NONE
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = UNKNOWN_MEMBER
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequest:
    """SyncGroup; `assignments` only from the leader."""

    group_id: str
    member_id: str
    instance_id: str | None = None
    generation: int
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()
    replied: "Signal[SyncReply]" = field(default_factory=Signal, compare=False)


class SyncReply(NamedTuple):
    """Answer to SyncGroup."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingMember:
    """A leaving member; named by instance id alone if an administrator removes a static one."""

    member_id: str
    instance_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveResult:
    """The result for one leaving member."""

    member_id: str
    instance_id: str | None
    error: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveReply:
    """Answer to LeaveGroup."""

    error: ErrorCode = ErrorCode.NONE
    members: tuple[LeaveResult, ...] = ()


class PartitionCommit(NamedTuple):
    """One offset to commit. A tuple, as is the request, because consumers commit all day."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    topic_id: bytes | None = None


class CommitRequest(NamedTuple):
    """OffsetCommit of partitions that exist."""

    group_id: str
    partitions: tuple[PartitionCommit, ...]
    member_id: str = UNKNOWN_MEMBER
    instance_id: str | None = None
    generation: int = NO_GENERATION
    retention_ms: int | None = None
    """v2-4: retention of these offsets, counted from the commit."""
    unknown_group: ErrorCode = ErrorCode.ILLEGAL_GENERATION
    """The code for a member of a group that does not exist: GROUP_ID_NOT_FOUND from v9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalCommit:
    """TxnOffsetCommit: a commit within a producer's transaction."""

    commit: CommitRequest
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    """One member in DescribeGroups; its metadata is filled only in a stable group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    """One group in DescribeGroups."""

    group_id: str
    error: ErrorCode = ErrorCode.NONE
    state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroup:
    """One group in ListGroups."""

    group_id: str
    protocol_type: str
    state: str
    type: str = "classic"
