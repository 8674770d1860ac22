"""A classic group to its record in `__consumer_offsets`, and back."""

from collections.abc import Mapping

from broker.coordinator.group.classic.group import ClassicGroup
from broker.coordinator.group.classic.member import Member
from broker.coordinator.group.classic.state import GroupState
from broker.coordinator.group.data.records import GroupMetadataRecord, StoredGroup, StoredMember


def stored_group(group: ClassicGroup, assignments: Mapping[str, bytes]) -> GroupMetadataRecord:
    """Return the record of the group's current state with these assignments, by member id."""
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


def confirm(group: ClassicGroup, stored: StoredGroup, now_ms: int) -> None:
    """Apply a durable record of a group in memory, unless its generation is over.

    The record only brings the leader's assignment. The group is not restored from it, because it
    holds more than the record: parked requests, the members' other protocols.
    """
    if group.state is GroupState.COMPLETING_REBALANCE and group.generation == stored.generation:
        assignments = {kept.member_id: kept.assignment for kept in stored.members}
        if assignments.keys() != group.members.keys():
            return  # The record is of an earlier group of the same name.
        for member_id, member in group.members.items():
            member.assignment = assignments[member_id]
        group.transition_to(GroupState.STABLE, now_ms)


def restored_group(group_id: str, stored: StoredGroup) -> ClassicGroup:
    """Return the group that a record describes: Stable with members, else Empty."""
    group = ClassicGroup(
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
                # Records before version 1 have no rebalance timeout.
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
