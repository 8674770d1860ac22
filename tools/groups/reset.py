"""Carries out a reset: asks for offsets, plans, refuses or commits the plan, and prints it."""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tools.chosen import chosen_places
from tools.connection import TIMEOUT_S
from tools.errors import CommandError
from tools.groups.offsets_file import read_offsets, write_offsets
from tools.groups.reset_plan import plan_reset
from tools.groups.reset_target import Kind, Target, parse_target
from tools.groups.survey import GroupView, refuse_members, require_group, survey
from tools.log_ends import LogEnds, Place, known_partitions, place_name
from tools.tables import print_table


def reset(admin: Any, args: argparse.Namespace) -> None:
    """Commit new offsets for a group without members. Raises CommandError."""
    target = parse_target(args, time.time_ns() // 1_000_000)
    given = _given(admin, args, target)
    (group,) = survey(admin, [args.reset])
    if not args.dry_run:
        refuse_members(group, "its offsets can only be reset")
    places = _places(admin, args, group, given)
    plan = plan_reset(
        target,
        places,
        committed=group.committed(),
        given=given,
        **_asked(LogEnds(admin), places, target),
    )
    if not args.dry_run:
        _commit(admin, args.reset, plan)
    _show(args, group, plan)


def _given(admin: Any, args: argparse.Namespace, target: Target) -> dict[Place, int]:
    if target.kind is Kind.FILE:
        return _from_file(args.from_file, args.reset)
    if target.kind is not Kind.GROUP:
        return {}
    committed = require_group(admin, args.from_group).committed()
    if not committed:
        raise CommandError(f"group {args.from_group} has committed nothing")
    return committed


def _from_file(path: str, group: str) -> dict[Place, int]:
    try:
        if path == "-":
            return read_offsets(sys.stdin, group, "standard input")
        with open(path, newline="", encoding="utf-8") as lines:
            return read_offsets(lines, group, path)
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CommandError(f"cannot read {path}: it is not UTF-8 text") from None


def _places(
    admin: Any, args: argparse.Namespace, group: GroupView, given: Mapping[Place, int]
) -> list[Place]:
    known = known_partitions(admin)
    if args.all_topics and args.from_group is None:
        topics = sorted({place[0] for place in group.committed()})
        if not topics:
            raise CommandError(f"group {group.name} has committed nothing: name a --topic")
        places = chosen_places(topics, known)
    elif args.topic:
        places = chosen_places(args.topic, known)
    elif given:
        places = chosen_places([place_name(place) for place in given], known)
    else:
        raise CommandError("--reset needs --topic (TOPIC or TOPIC:0,1) or --all-topics")
    if not given:
        return places
    places = [place for place in places if place in given]
    if not places:
        raise CommandError(f"{args.from_group or args.from_file} has no offsets of these topics")
    return places


def _asked(ends: LogEnds, places: Sequence[Place], target: Target) -> dict[str, dict[Place, int]]:
    found = {"firsts": ends.firsts(places), "ends": ends.ends(places), "at_time": {}}
    if target.kind is Kind.TIME:
        found["at_time"] = ends.at_time(places, target.number)
    return {
        name: {place: offset for place, offset in offsets.items() if offset is not None}
        for name, offsets in found.items()
    }


def _commit(admin: Any, group: str, plan: Mapping[Place, int]) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    partitions = [TopicPartition(*place, offset) for place, offset in plan.items()]
    request = [ConsumerGroupTopicPartitions(group, partitions)]
    answer = admin.alter_consumer_group_offsets(request)[group].result(TIMEOUT_S)
    # The call does not raise for a partition's error: each has to be looked at.
    refused = [(p, p.error) for p in answer.topic_partitions if p.error is not None]
    if refused:
        (first, error) = refused[0]
        raise CommandError(
            f"{len(refused)} of {len(plan)} partitions were not reset;"
            f" {first.topic}:{first.partition}: {error.str()}"
        )


def _show(args: argparse.Namespace, group: GroupView, plan: Mapping[Place, int]) -> None:
    before = group.committed()
    if args.export:
        write_offsets(plan, sys.stdout)
        return
    if args.json:
        for (topic, partition), offset in plan.items():
            line = {
                "group": args.reset,
                "topic": topic,
                "partition": partition,
                "before": before.get((topic, partition)),
                "offset": offset,
                "dry_run": args.dry_run,
            }
            print(json.dumps(line))
        return
    print_table(
        ("topic", "partition", "before", "would be" if args.dry_run else "now"),
        ((*place, before.get(place), offset) for place, offset in plan.items()),
    )
    if args.dry_run:
        print("Nothing was changed: this was a dry run.", file=sys.stderr)
