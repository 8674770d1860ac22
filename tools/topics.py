"""`pykafkalog topics`: list, describe, create, alter and delete topics."""

import argparse
from typing import Any

from tools.connection import (
    TIMEOUT_S,
    add_command,
    admin_client,
    parse_settings,
    refusals_as_sentences,
)
from tools.errors import CommandError

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
"""Described only when named: fifty partitions each, and nobody's data."""

EXAMPLES = """\
  pykafkalog topics                                     every topic, a line each
  pykafkalog topics --describe orders                   partitions, leaders, offsets, own settings
  pykafkalog topics --create orders --partitions 6 --config retention.ms=86400000
  pykafkalog topics --alter orders --partitions 12      partitions can only be added
  pykafkalog topics --delete orders"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The command's arguments."""
    parser = add_command(
        commands,
        "topics",
        text="List, describe, create, alter and delete topics.",
        examples=EXAMPLES,
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="names only (the default)")
    action.add_argument(
        "--describe", nargs="*", metavar="TOPIC", help="these topics, or all but the internal ones"
    )
    action.add_argument("--create", metavar="TOPIC")
    action.add_argument("--alter", metavar="TOPIC")
    action.add_argument("--delete", nargs="+", metavar="TOPIC")
    parser.add_argument(
        "--partitions", type=int, help="with --create (default: the broker's) or --alter"
    )
    parser.add_argument("--replication-factor", type=int, default=-1, help="with --create")
    parser.add_argument(
        "--config", action="append", default=[], metavar="K=V", help="with --create"
    )
    parser.add_argument(
        "--if-exists", action="store_true", help="with --delete: a missing topic is fine"
    )
    parser.add_argument(
        "--if-not-exists", action="store_true", help="with --create: a topic that stands is fine"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Do what the arguments ask for."""
    admin = admin_client(args)
    with refusals_as_sentences():
        if args.create:
            _create(admin, args)
        elif args.alter:
            _alter(admin, args)
        elif args.delete:
            _delete(admin, args)
        elif args.describe is not None:
            _describe(admin, args)
        else:
            for name in sorted(admin.list_topics(timeout=TIMEOUT_S).topics):
                print(name)


def _create(admin: Any, args: argparse.Namespace) -> None:
    from confluent_kafka.admin import NewTopic

    known = admin.list_topics(timeout=TIMEOUT_S).topics
    if args.if_not_exists and args.create in known:
        print(f"Topic {args.create} stands already.")
        return
    topic = NewTopic(
        args.create,
        args.partitions if args.partitions is not None else -1,
        args.replication_factor,
        config=parse_settings(args.config),
    )
    admin.create_topics([topic])[args.create].result(TIMEOUT_S)
    print(f"Created topic {args.create}.")


def _alter(admin: Any, args: argparse.Namespace) -> None:
    from confluent_kafka.admin import NewPartitions

    if args.partitions is None:
        raise CommandError(
            "--alter needs --partitions; settings are changed by `pykafkalog configs`"
        )
    if args.alter not in admin.list_topics(timeout=TIMEOUT_S).topics:
        raise CommandError(f"there is no topic {args.alter}")
    admin.create_partitions([NewPartitions(args.alter, args.partitions)])[args.alter].result(
        TIMEOUT_S
    )
    print(f"Topic {args.alter} has {args.partitions} partitions now.")


def _delete(admin: Any, args: argparse.Namespace) -> None:
    known = admin.list_topics(timeout=TIMEOUT_S).topics
    for name in args.delete:
        if name not in known:
            if args.if_exists:
                continue
            raise CommandError(f"there is no topic {name}")
        admin.delete_topics([name])[name].result(TIMEOUT_S)
        print(f"Deleted topic {name}.")


def _describe(admin: Any, args: argparse.Namespace) -> None:
    from confluent_kafka import Consumer, TopicPartition
    from confluent_kafka.admin import ConfigResource, ConfigSource, ResourceType
    from rich.console import Console
    from rich.table import Table

    from tools.connection import client_settings

    known = admin.list_topics(timeout=TIMEOUT_S).topics
    missing = [name for name in args.describe if name not in known]
    if missing:
        raise CommandError(f"there is no topic {missing[0]}")
    console = Console(highlight=False)
    offsets = Consumer(client_settings(args, **{"group.id": "pykafkalog-topics"}))
    for name in sorted(args.describe or (name for name in known if name not in INTERNAL_TOPICS)):
        resource = ConfigResource(ResourceType.TOPIC, name)
        entries = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
        own = sorted(
            f"{key}={entry.value}"
            for key, entry in entries.items()
            if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        )
        table = Table("partition", "leader", "replicas", "in sync", "first", "end", "records")
        total = 0
        for number, partition in sorted(known[name].partitions.items()):
            low, high = offsets.get_watermark_offsets(TopicPartition(name, number), TIMEOUT_S)
            total += high - low
            table.add_row(
                str(number),
                str(partition.leader),
                ",".join(map(str, partition.replicas)),
                ",".join(map(str, partition.isrs)),
                f"{low:,}",
                f"{high:,}",
                f"{high - low:,}",
            )
        console.print(
            f"[bold]{name}[/]  {len(known[name].partitions)} partitions, {total:,} offsets"
            + (f"  {', '.join(own)}" if own else "")
        )
        console.print(table)
    offsets.close()
