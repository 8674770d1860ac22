"""What the records of `__consumer_offsets` say, as plain values.

Decisions make them, replay takes them; `records.py` turns them into Kafka's bytes and back.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from broker.coordinator.group.offsets import CommittedOffset, OffsetKey
from broker.coordinator.group.state import Group, GroupState, Member


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """An offset was committed; None: it was forgotten (tombstone)."""

    key: OffsetKey
    committed: CommittedOffset | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMember:
    """A member as group metadata keeps it: its metadata for the chosen protocol only."""

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
    """A generation of a group that has an assignment, or that a group became empty."""

    protocol_type: str | None
    generation: int
    protocol_name: str | None
    leader_id: str | None
    state_timestamp_ms: int | None
    members: tuple[StoredMember, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupMetadataRecord:
    """The group's metadata; None: the group is gone (tombstone)."""

    group_id: str
    value: StoredGroup | None


GroupRecord = OffsetRecord | GroupMetadataRecord


def stored_group(group: Group, assignments: Mapping[str, bytes]) -> GroupMetadataRecord:
    """The record of a group as it stands, with these assignments by member id."""
    return GroupMetadataRecord(
        group.group_id,
        StoredGroup(
            protocol_type=group.protocol_type,
            generation=group.generation,
            protocol_name=group.protocol_name,
            leader_id=group.leader_id,
            state_timestamp_ms=group.state_timestamp_ms,
            members=tuple(
                StoredMember(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=member.metadata(group.protocol_name),
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in group.members.values()
            ),
        ),
    )


def restored_group(group_id: str, stored: StoredGroup) -> Group:
    """The group a record speaks of: Stable with members, else Empty."""
    group = Group(
        group_id,
        state=GroupState.STABLE if stored.members else GroupState.EMPTY,
        generation=stored.generation,
        protocol_type=stored.protocol_type,
        protocol_name=stored.protocol_name,
        leader_id=stored.leader_id,
        state_timestamp_ms=stored.state_timestamp_ms,
    )
    for kept in stored.members:
        group.add(
            Member(
                member_id=kept.member_id,
                instance_id=kept.instance_id,
                client_id=kept.client_id,
                client_host=kept.client_host,
                # Records before version 1 knew no rebalance timeout.
                rebalance_timeout_ms=(
                    kept.session_timeout_ms
                    if kept.rebalance_timeout_ms == -1
                    else kept.rebalance_timeout_ms
                ),
                session_timeout_ms=kept.session_timeout_ms,
                protocol_type=stored.protocol_type or "",
                protocols=((stored.protocol_name or "", kept.subscription),),
                assignment=kept.assignment,
            )
        )
    return group
