"""Asks a broker about groups: state, members, committed offsets, lag."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tools.connection import TIMEOUT_S
from tools.errors import CommandError
from tools.log_ends import LogEnds, Place

FEW: Final = 5
"""The most members or partitions that an error names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One consumer in a group."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    places: tuple[Place, ...]
    """The partitions that are assigned to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A group's committed offset in a partition, and the partition's end."""

    place: Place
    committed: int | None
    """None if no offset is committed."""
    end: int | None
    """None if the partition does not exist any more."""
    member: Member | None

    @property
    def lag(self) -> int | None:
        """Offsets that are still to be read; None if either offset is unknown."""
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
    """Host and port of the group's coordinator; None if it is not known."""
    members: tuple[Member, ...]
    positions: tuple[Position, ...]

    @property
    def lag(self) -> int | None:
        """The sum over partitions with a committed offset; None if there are none."""
        lags = [position.lag for position in self.positions if position.lag is not None]
        return sum(lags) if lags else None

    def committed(self) -> dict[Place, int]:
        """Return the committed offsets by partition."""
        return {p.place: p.committed for p in self.positions if p.committed is not None}


def all_groups(admin: Any) -> list[str]:
    """Return the names of all groups."""
    return sorted(group.group_id for group in admin.list_consumer_groups().result(TIMEOUT_S).valid)


def survey(admin: Any, names: Sequence[str]) -> list[GroupView]:
    """Return these groups, in this order; one that does not exist has the state `dead`."""
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
    """Return one group. Raises CommandError if it does not exist."""
    (group,) = survey(admin, [name])
    if group.state == "dead":
        raise CommandError(f"there is no group {name}; `pykafkalog groups` lists what there is")
    return group


def name_some(texts: Sequence[str], between: str = ", ") -> str:
    """Return the first `FEW` texts, and how many more there are."""
    more = len(texts) - FEW
    return between.join([*texts[:FEW], *([f"{more} more"] if more > 0 else [])])


def name_members(group: GroupView) -> str:
    """Return the first members of the group in words."""
    return name_some([f"{m.client_id} at {m.host.removeprefix('/')}" for m in group.members])


def refuse_members(group: GroupView, what: str) -> None:
    """Raise CommandError if the group has members; `what` says what it prevents."""
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
