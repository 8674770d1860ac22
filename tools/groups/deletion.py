"""Deletes groups and committed offsets."""

import argparse
import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from protocol.errors import ErrorCode
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tools.chosen import parse_chosen
from tools.connection import TIMEOUT_S, client_settings
from tools.errors import CommandError
from tools.groups.survey import GroupView, name_members, refuse_members, require_group
from tools.link import Link, linker
from tools.log_ends import Place, place_name
from tools.wire.refusals import require_done


def delete_groups(admin: Any, args: argparse.Namespace) -> None:
    """Delete the named groups, up to the first that cannot be deleted. Raises CommandError."""
    for name in args.delete:
        refuse_members(require_group(admin, name), "it can only be deleted")
        admin.delete_consumer_groups([name])[name].result(TIMEOUT_S)
        print(json.dumps({"deleted": name}) if args.json else f"Deleted group {name}.")


def delete_offsets(admin: Any, args: argparse.Namespace) -> None:
    """Delete the offsets committed for the named topics and partitions. Raises CommandError."""
    if not args.topic:
        raise CommandError("--delete-offsets needs --topic (TOPIC or TOPIC:0,1)")
    group = require_group(admin, args.delete_offsets)
    places = _committed_places(sorted(group.committed()), args.topic, group.name)
    if not args.dry_run:
        _delete(args, group, places)
    for topic, partition in places:
        if args.json:
            line = {"group": group.name, "topic": topic, "partition": partition}
            print(json.dumps({**line, "dry_run": args.dry_run}))
        else:
            would = "Would delete" if args.dry_run else "Deleted"
            print(f"{would} the offset of {place_name((topic, partition))} in {group.name}.")


def _committed_places(committed: list[Place], words: list[str], group: str) -> list[Place]:
    """Return the partitions to delete offsets of; their topics need not exist any more."""
    places: set[Place] = set()
    for word in words:
        topic, wanted = parse_chosen(word)
        there = {place for place in committed if place[0] == topic}
        asked = there if wanted is None else {(topic, partition) for partition in wanted}
        missing = sorted(asked - there)
        if missing or not asked:
            name = place_name(missing[0]) if missing else topic
            raise CommandError(f"group {group} has committed nothing in {name}")
        places |= asked
    return sorted(places)


def _delete(args: argparse.Namespace, group: GroupView, places: list[Place]) -> None:
    if group.coordinator is None:
        raise CommandError(f"the coordinator of group {group.name} is not known; try again")
    link = linker(client_settings(args))(group.coordinator)
    results = _offset_delete(link, group.name, places)
    refused = {place: code for place, code in results.items() if code is not ErrorCode.NONE}
    if not refused:
        return
    place, code = next(iter(refused.items()))
    if code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
        raise CommandError(
            f"group {group.name} reads {place[0]} now ({name_members(group)}): its offsets can only"
            " be deleted while no member is subscribed to the topic"
        )
    raise CommandError(
        f"{len(refused)} of {len(places)} offsets were not deleted;"
        f" {place_name(place)}: {code.name.lower().replace('_', ' ')}"
    )


def _offset_delete(link: Link, group: str, places: Sequence[Place]) -> dict[Place, ErrorCode]:
    """Send OffsetDelete, which the client library does not have; return a code per partition."""
    topics = [
        OffsetDeleteRequestTopic(
            name=name,
            partitions=[OffsetDeleteRequestPartition(partition_index=n) for _, n in places_of],
        )
        for name, places_of in groupby(sorted(places), key=lambda place: place[0])
    ]
    try:
        answer = link.call(OffsetDeleteRequest(group_id=group, topics=topics), OffsetDeleteResponse)
    finally:
        link.close()
    require_done(answer.error_code)
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }
