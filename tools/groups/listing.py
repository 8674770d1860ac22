"""Prints groups: as tables, or as one JSON object a line."""

import json
from collections.abc import Sequence
from typing import Any

from tools.groups.survey import GroupView, Member, Position
from tools.log_ends import Place
from tools.tables import number, print_table


def show_all(groups: Sequence[GroupView], *, as_json: bool) -> None:
    """Print a line for each group."""
    if as_json:
        for group in groups:
            print(json.dumps(_summary(group)))
        return
    print_table(
        ("group", "state", "type", "members", "lag"),
        ((g.name, g.state, g.kind, len(g.members), g.lag) for g in groups),
    )


def show_one(group: GroupView, *, as_json: bool) -> None:
    """Print everything about one group."""
    if as_json:
        members = [_member(member) for member in group.members]
        positions = [_position(position) for position in group.positions]
        print(json.dumps({**_summary(group), "member_list": members, "partitions": positions}))
        return
    facts = [group.state, f"{len(group.members)} member{'' if len(group.members) == 1 else 's'}"]
    facts += [f"lag {number(group.lag)}"] if group.lag is not None else []
    facts += [f"assignor {group.assignor}"] if group.assignor else []
    print(f"{group.name}: {', '.join(facts)}")
    if group.positions:
        print_table(
            ("topic", "partition", "committed", "end", "lag", "client"),
            (
                (*p.place, p.committed, p.end, p.lag, p.member.client_id if p.member else None)
                for p in group.positions
            ),
        )
    if group.members:
        print_table(
            ("client", "host", "member", "partitions"),
            (
                (m.client_id, m.host.removeprefix("/"), m.member_id, _places(m.places))
                for m in group.members
            ),
        )


def _places(places: Sequence[Place]) -> str:
    """Return partitions as `orders:0,1 payments:2`."""
    topics: dict[str, list[str]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(str(partition))
    return " ".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items())


def _summary(group: GroupView) -> dict[str, Any]:
    return {
        "group": group.name,
        "state": group.state,
        "type": group.kind,
        "assignor": group.assignor or None,
        "coordinator": "{}:{}".format(*group.coordinator) if group.coordinator else None,
        "members": len(group.members),
        "lag": group.lag,
    }


def _member(member: Member) -> dict[str, Any]:
    return {
        "member": member.member_id,
        "client": member.client_id,
        "host": member.host,
        "instance": member.instance_id,
        "partitions": [
            {"topic": topic, "partition": partition} for topic, partition in member.places
        ],
    }


def _position(position: Position) -> dict[str, Any]:
    topic, partition = position.place
    return {
        "topic": topic,
        "partition": partition,
        "committed": position.committed,
        "end": position.end,
        "lag": position.lag,
        "member": position.member.member_id if position.member else None,
    }
