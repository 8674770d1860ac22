"""What a broker tells of groups: state, members, committed offsets, lag."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.connection import TIMEOUT_S
from tools.errors import CommandError
from tools.log_ends import LogEnds, Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One consumer in a group."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    places: tuple[Place, ...]
    """The partitions that it was assigned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a group is in a partition."""

    place: Place
    committed: int | None
    """None: nothing is committed."""
    end: int | None
    """None: there is no such partition any more."""
    member: Member | None

    @property
    def lag(self) -> int | None:
        """Offsets that are still to be read; None where it cannot be told."""
        if self.committed is None or self.end is None:
            return None
        return max(self.end - self.committed, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One group."""

    name: str
    state: str
    kind: str
    assignor: str
    coordinator: tuple[str, int] | None
    """Host and port of the broker that the group belongs to."""
    members: tuple[Member, ...]
    positions: tuple[Position, ...]

    @property
    def lag(self) -> int | None:
        """Of all partitions with a committed offset; None when there are none."""
        lags = [position.lag for position in self.positions if position.lag is not None]
        return sum(lags) if lags else None

    def committed(self) -> dict[Place, int]:
        """The offsets that are committed."""
        return {p.place: p.committed for p in self.positions if p.committed is not None}


def all_groups(admin: Any) -> list[str]:
    """The names of all groups that the broker knows."""
    return sorted(group.group_id for group in admin.list_consumer_groups().result(TIMEOUT_S).valid)


def survey(admin: Any, names: Sequence[str]) -> list[GroupView]:
    """These groups, in this order; one that is not there has the state `dead`."""
    if not names:
        return []
    from confluent_kafka import ConsumerGroupTopicPartitions

    described = admin.describe_consumer_groups(list(names))
    asked = {
        name: admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name]
        for name in names
    }
    groups = {name: described[name].result(TIMEOUT_S) for name in names}
    committed = {name: _committed(asked[name].result(TIMEOUT_S)) for name in names}
    members = {name: tuple(map(_member, groups[name].members)) for name in names}
    places = {
        name: {*committed[name], *(place for member in members[name] for place in member.places)}
        for name in names
    }
    ends = LogEnds(admin).ends(sorted(set().union(*places.values())))
    return [
        _view(groups[name], members[name], committed[name], sorted(places[name]), ends)
        for name in names
    ]


def require_group(admin: Any, name: str) -> GroupView:
    """One group. Raises CommandError when it is not there."""
    (group,) = survey(admin, [name])
    if group.state == "dead":
        raise CommandError(f"there is no group {name}; `pykafkalog groups` lists what there is")
    return group


def name_members(group: GroupView, limit: int = 5) -> str:
    """For a sentence: who is in the group."""
    shown = [f"{m.client_id} at {m.host.removeprefix('/')}" for m in group.members[:limit]]
    if len(group.members) > limit:
        shown.append(f"{len(group.members) - limit} more")
    return ", ".join(shown)


def refuse_members(group: GroupView, what: str) -> None:
    """Raises CommandError when somebody reads as a member of this group."""
    if group.members:
        count = f"{len(group.members)} member" + ("s" if len(group.members) > 1 else "")
        raise CommandError(
            f"group {group.name} has {count} ({name_members(group)}): {what} while nobody reads in"
            " the group; nothing was changed"
        )


def _committed(answer: Any) -> dict[Place, int]:
    return {(p.topic, p.partition): p.offset for p in answer.topic_partitions if p.offset >= 0}


def _member(member: Any) -> Member:
    places = member.assignment.topic_partitions if member.assignment else ()
    return Member(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.host,
        instance_id=member.group_instance_id,
        places=tuple(sorted((p.topic, p.partition) for p in places)),
    )


def _view(
    group: Any,
    members: tuple[Member, ...],
    committed: Mapping[Place, int],
    places: Sequence[Place],
    ends: Mapping[Place, int | None],
) -> GroupView:
    owners = {place: member for member in members for place in member.places}
    return GroupView(
        name=group.group_id,
        state=group.state.name.lower().replace("_", " "),
        kind=group.type.name.lower() if group.type is not None else "",
        assignor=group.partition_assignor or "",
        coordinator=(group.coordinator.host, group.coordinator.port) if group.coordinator else None,
        members=members,
        positions=tuple(
            Position(
                place=place,
                committed=committed.get(place),
                end=ends.get(place),
                member=owners.get(place),
            )
            for place in places
        ),
    )
