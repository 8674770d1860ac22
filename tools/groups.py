"""`pykafkalog groups`: consumer groups, their members and lag; reset and delete."""

import argparse
from typing import Any

from tools.connection import (
    TIMEOUT_S,
    add_command,
    admin_client,
    client_settings,
    refusals_as_sentences,
)
from tools.errors import CommandError

EXAMPLES = """\
  pykafkalog groups                                     every group and its state
  pykafkalog groups --describe billing                  members, offsets and lag per partition
  pykafkalog groups --reset billing --topic orders --to earliest
  pykafkalog groups --reset billing --topic orders --to 1200
  pykafkalog groups --delete billing"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "groups",
        text="List, describe, reset and delete consumer groups.",
        examples=EXAMPLES,
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="every group (the default)")
    action.add_argument("--describe", metavar="GROUP")
    action.add_argument(
        "--reset", metavar="GROUP", help="set committed offsets; the group must be empty"
    )
    action.add_argument("--delete", nargs="+", metavar="GROUP")
    parser.add_argument("--topic", help="with --reset")
    parser.add_argument("--to", help="with --reset: earliest, latest or an offset")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Do what the arguments ask for."""
    admin = admin_client(args)
    with refusals_as_sentences():
        if args.describe:
            _describe(admin, args)
        elif args.reset:
            _reset(admin, args)
        elif args.delete:
            for name in args.delete:
                admin.delete_consumer_groups([name])[name].result(TIMEOUT_S)
                print(f"Deleted group {name}.")
        else:
            _list(admin)


def _list(admin: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("group", "state", "type")
    for group in sorted(
        admin.list_consumer_groups().result(TIMEOUT_S).valid, key=lambda group: str(group.group_id)
    ):
        table.add_row(group.group_id, group.state.name.lower(), group.type.name.lower())
    Console(highlight=False).print(table)


def _committed(admin: Any, group: str) -> dict[tuple[str, int], int]:
    from confluent_kafka import ConsumerGroupTopicPartitions

    request = [ConsumerGroupTopicPartitions(group)]
    found = admin.list_consumer_group_offsets(request)[group].result(TIMEOUT_S)
    return {(p.topic, p.partition): p.offset for p in found.topic_partitions}


def _describe(admin: Any, args: argparse.Namespace) -> None:
    from confluent_kafka import Consumer, ConsumerGroupState, TopicPartition
    from rich.console import Console
    from rich.table import Table

    group = admin.describe_consumer_groups([args.describe])[args.describe].result(TIMEOUT_S)
    if group.state is ConsumerGroupState.DEAD:
        raise CommandError(f"there is no group {args.describe}")
    owners = {
        (p.topic, p.partition): member
        for member in group.members
        for p in (member.assignment.topic_partitions if member.assignment else ())
    }
    committed = _committed(admin, args.describe)
    table = Table("topic", "partition", "committed", "end", "lag", "member", "client", "host")
    reader = Consumer(client_settings(args, **{"group.id": "pykafkalog-groups"}))
    for topic, number in sorted({*owners, *committed}):
        _low, high = reader.get_watermark_offsets(TopicPartition(topic, number), TIMEOUT_S)
        offset = committed.get((topic, number))
        member = owners.get((topic, number))
        table.add_row(
            topic,
            str(number),
            "-" if offset is None else f"{offset:,}",
            f"{high:,}",
            "-" if offset is None else f"{high - offset:,}",
            *((member.member_id, member.client_id, member.host) if member else ("-", "-", "-")),
        )
    reader.close()
    console = Console(highlight=False)
    console.print(
        f"[bold]{args.describe}[/]  {group.state.name.lower()}, {len(group.members)} members"
        + (f", assignor {group.partition_assignor}" if group.partition_assignor else "")
    )
    console.print(table)


def _reset(admin: Any, args: argparse.Namespace) -> None:
    from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition

    if not args.topic or args.to is None:
        raise CommandError("--reset needs --topic and --to")
    if args.to not in ("earliest", "latest") and not args.to.isdigit():
        raise CommandError(f"--to {args.to}: earliest, latest or an offset")
    known = admin.list_topics(timeout=TIMEOUT_S).topics
    if args.topic not in known:
        raise CommandError(f"there is no topic {args.topic}")
    reader = Consumer(client_settings(args, **{"group.id": "pykafkalog-groups"}))
    places = []
    for number in sorted(known[args.topic].partitions):
        low, high = reader.get_watermark_offsets(TopicPartition(args.topic, number), TIMEOUT_S)
        wanted = {"earliest": low, "latest": high}.get(args.to)
        offset = min(max(int(args.to), low), high) if wanted is None else wanted
        places.append(TopicPartition(args.topic, number, offset))
    reader.close()
    request = [ConsumerGroupTopicPartitions(args.reset, places)]
    admin.alter_consumer_group_offsets(request)[args.reset].result(TIMEOUT_S)
    for place in places:
        print(f"{args.reset} {place.topic}:{place.partition} is at {place.offset}")
